"""Sidecars and HTTP extenders, as the scheduler of a process meets them.

made --> the scheduler is made with `factories` and `extenders` --> plugin_upkeep.py

Most schedulers have neither. What serves them, with gRPC and aiohttp's client, takes 0.4 s of CPU to import:
so it is imported and made here where the first is met, at the start or later.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from berth.client.transport import Transport
from berth.framework.attempts.cycle_record import CycleRecord
from berth.framework.extender import Extender
from berth.framework.ports.plugin_metrics import PluginMetrics
from berth.objects.node import Node
from berth.objects.pods.pod import Pod
from berth.out_of_tree.cluster_state.raw_objects import RawObjects
from berth.out_of_tree.connections.conditions import PluginCondition
from berth.plugins.registry import IN_TREE
from berth.profiles.profile_builder import PluginFactory
from berth.queue.requeueing.hint_questions import HintQuestion, HintsAnswered, queue_all
from berth.scheduler.leading.fence import WatchedMirror
from berth.scheduler.loop.background import AsyncioBackground
from berth.scheduler.loop.running_tasks import RunningTasks
from berth.scheduler.plugin_source import SchedulerParts
from berth.scheduler.process_options import ProcessOptions
from berth.scheduler.writing.writers import Writers

if TYPE_CHECKING:
    from berth.out_of_tree.extender import HttpExtenders
    from berth.out_of_tree.host import PluginHost


class OutOfTreePlugins:
    """The host of sidecars, once there is one, and the extenders of the configuration.

    `sampled` says whether a trace is recorded, by its number. Kinds that only plugins want are watched over
    the transport, by tasks of the process.
    """

    def __init__(
        self,
        options: ProcessOptions,
        *,
        writers: Writers,
        metrics: PluginMetrics,
        sampled: Callable[[bytes], bool],
        on_condition: Callable[[str, PluginCondition], None],
        transport: Transport,
        tasks: RunningTasks,
    ) -> None:
        self.nodes: RawObjects[Node] = RawObjects()
        self.pods: RawObjects[Pod] = RawObjects()
        self.mirrors: list[WatchedMirror] = []
        """The kinds that only plugins watch, as the fence sees them."""
        self.hosted: PluginHost | None = None
        """The host of sidecars, None as long as there was none to host."""
        self._options = options
        self._writers = writers
        self._metrics = metrics
        self._sampled = sampled
        self._on_condition = on_condition
        self._transport = transport
        self._tasks = tasks
        self._new_host: Callable[[], PluginHost] | None = None
        self._extenders = self._new_extenders() if options.loaded.extenders else None

    @property
    def host(self) -> "PluginHost":
        """The host of sidecars, made now where there is none."""
        if self.hosted is None:
            assert self._new_host is not None, "there is a scheduler for it"
            self.hosted = self._new_host()
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

    def factories(self, parts: SchedulerParts) -> Mapping[str, PluginFactory]:
        """What makes each plugin, those of this process and the others; a host follows these parts."""
        self._new_host = partial(self._host_for, parts)
        return {**IN_TREE, **(self.host.factories() if self._options.has_sidecars else {})}

    def ask_hints(self, questions: Sequence[HintQuestion], answered: HintsAnswered) -> None:
        """Ask sidecars whether events may help the pods that they rejected."""
        if self.hosted is None:
            queue_all(questions, answered)
        else:
            self.hosted.ask_hints(questions)

    def ask_ahead(self) -> None:
        """Ask sidecars what the next pods need to know."""
        if self.hosted is not None:
            self.hosted.ask_ahead()

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

    def _host_for(self, parts: SchedulerParts) -> "PluginHost":
        from berth.out_of_tree.host import PluginHost  # noqa: PLC0415 (see the top)
        from berth.scheduler.sidecars.plugin_watches import watch  # noqa: PLC0415 (see the top)

        return PluginHost(
            self._options.sidecars,
            self._options.loaded.profiles,
            cache=parts.cache,
            snapshot=parts.snapshot,
            answers=parts.answers,
            queue=parts.queue,
            waiting_pods=parts.waiting_pods,
            sampled=self._sampled,
            watch=partial(watch, self._transport, self._tasks, self.mirrors),
            rewire=parts.rewire,
            metrics=self._metrics,
            landed=self._writers.pods.landed,
            on_condition=self._on_condition,
            kept=self,
            wake=parts.wake,
        )

    def _new_extenders(self) -> "HttpExtenders":
        from berth.out_of_tree.extender import (  # noqa: PLC0415 (see the top)
            ExtenderContext,
            HttpExtenders,
        )

        writers = self._writers
        around = ExtenderContext(self.nodes, self.pods, self._sampled, writers.pods.landed, writers.may_write)
        return HttpExtenders(self._options.loaded.extenders, around)
