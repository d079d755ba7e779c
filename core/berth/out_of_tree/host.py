"""The host of all plugins in other processes: what the scheduler process starts and asks.

    watch --bytes--> RawObjects --> StateFeed (a plugin) --deltas--> Connection --> plugin
    snapshot --steps-----------------^
    queue --questions--> HintAsker --> plugin --news--> queue

Source: docs/protocol.md.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from berth.cache.cache import Cache
from berth.config.profiles import ResolvedProfile
from berth.config.sidecars import SidecarSpec
from berth.framework.cycle_record import CycleRecord
from berth.framework.cycle_state import CycleState
from berth.framework.diagnosis import FitError
from berth.framework.handle import Handle
from berth.objects.node import Node
from berth.objects.pod import Pod
from berth.out_of_tree._generated import identity_pb2, queueing_pb2, scheduling_pb2
from berth.out_of_tree.calls import Caller, Surroundings
from berth.out_of_tree.conditions import Condition
from berth.out_of_tree.connection import Connection, Listeners
from berth.out_of_tree.errors import SidecarError
from berth.out_of_tree.hint_asker import HintAsker
from berth.out_of_tree.plugin_metrics import NoPluginMetrics, PluginMetrics
from berth.out_of_tree.raw_objects import RawObjects
from berth.out_of_tree.sidecar_plugin import SidecarPlugin
from berth.out_of_tree.state_feed import StateFeed
from berth.out_of_tree.waiting_hints import HINTS, WaitingHints, news_from
from berth.profiles.profile_builder import PluginFactory
from berth.queue.hint_questions import HintQuestion
from berth.queue.scheduling_queue import SchedulingQueue
from berth.snapshot.snapshot import Snapshot
from berth.snapshot.snapshot_step import SnapshotStep

log = logging.getLogger(__name__)

_OUTCOMES = {
    "scheduled": scheduling_pb2.CYCLE_OUTCOME_BOUND,
    "unschedulable": scheduling_pb2.CYCLE_OUTCOME_UNSCHEDULABLE,
    "error": scheduling_pb2.CYCLE_OUTCOME_FAILED,
}


class PluginHost:
    """Connections, feeds and plugins for every entry of the plugin list that a profile uses."""

    def __init__(
        self,
        specs: Iterable[SidecarSpec],
        profiles: Iterable[ResolvedProfile],
        *,
        sampled: Callable[[bytes], bool],
        metrics: PluginMetrics | None = None,
        landed: Callable[[Pod, str], Awaitable[bool]] | None = None,
        on_condition: Callable[[str, Condition], None] = lambda _plugin, _condition: None,
    ) -> None:
        self.nodes: RawObjects[Node] = RawObjects()
        self.pods: RawObjects[Pod] = RawObjects()
        self.metrics = metrics or NoPluginMetrics()
        self._around = Surroundings(self.pods, sampled, self.metrics, self._patched, landed)
        self._on_condition = on_condition
        self._specs = {spec.name: spec for spec in specs}
        self._arguments = _arguments(self._specs.values(), profiles)
        self._plugins: dict[tuple[str, str], SidecarPlugin] = {}
        self._askers: dict[tuple[str, str], HintAsker] = {}
        self._feeds: dict[str, StateFeed] = {}
        self.connections: dict[str, Connection] = {}
        self._queue: SchedulingQueue | None = None
        self._waiting_pods: Any = None
        self.rewire: Callable[[str], None] = lambda _profile: None
        """Is told of a profile whose plugins wait for other events than before."""

    def factories(self) -> Mapping[str, PluginFactory]:
        """What makes each plugin in a profile, by name."""
        return {name: self._factory(name) for name in self._specs}

    def open(self, cache: Cache, snapshot: Snapshot) -> None:
        """Follow that snapshot from now on; has to happen before the plugins are made."""
        for name, arguments in self._arguments.items():
            feed = self._feeds[name] = StateFeed(snapshot, self.nodes, self.pods, cache.is_assumed)
            self.connections[name] = Connection(self._specs[name], feed, arguments, self._listeners())
        if self._feeds:
            cache.on_step = self._follow

    def attend(self, queue: SchedulingQueue, waiting_pods: Any) -> None:
        """Carry what plugins say of waiting pods to that queue, and its questions to them."""
        self._queue, self._waiting_pods = queue, waiting_pods
        queue.ask_hints = self._ask_hints

    def work(self) -> Iterator[tuple[str, Any]]:
        """What has to run for as long as the scheduler does: a name and a coroutine for each connection."""
        for name, connection in self.connections.items():
            yield f"plugin {name}", connection.run()

    async def settle(self, seconds: float) -> None:
        """Give plugins that are there a moment to connect, so that the first pods need not be tried twice."""
        waits = [connection.came_up.wait() for connection in self.connections.values()]
        try:
            async with asyncio.timeout(seconds):
                await asyncio.gather(*waits)
        except TimeoutError:
            late = [name for name, connection in self.connections.items() if not connection.ready]
            log.warning("scheduling without plugins that are not there yet plugins=%s", ",".join(late))

    def cycles_done(self, record: CycleRecord) -> Iterator[tuple[str, Any]]:
        """What has to be told to the plugins of a finished attempt's profile."""
        for (name, profile), plugin in self._plugins.items():
            if profile != record.profile:
                continue
            caller = plugin.release(record)
            if record.result == "scheduled" and name in record.rescued_from:
                self.metrics.rescued(name)
            if caller.connection.offers(identity_pb2.EXTENSION_POINT_CYCLE_DONE):
                yield f"end of {record.pod.key} to {name}", _tell_done(caller, record)

    def _listeners(self) -> Listeners:
        return Listeners(
            requeue=self._on_requeue,
            ready=self._on_ready,
            greeted=self._on_greeted,
            condition=self._on_condition,
            exchanged=lambda _plugin, _message: None,
        )

    def _factory(self, name: str) -> PluginFactory:
        def make(args: Any, handle: Handle) -> SidecarPlugin:
            del args  # Configure has handed them over
            return self._make(name, handle)

        return make

    def _make(self, name: str, handle: Handle) -> SidecarPlugin:
        profile = handle.profile_name
        caller = Caller(self.connections[name], self._feeds[name], profile, self._around)
        hints = WaitingHints(lambda: self.connections[name], self._bytes_of)
        plugin = self._plugins[name, profile] = SidecarPlugin(caller, handle, hints)
        self._askers[name, profile] = HintAsker(lambda: plugin.caller, self._bytes_of, self._answered)
        return plugin

    # What the queue asks, and plugins say of it.

    def _ask_hints(self, questions: Sequence[HintQuestion]) -> None:
        by_asker: dict[tuple[str, str], list[HintQuestion]] = {}
        for question in questions:
            key = question.plugin, question.record.pod.spec.scheduler_name
            by_asker.setdefault(key, []).append(question)
        for key, together in by_asker.items():
            self._askers[key].ask(together)

    def _answered(self, queue: Iterable[HintQuestion]) -> None:
        assert self._queue is not None, "the queue asked"
        self._queue.hints_answered(queue)

    def _bytes_of(self, obj: Any) -> bytes:
        """That version of a node or pod as the API server has it; empty where it is not kept any more."""
        return self.nodes.of(obj) if isinstance(obj, Node) else self.pods.of(obj)

    def _on_ready(self, connection: Connection) -> None:
        self._news(connection.spec.name, None)

    async def _on_greeted(self, connection: Connection) -> None:
        """Take over what the plugin waits for, before any of it can happen to its state."""
        if connection.offers(HINTS):
            self.nodes.keeps_earlier = self.pods.keeps_earlier = True
        for name, profile in self._plugins:
            if name == connection.spec.name:
                self.rewire(profile)

    def _on_requeue(self, plugin: str, response: queueing_pb2.RequeueResponse) -> None:
        self.metrics.requeued(plugin)
        match response.WhichOneof("action"):
            case "requeue_all":
                self._news(plugin, None)
            case "requeue":
                self._news(plugin, frozenset(response.requeue.uids))
            case "allow_waiting":
                for uid in response.allow_waiting.uids:
                    if waiting := self._waiting_pods.get(uid):
                        waiting.allow(plugin)
            case "reject_waiting":
                for uid in response.reject_waiting.uids:
                    if waiting := self._waiting_pods.get(uid):
                        waiting.reject(plugin, response.cause)
            case _:
                log.warning("requeue message without an action plugin=%s", plugin)

    def _news(self, plugin: str, uids: frozenset[str] | None) -> None:
        """Retry the pods that the plugin rejected, all of them or those named; those in flight, too."""
        if self._queue is not None:
            self._queue.move_all(news_from(plugin), None, uids)

    # The state that plugins follow.

    def _patched(self, pod: Pod, patch: Mapping[str, Any]) -> Callable[[], None]:
        """Show every plugin what is written to a pod on the wish of one; what takes that back."""
        undo = self.pods.merge_metadata(pod.uid, patch)
        for feed in self._feeds.values():
            feed.patched(pod)
        return undo

    def _follow(self, step: SnapshotStep) -> None:
        for name, feed in self._feeds.items():
            feed.follow(step)
            self.connections[name].notify()


async def _tell_done(caller: Caller, record: CycleRecord) -> None:
    state = CycleState()
    call = caller.head(state, record.pod, with_state=False)
    call.pod.attempt = record.attempt
    request = scheduling_pb2.CycleDoneRequest(
        call=call,
        outcome=_OUTCOMES[record.result],
        node_name=record.node_name or None,
        rejected_by_plugin=caller.plugin in _rejectors(record),
    )
    try:
        await caller.ask("CycleDone", request, state, lambda _: None)
    except SidecarError as error:
        log.debug("plugin not told of an attempt's end pod=%s error=%s", record.pod.key, error)


def _rejectors(record: CycleRecord) -> Collection[str]:
    """The plugins that turned the pod down."""
    status = record.status
    if status is None or not status.rejected:
        return ()
    error = status.error
    return error.diagnosis.unschedulable_plugins if isinstance(error, FitError) else (status.plugin,)


def _arguments(
    specs: Iterable[SidecarSpec], profiles: Iterable[ResolvedProfile]
) -> dict[str, dict[str, Any]]:
    """Each plugin's arguments by profile, for the profiles that name it at some point."""
    using = list(profiles)
    found: dict[str, dict[str, Any]] = {}
    for spec in specs:
        for profile in using:
            if any(name == spec.name for named in profile.points.values() for name, _ in named):
                found.setdefault(spec.name, {})[profile.scheduler_name] = spec.args_for(profile)
    return found
