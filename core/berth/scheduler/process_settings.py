"""What a scheduler process is started with, and where it shows itself.

Source: spec/config.md 15.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from berth.client.transport import REQUEST_SECONDS
from berth.config.loading import Loaded
from berth.config.sidecars import SidecarSpec, SocketDirectory
from berth.framework.cycle_record import CycleRecord
from berth.scheduler.access import ALWAYS_ALLOWED, Review
from berth.scheduler.core_assembly import SchedulerCore
from berth.scheduler.listening import listen
from berth.scheduler.serving_certificate import server_context
from berth.telemetry.tracing import Tracing

if TYPE_CHECKING:
    from berth.scheduler.serving import Endpoints, SecureServer


class Port(NamedTuple):
    """A port that listens, and the certificate that is named for it; None for one to be made."""

    listener: socket.socket
    certificate: ssl.SSLContext | None


@dataclass(frozen=True, slots=True)
class Serving:
    """Where the process shows itself; port 0 stands for nowhere."""

    address: str = "127.0.0.1"
    port: int = 0
    certificate_file: str = ""
    key_file: str = ""
    always_allowed: tuple[str, ...] = ALWAYS_ALLOWED

    def open(self) -> Port | None:
        """Take the port, if anything is to be served; who connects waits for `start`.

        Raises: StartError where address or certificate can't be used.
        """
        listener = listen(self.address, self.port)
        if listener is None:
            return None
        named = self.certificate_file or self.key_file
        return Port(listener, server_context(self.certificate_file, self.key_file) if named else None)

    async def start(self, port: Port, endpoints: "Endpoints", review: Review) -> "SecureServer":
        """Serve on the open port."""
        # Imported here: aiohttp takes 0.3 s of CPU, which the first lists need not wait for.
        from berth.scheduler.serving import SecureServer  # noqa: PLC0415 (see above)

        context = port.certificate
        if context is None:
            context = await asyncio.to_thread(server_context)
        return await SecureServer.start(
            port.listener, context, endpoints, review=review, always_allowed=self.always_allowed
        )


@dataclass(frozen=True, slots=True)
class ProcessSettings:
    """What a scheduler process is started with."""

    loaded: Loaded
    sidecars: tuple[SidecarSpec, ...] = ()
    plugins_file: str = ""
    """Where the sidecars are listed; changes of it are followed. Empty for a list that stays as it is."""
    directory: SocketDirectory | None = None
    """Where more of them may appear."""
    master: str = ""
    seed: int | None = None
    max_in_unschedulable_seconds: float = 300.0
    request_seconds: float = REQUEST_SECONDS
    tracing: Tracing = field(default_factory=Tracing)
    serving: Serving = field(default_factory=Serving)
    flags: Mapping[str, Any] = field(default_factory=dict)
    """Every flag's value, to be shown."""
    on_record: Callable[[CycleRecord], None] = lambda _: None
    on_ready: Callable[[SchedulerCore], None] = lambda _: None

    @property
    def has_sidecars(self) -> bool:
        """Whether there are plugins in other processes from the start, or may be as soon as they appear."""
        return bool(self.sidecars or self.plugins_file or self.directory is not None)
