"""The plugins of a simulation: those of this process, and what others need of it (outside_plugins.py)."""

import math
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from berth.event_handlers.handler import ResourceHandler
from berth.framework.attempts.cycle_record import CycleRecord
from berth.framework.clock import Clock
from berth.objects.pods.pod import Pod
from berth.plugins.registry import IN_TREE
from berth.scheduler.plugin_source import InProcessPlugins, PluginSource
from berth.scheduler.scheduler import Scheduler
from berth.simulation.cluster.virtual_time import Spawn
from berth.simulation.errors import PluginsError
from berth.simulation.plugins.plugin_calls import PluginUse
from berth.simulation.plugins.plugin_settings import check_all_there
from berth.simulation.queue_shares.samples import QueueState
from berth.simulation.reading.kinds import SimulatedKind

if TYPE_CHECKING:
    from berth.simulation.cluster.state import ClusterState
    from berth.simulation.reading.inputs import ClusterInput
    from berth.simulation.running.options import SimulationOptions


class SimulationPlugins(Protocol):
    """What a simulation needs of its plugins."""

    present: bool
    """Whether there is any sidecar."""

    def source(self, state: "ClusterState", clock: Clock) -> PluginSource:
        """Where the scheduler gets them from. Called once."""

    def shown(self, kind: SimulatedKind, handler: ResourceHandler) -> ResourceHandler:
        """The handler of that kind's objects, which shows them to plugins as well."""

    def connect(self, core: Scheduler, spawn: Spawn) -> None:
        """Put them into their profiles, and wait until each can be asked. Raises: PluginsError."""

    def ended(self, record: CycleRecord) -> None:
        """An attempt ended."""

    def moves(self) -> bool:
        """Let plugins follow before virtual time passes; whether one of them moved anything."""

    def next_wake(self, progress: float) -> float:
        """When one of them wants to be woken, in virtual seconds; inf if none does.

        `progress` is when the last thing came of anything: plugins that are woken in vain are not for ever.
        """

    def show(self, pod: Pod) -> None:
        """Show a pod that is decided on and was never created."""

    def hide(self, pod: Pod) -> None:
        """Forget such a pod."""

    def may_let_go_on(self, uid: str, gating: str) -> str:
        """The one that has a pod wait, `gating` it or not, and can let it go on by itself; "" if none."""

    def queues(self) -> dict[str, QueueState]:
        """What each queue has now. Raises: PluginsError where no plugin shows any."""

    def shown_kinds(self) -> Counter[str]:
        """How many of the input's further objects one of them was shown, by kind."""

    def uses(self) -> list[PluginUse]:
        """What became of the calls of each, in the order of the files."""


class NoOutsidePlugins:
    """All plugins are of this process."""

    present = False

    def source(self, state: "ClusterState", clock: Clock) -> PluginSource:
        """The in-tree plugins."""
        del state, clock
        return InProcessPlugins(IN_TREE)

    def shown(self, kind: SimulatedKind, handler: ResourceHandler) -> ResourceHandler:
        """The handler as it is."""
        del kind
        return handler

    def connect(self, core: Scheduler, spawn: Spawn) -> None:
        """Do nothing."""

    def ended(self, record: CycleRecord) -> None:
        """Do nothing."""

    def moves(self) -> bool:
        """Nothing moves by itself."""
        return False

    def next_wake(self, progress: float) -> float:
        """Never."""
        del progress
        return math.inf

    def show(self, pod: Pod) -> None:
        """Do nothing."""

    def hide(self, pod: Pod) -> None:
        """Do nothing."""

    def may_let_go_on(self, uid: str, gating: str) -> str:
        """None."""
        del uid, gating
        return ""

    def queues(self) -> dict[str, QueueState]:
        """None. Raises: PluginsError."""
        raise PluginsError("--queues-every: no plugin takes part; add --plugin queues=berth-queues")

    def shown_kinds(self) -> Counter[str]:
        """None."""
        return Counter()

    def uses(self) -> list[PluginUse]:
        """None."""
        return []


@contextmanager
def plugins_of(cluster: "ClusterInput", options: "SimulationOptions") -> Iterator[SimulationPlugins]:
    """The plugins of one simulation, ended at last. Raises: PluginsError."""
    check_all_there(options.loaded, options.plugins)
    if not options.plugins.sidecars and not options.loaded.extenders:
        yield NoOutsidePlugins()
        return
    # gRPC and an HTTP client take 0.4 s of CPU to import.
    from berth.simulation.plugins.outside_plugins import OutsidePlugins  # noqa: PLC0415 (see above)

    shows_queues = options.queues_every > 0
    with OutsidePlugins(cluster, options.loaded, options.plugins, shows_queues=shows_queues) as plugins:
        yield plugins
