"""A scheduler whose inputs are noted: what its watches and its scheduling loops call of it.

Source: the calls of berth.scheduler.watching.watches and berth.scheduler.scheduling_loop.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, Protocol

from berth.cache.cache import Cache
from berth.cycle.schedule_one import ScheduleOne
from berth.event_handlers.device_taints import DeviceTaintRuleHandler
from berth.event_handlers.handler import ResourceHandler
from berth.event_handlers.nodes import NodeHandler
from berth.event_handlers.pods import PodHandler
from berth.framework.cluster_event import ActionType
from berth.framework.mirrors.listers import Listers, Store
from berth.framework.queueing.queued_pod import QueuedPodInfo
from berth.queue.scheduling_queue import SchedulingQueue
from berth.recordings.core.spans import CYCLE, DECIDED, EVENT, FLUSH, POP, kind_of
from berth.recordings.core.tape import Tape
from berth.recordings.core.tasks import Tasks
from berth.snapshot.snapshot import Snapshot


class Core(Protocol):
    """A scheduler (berth.scheduler.scheduler.Scheduler), as far as it is driven from outside."""

    queue: SchedulingQueue
    cache: Cache
    snapshot: Snapshot
    schedule_one: ScheduleOne
    listers: Listers
    wanted: dict[str, ActionType]
    node_handler: NodeHandler
    pod_handler: PodHandler
    device_taint_rule_handler: DeviceTaintRuleHandler
    ask_ahead: Callable[[], None]

    def feature_enabled(self, name: str, /) -> bool:
        """Whether a feature is on."""

    def resource_handler(self, resource: str, store: Store[Any]) -> ResourceHandler:
        """A handler for a resource beside nodes and pods, with the store that keeps its objects."""


class RecordedScheduler:
    """A core whose inputs are noted: what of a scheduler its driver and its watches call."""

    def __init__(self, core: Core, tape: Tape, tasks: Tasks) -> None:
        self.queue = RecordedQueue(core.queue, tape)
        self.schedule_one = RecordedCycles(core, tape, tasks)
        self.node_handler = RecordedHandler(core.node_handler, tape)
        self.pod_handler = RecordedHandler(core.pod_handler, tape)
        self.device_taint_rule_handler = RecordedHandler(core.device_taint_rule_handler, tape)
        self.listers, self.wanted = core.listers, core.wanted
        self.feature_enabled, self.ask_ahead = core.feature_enabled, core.ask_ahead
        self._core = core
        self._tape = tape

    def resource_handler(self, resource: str, store: Store[Any]) -> "RecordedHandler":
        """A handler for a resource beside nodes and pods."""
        return RecordedHandler(self._core.resource_handler(resource, store), self._tape)


class RecordedHandler:
    """Implements berth.event_handlers.handler.ResourceHandler."""

    def __init__(self, handler: ResourceHandler, tape: Tape) -> None:
        self.synced = False
        self._handler = handler
        self._tape = tape

    def on_add(self, obj: Any) -> None:
        """An object is new."""
        with self._tape.span(EVENT, "add", kind_of(obj), obj):
            self._handler.on_add(obj)

    def on_update(self, old: Any, new: Any) -> None:
        """An object changed."""
        with self._tape.span(EVENT, "update", kind_of(new), new):
            self._handler.on_update(old, new)

    def on_delete(self, obj: Any) -> None:
        """An object is gone."""
        with self._tape.span(EVENT, "delete", kind_of(obj), obj):
            self._handler.on_delete(obj)

    def on_synced(self) -> None:
        """The first list was handled in full."""
        self.synced = True
        self._handler.on_synced()


class RecordedQueue:
    """What a scheduling loop calls of a queue."""

    def __init__(self, queue: SchedulingQueue, tape: Tape) -> None:
        self._queue = queue
        self._tape = tape
        self.next_flush_time, self.ready = queue.next_flush_time, queue.ready

    def pop(self, shard: str = "") -> QueuedPodInfo | None:
        """The shard's next pod, None where none is ready."""
        with self._tape.span(POP, shard, "") as span:
            info = self._queue.pop(shard)
            span.arguments = (shard, info.pod.uid if info is not None else "")
        return info

    def flush(self) -> None:
        """Do the flushes that are due."""
        with self._tape.span(FLUSH):
            self._queue.flush()


class RecordedCycles:
    """Runs scheduling cycles as tasks of the tape."""

    def __init__(self, core: Core, tape: Tape, tasks: Tasks) -> None:
        self._core = core
        self._tape = tape
        self._tasks = tasks

    async def schedule(self, info: QueuedPodInfo) -> None:
        """Run the scheduling cycle of a popped pod."""
        task = self._tasks.start(cycle_of(self._core, info, self._tape.note), f"cycle of {info.pod.key}")
        with self._tape.span(CYCLE):
            self._tasks.step(task)
        if not task.finished.arrived:
            over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            task.finished.then(partial(_arrive, over))
            await over
        task.outcome()


def _arrive(over: asyncio.Future[None]) -> None:
    if not over.done():
        over.set_result(None)


async def cycle_of(core: Core, info: QueuedPodInfo, note: Callable[..., None]) -> None:
    """The scheduling cycle of a popped pod, and what was decided in it as an output."""
    await core.schedule_one.schedule(info)
    pod = info.pod
    cached = core.cache.get_pod(pod.uid)
    node = cached.node_name if cached is not None else ""
    plugins = [] if node else sorted(info.rejectors)
    note(DECIDED, pod.key, pod.uid, node, plugins, core.queue.nominator.node_of(pod.uid))
