"""Watches of the kinds that sidecars want to see, beside those of the scheduler itself."""

import asyncio
import logging
from collections.abc import Callable

from berth.client.errors import DeadlineError
from berth.client.resources import Resource
from berth.client.transport import Transport
from berth.client.watching.freshness import Absence
from berth.client.watching.reflector import Reflector
from berth.client.watching.watch import WatchSource
from berth.framework.clock import SystemClock
from berth.out_of_tree.cluster_state.watched_objects import (
    ObjectsOfKind,
    WatchedKind,
    WatchedObject,
    decode_object,
)
from berth.scheduler.leading.fence import WatchedMirror
from berth.scheduler.loop.running_tasks import RunningTasks

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
                log.warning("kind of plugins not proven, its last state stands resource=%s", plural)
        finally:
            proof.cancel()
            stopped.cancel()


def watch(
    transport: Transport,
    tasks: RunningTasks,
    mirrors: list[WatchedMirror],
    kind: WatchedKind,
    handler: ObjectsOfKind,
) -> Callable[[], None]:
    """Start a watch of that kind beside all others; what ends it."""
    resource = Resource(kind.group, kind.version, kind.resource, namespaced=True)
    source = WatchSource(resource, label_selector=kind.label_selector)
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
