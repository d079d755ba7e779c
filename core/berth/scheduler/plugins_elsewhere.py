"""Plugins in other processes and HTTP extenders, as the core of a scheduler process meets them.

made --> the core is assembled with `registry` and `extenders`, and `connect` --> plugin_upkeep.py

Most schedulers have neither. What serves them, with gRPC and aiohttp's client, takes 0.4 s of CPU to import:
so it is imported and made here where the first is met, at the start or later.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from berth.client.transport import Transport
from berth.framework.cycle_record import CycleRecord
from berth.framework.extender import Extender
from berth.objects.node import Node
from berth.objects.pod import Pod
from berth.out_of_tree.conditions import Condition
from berth.out_of_tree.plugin_metrics import PluginMetrics
from berth.out_of_tree.raw_objects import RawObjects
from berth.plugins.registry import IN_TREE
from berth.profiles.profile_builder import PluginFactory
from berth.scheduler.background import AsyncioBackground
from berth.scheduler.core_assembly import Shared
from berth.scheduler.fence import Mirror
from berth.scheduler.process_settings import ProcessSettings
from berth.scheduler.running_tasks import RunningTasks
from berth.scheduler.writers import Writers

if TYPE_CHECKING:
    from berth.out_of_tree.extender import HttpExtenders
    from berth.out_of_tree.host import PluginHost


class PluginsElsewhere:
    """The host of sidecars, once there is one, and the extenders of the configuration."""

    def __init__(
        self,
        settings: ProcessSettings,
        writers: Writers,
        metrics: PluginMetrics,
        on_condition: Callable[[str, Condition], None],
        watching: tuple[Transport, RunningTasks],
    ) -> None:
        self.nodes: RawObjects[Node] = RawObjects()
        self.pods: RawObjects[Pod] = RawObjects()
        self.mirrors: list[Mirror] = []
        """The kinds that only plugins watch, as the fence sees them."""
        self.rewire: Callable[[str], None] = lambda _profile: None
        """Is told of a profile whose plugins wait for other events than before."""
        self._settings = settings
        self._writers = writers
        self._metrics = metrics
        self._on_condition = on_condition
        self._watching = watching
        self._shared: Shared | None = None
        self._extenders = self._new_extenders() if settings.loaded.extenders else None
        self.hosted: PluginHost | None = self._new_host() if settings.has_sidecars else None
        """The host of sidecars, None as long as there was none to host."""

    @property
    def host(self) -> "PluginHost":
        """The host of sidecars, made now where there is none."""
        if self.hosted is None:
            self.hosted = self._new_host()
            self._join(self.hosted)
        return self.hosted

    @property
    def extenders(self) -> Sequence[Extender]:
        """Those of the configuration, in calling order."""
        return self._extenders or ()

    @property
    def want_objects(self) -> bool:
        """Whether plugins or extenders that there are at the start are sent nodes or pods."""
        sidecars = self.hosted is not None and bool(self.hosted.versions)
        return sidecars or (self._extenders is not None and self._extenders.want_objects)

    def registry(self) -> Mapping[str, PluginFactory]:
        """All plugins, those of this process and the others."""
        return {**IN_TREE, **(self.hosted.factories() if self.hosted else {})}

    def connect(self, shared: Shared) -> None:
        """Let the sidecars know the core's shared parts, before any plugin is made."""
        self._shared = shared
        if self.hosted is not None:
            self._join(self.hosted)

    async def settle(self, seconds: float) -> None:
        """Give sidecars that are there a moment to connect."""
        if self.hosted is not None:
            await self.hosted.settle(seconds)

    async def close(self) -> None:
        """Close the connections to extenders, and end what shadows follow."""
        if self._extenders is not None:
            await self._extenders.close()
        if self.hosted is not None:
            self.hosted.shadows.close()

    def with_records(
        self, tell: Callable[[CycleRecord], None], background: AsyncioBackground
    ) -> Callable[[CycleRecord], None]:
        """What to call with each record: sidecars hear of it after `tell`, shadows put theirs in before."""

        def on_record(record: CycleRecord) -> None:
            host = self.hosted
            if host is None:
                tell(record)
                return
            host.shadows.ending(record)
            tell(record)
            for name, work in host.cycles_done(record):
                background.spawn(work, name)

        return on_record

    def _join(self, host: "PluginHost") -> None:
        assert self._shared is not None, "connected first"
        host.open(self._shared.cache, self._shared.snapshot)
        host.attend(self._shared.queue, self._shared.waiting_pods)

    def _rewired(self, profile: str) -> None:
        # The core, which is to take note of it, is assembled with the host.
        self.rewire(profile)

    def _new_host(self) -> "PluginHost":
        from berth.out_of_tree.host import PluginHost  # noqa: PLC0415 (see the top)
        from berth.scheduler.plugin_watches import watch  # noqa: PLC0415 (see the top)

        settings = self._settings
        host = PluginHost(
            settings.sidecars,
            settings.loaded.profiles,
            sampled=settings.tracing.sampled,
            metrics=self._metrics,
            landed=self._writers.pods.landed,
            on_condition=self._on_condition,
            kept=self,
        )
        host.objects.start = partial(watch, *self._watching, self.mirrors)
        host.rewire = self._rewired
        return host

    def _new_extenders(self) -> "HttpExtenders":
        from berth.out_of_tree.extender import (  # noqa: PLC0415 (see the top)
            ExtenderSurroundings,
            HttpExtenders,
        )

        sampled, writers = self._settings.tracing.sampled, self._writers
        around = ExtenderSurroundings(self.nodes, self.pods, sampled, writers.pods.landed, writers.may_write)
        return HttpExtenders(self._settings.loaded.extenders, around)
