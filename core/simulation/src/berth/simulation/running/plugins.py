"""The plugins of a simulation: in-tree plugins, and the interface for others (outside_plugins.py)."""

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
    """The interface of a simulation's plugins."""

    present: bool
    """Whether there is any sidecar."""

    def source(self, state: "ClusterState", clock: Clock) -> PluginSource:
        """The source of the scheduler's plugins. Called once."""

    def shown(self, kind: SimulatedKind, handler: ResourceHandler) -> ResourceHandler:
        """Wrap the handler of a kind so that plugins receive its objects, too."""

    def connect(self, core: Scheduler, spawn: Spawn) -> None:
        """Enable them in their profiles, and wait until each is ready. Raises: PluginsError."""

    def ended(self, record: CycleRecord) -> None:
        """Handle the end of an attempt."""

    def moves(self) -> bool:
        """Synchronize plugins before virtual time passes; returns whether one of them requeued pods."""

    def next_wake(self, progress: float) -> float:
        """The next timer of a plugin, in virtual seconds; inf if none has one.

        `progress` is the time of the last effect: plugins that are woken in vain are not woken for ever.
        """

    def show(self, pod: Pod) -> None:
        """Send a hypothetical pod, which was never created, to plugins."""

    def hide(self, pod: Pod) -> None:
        """Drop a hypothetical pod."""

    def may_let_go_on(self, uid: str, gating: str) -> str:
        """The plugin that makes a pod wait, `gating` it or not, and may end that by itself; "" if none."""

    def queues(self) -> dict[str, QueueState]:
        """The state of each queue. Raises: PluginsError where no plugin shows any."""

    def shown_kinds(self) -> Counter[str]:
        """How many of the input's further objects one of them received, by kind."""

    def uses(self) -> list[PluginUse]:
        """The outcomes of each plugin's calls, in the order of the files."""


class NoOutsidePlugins:
    """A simulation with in-tree plugins alone."""

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
    """The plugins of one simulation, until the block ends. Raises: PluginsError."""
    check_all_there(options.loaded, options.plugins)
    if not options.plugins.sidecars and not options.loaded.extenders:
        yield NoOutsidePlugins()
        return
    # gRPC and an HTTP client take 0.4 s of CPU to import.
    from berth.simulation.plugins.outside_plugins import OutsidePlugins  # noqa: PLC0415 (see above)

    shows_queues = options.queues_every > 0
    with OutsidePlugins(cluster, options.loaded, options.plugins, shows_queues=shows_queues) as plugins:
        yield plugins
