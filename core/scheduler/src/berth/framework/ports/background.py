"""Concurrency as it is handed to the core, which awaits but owns neither loop nor tasks."""

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextvars import Context
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Promise(Protocol):
    """A value that arrives once; awaiting it waits for that."""

    def set(self, value: Any) -> bool:
        """Deliver; False where a value was delivered before."""

    def __await__(self) -> Any:
        """The value."""


class Timer(Protocol):
    """A call that is going to be made."""

    def cancel(self) -> None:
        """Do not make it."""


class Background(Protocol):
    """What runs beside the scheduling loop."""

    def spawn(self, work: Coroutine[Any, Any, None], name: str, context: Context | None = None) -> None:
        """Run it under the scheduler's task group, in the caller's context or the one given.

        It handles its own failures.
        """

    def outcome(self) -> Promise:
        """A place for a value that arrives later."""

    def call_later(self, seconds: float, call: Callable[[], None]) -> Timer:
        """Make the call after that time."""

    async def unless(self, stop: Promise, work: Awaitable[T]) -> T | None:
        """The work's result; None where the outcome comes first: then the work has been cancelled."""

    async def breathe(self) -> None:
        """Let everything else have its turn, in the midst of work that takes long."""

    async def all_of(self, work: Sequence[Awaitable[T]]) -> list[T]:
        """Run side by side; the results in order."""
