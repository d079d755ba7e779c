"""What a scheduler process is started with, and where it shows itself.

Source: spec/config.md 15.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from berth.client.transport import REQUEST_SECONDS
from berth.config.loading import Loaded
from berth.config.sidecars import SidecarSpec, SocketDirectory
from berth.framework.cycle_record import CycleRecord
from berth.scheduler.core_assembly import SchedulerCore
from berth.scheduler.gate import ALWAYS_ALLOWED, Review
from berth.scheduler.serving import Endpoints, SecureServer, listen
from berth.scheduler.serving_certificate import server_context
from berth.telemetry.tracing import Tracing


@dataclass(frozen=True, slots=True)
class Serving:
    """Where the process shows itself; port 0 stands for nowhere."""

    address: str = "127.0.0.1"
    port: int = 0
    certificate_file: str = ""
    key_file: str = ""
    always_allowed: tuple[str, ...] = ALWAYS_ALLOWED

    async def start(self, endpoints: Endpoints, review: Review) -> SecureServer | None:
        """Serve, if anything is to be served.

        Raises: StartError where address or certificate can't be used.
        """
        listener = listen(self.address, self.port)
        if listener is None:
            return None
        context = server_context(self.certificate_file, self.key_file)
        return await SecureServer.start(
            listener, context, endpoints, review=review, always_allowed=self.always_allowed
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
