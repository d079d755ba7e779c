"""A request and its answers, apart from any HTTP engine."""

from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import msgspec

from berth.sandbox.store import encode

JSON: Final = "application/json"


@dataclass(slots=True)
class ReceivedRequest:
    """What the client sent: path and query decoded, header names in lower case."""

    method: str
    path: str
    query: dict[str, str]
    headers: Mapping[str, str]
    body: bytes = b""
    warnings: list[str] = field(default_factory=list)
    """What the answer's Warning headers will say."""

    def flag(self, name: str) -> bool:
        """Say whether a boolean parameter is set."""
        return self.query.get(name, "") in ("true", "1", "True")

    @property
    def dry_run(self) -> bool:
        """Say whether nothing may be stored."""
        return "dryRun" in self.query

    @property
    def manager(self) -> str:
        """Give the name under which this client's fields are managed."""
        agent = self.headers.get("user-agent", "")
        return self.query.get("fieldManager") or agent.split("/")[0][:128] or "unknown"


@dataclass(slots=True)
class CompleteAnswer:
    """A complete answer; the parts of its body are written one after the other."""

    status: int
    parts: list[bytes]
    content_type: str = JSON


class Deferred(msgspec.Struct, frozen=True):
    """A complete answer that has to be waited for; the client's next requests wait, too."""

    work: Callable[[], Coroutine[Any, Any, CompleteAnswer]]


class EventStream(Protocol):
    """An answer without an end: encoded watch events, pulled by the HTTP engine."""

    content_type: str
    timeout_seconds: float

    def pull(self) -> list[bytes]:
        """Give what happened since the last call."""

    def heartbeat(self) -> list[bytes]:
        """Give a bookmark, if the client asked for bookmarks."""

    def subscribe(self, wake: "Wake") -> None:
        """Have `wake` called when there is something to pull."""

    def close(self) -> None:
        """Let go of the store."""

    @property
    def finished(self) -> bool:
        """Say whether the stream has ended by itself, as after an error event."""


class Wake(Protocol):
    """Called, often, when a stream has something to pull."""

    def __call__(self) -> None:
        """Make a pull happen soon."""


Answer = CompleteAnswer | Deferred | EventStream


def json_response(document: object, status: int = 200, content_type: str = JSON) -> CompleteAnswer:
    """Encode a document as an answer."""
    return CompleteAnswer(status, [encode(document), b"\n"], content_type)
