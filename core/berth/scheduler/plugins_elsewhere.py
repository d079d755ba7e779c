"""Plugins in other processes and HTTP extenders, as the core of a scheduler process meets them.

made --> the core is assembled with `factories` and `extenders`, and `connect` --> plugin_upkeep.py
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from functools import partial

from berth.client.errors import DeadlineError
from berth.client.freshness import Absence
from berth.client.reflector import Reflector
from berth.client.resources import Resource
from berth.client.timing import SystemClock
from berth.client.transport import Transport
from berth.client.watch import Source
from berth.framework.cycle_record import CycleRecord
from berth.out_of_tree.conditions import Condition
from berth.out_of_tree.extender import ExtenderSurroundings, HttpExtenders
from berth.out_of_tree.host import PluginHost
from berth.out_of_tree.plugin_metrics import PluginMetrics
from berth.out_of_tree.watched_objects import (
    ObjectsOfKind,
    WatchedKind,
    WatchedObject,
    decode_object,
)
from berth.plugins.registry import IN_TREE
from berth.profiles.profile_builder import PluginFactory
from berth.scheduler.background import AsyncioBackground
from berth.scheduler.core_assembly import Shared
from berth.scheduler.process_settings import ProcessSettings
from berth.scheduler.running_tasks import RunningTasks
from berth.scheduler.writers import Writers

log = logging.getLogger(__name__)

LISTING_SECONDS = 30.0
"""How long the first list of a kind may take before it is said that it does not come."""


class PluginMirror:
    """A kind that only plugins watch, as the fence sees it.

    After a change of leaders it is proven like all others, but waited for no longer than for a first list:
    the server of such a kind may be another one than the API server, and away for long. For the same reason
    it is never in doubt because its watch is away.
    """

    def __init__(self, reflector: Reflector[WatchedObject]) -> None:
        self.source = reflector.source
        self.absence = Absence(SystemClock())
        self.stopped = asyncio.Event()
        """Set once no plugin wants the kind any more."""
        self._reflector = reflector

    async def prove(self) -> None:
        """Return once the kind is proven, or is not waited for any more. Raises: ObjectError."""
        proof = asyncio.ensure_future(self._reflector.prove())
        stopped = asyncio.ensure_future(self.stopped.wait())
        try:
            await asyncio.wait((proof, stopped), timeout=LISTING_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            if proof.done():
                proof.result()
            elif not stopped.done():
                plural = self.source.resource.plural
                log.warning("kind of plugins not proven, its last state stands: resource=%s", plural)
        finally:
            proof.cancel()
            stopped.cancel()


class PluginsElsewhere:
    """The host of sidecars, and the extenders of the configuration."""

    def __init__(
        self,
        settings: ProcessSettings,
        writers: Writers,
        metrics: PluginMetrics,
        on_condition: Callable[[str, Condition], None],
    ) -> None:
        sampled, landed = settings.tracing.sampled, writers.pods.landed
        self.mirrors: list[PluginMirror] = []
        """The kinds that only plugins watch, as the fence sees them."""
        self.host = PluginHost(
            settings.sidecars,
            settings.loaded.profiles,
            sampled=sampled,
            metrics=metrics,
            landed=landed,
            on_condition=on_condition,
        )
        self.extenders = HttpExtenders(
            settings.loaded.extenders,
            ExtenderSurroundings(self.host.nodes, self.host.pods, sampled, landed, writers.may_write),
        )

    def registry(self) -> Mapping[str, PluginFactory]:
        """All plugins, those of this process and the others."""
        return {**IN_TREE, **self.host.factories()}

    def connect(self, shared: Shared) -> None:
        """Let the sidecars know the core's shared parts, before any plugin is made."""
        self.host.open(shared.cache, shared.snapshot)
        self.host.attend(shared.queue, shared.waiting_pods)

    def watch_with(self, transport: Transport, tasks: RunningTasks) -> None:
        """Watch the kinds that sidecars want to see over that transport."""
        self.host.objects.start = partial(_watch, transport, tasks, self.mirrors)

    def with_records(
        self, tell: Callable[[CycleRecord], None], background: AsyncioBackground
    ) -> Callable[[CycleRecord], None]:
        """What to call with each record: sidecars hear of it after `tell`, shadows put theirs in before."""

        def on_record(record: CycleRecord) -> None:
            self.host.shadows.ending(record)
            tell(record)
            for name, work in self.host.cycles_done(record):
                background.spawn(work, name)

        return on_record


def _watch(
    transport: Transport,
    tasks: RunningTasks,
    mirrors: list[PluginMirror],
    kind: WatchedKind,
    handler: ObjectsOfKind,
) -> Callable[[], None]:
    """Start a watch of that kind beside all others; what ends it."""
    resource = Resource(kind.group, kind.version, kind.resource, namespaced=True)
    source = Source(resource, label_selector=kind.label_selector)
    reflector = Reflector(transport, source, decode_object, handler)
    mirror = PluginMirror(reflector)
    mirrors.append(mirror)
    watch = tasks.spawn(reflector.run(), f"watch of {kind.events} for plugins")
    look = tasks.spawn(_look(reflector, kind, handler), f"listing of {kind.events} for plugins")

    def stop() -> None:
        mirrors.remove(mirror)
        mirror.stopped.set()
        watch.cancel()
        look.cancel()

    return stop


async def _look(reflector: Reflector[WatchedObject], kind: WatchedKind, handler: ObjectsOfKind) -> None:
    try:
        await reflector.wait_synced(LISTING_SECONDS)
    except DeadlineError:
        why = "the API server has no such kind, or this scheduler no right to it"
        handler.on_overdue(f"{kind.events} not listed within {LISTING_SECONDS:g} s: {why}")
