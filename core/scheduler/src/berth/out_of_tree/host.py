"""The host of all sidecars: what the scheduler process starts and calls.

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
from berth.config.out_of_tree.sidecars import SidecarSpec
from berth.config.profiles import ResolvedProfile
from berth.evaluation.caching.equivalence_cache import EquivalenceCache
from berth.framework.attempts.cycle_record import CycleRecord
from berth.framework.attempts.cycle_state import CycleState
from berth.framework.attempts.diagnosis import FitError
from berth.framework.clock import SYSTEM_CLOCK, Clock
from berth.framework.handle import Handle, WaitingPod, WaitingPods
from berth.framework.ports.plugin_metrics import PluginMetrics
from berth.objects.node import Node
from berth.objects.pods.pod import Pod
from berth.out_of_tree.calls import CallContext, Caller
from berth.out_of_tree.cluster_state.nominations import Nominations
from berth.out_of_tree.cluster_state.raw_objects import KeptObjects, RawObjects
from berth.out_of_tree.cluster_state.state_feed import StateFeed
from berth.out_of_tree.cluster_state.watched_objects import StartWatch, WatchedObject, WatchedObjects
from berth.out_of_tree.connections.conditions import PluginCondition
from berth.out_of_tree.connections.connection import Listeners, PluginConnection
from berth.out_of_tree.errors import SidecarError
from berth.out_of_tree.packing import sort_keys_of
from berth.out_of_tree.plugin_text import bounded
from berth.out_of_tree.points.asking_ahead import CLASSES_AHEAD, LookAhead
from berth.out_of_tree.points.sidecar_plugin import SidecarPlugin
from berth.out_of_tree.points.sidecar_point import PRE_ENQUEUE
from berth.out_of_tree.queueing.hint_asker import HintAsker
from berth.out_of_tree.queueing.waiting_hints import HINTS, WaitingHints, requeue_event
from berth.out_of_tree.shadowing.shadows import Shadows
from berth.out_of_tree.versions import PluginVersion
from berth.profiles.profile_builder import PluginFactory
from berth.queue.requeueing.hint_questions import HintQuestion
from berth.queue.scheduling_queue import SchedulingQueue
from berth.snapshot.snapshot import Snapshot
from berth.snapshot.snapshot_step import SnapshotStep
from berth_plugin_proto import identity_pb2, queueing_pb2, scheduling_pb2

log = logging.getLogger(__name__)

MOMENT_SECONDS = 0.002

_OUTCOMES = {
    "scheduled": scheduling_pb2.CYCLE_OUTCOME_BOUND,
    "unschedulable": scheduling_pb2.CYCLE_OUTCOME_UNSCHEDULABLE,
    "error": scheduling_pb2.CYCLE_OUTCOME_FAILED,
}


class PluginHost:
    """Connections, feeds and plugins for every entry of the plugin list that a profile uses.

    What plugins answer about nodes is kept in `answers`, the equivalence cache. `watch` starts a watch of a
    further kind that plugins want. `rewire` is called with a profile whose
    plugins wait for other events than before. The queue's questions come by `ask_hints`. Circuits of plugins
    pause by `clock`.
    """

    def __init__(
        self,
        specs: Iterable[SidecarSpec],
        profiles: Iterable[ResolvedProfile],
        *,
        cache: Cache,
        snapshot: Snapshot,
        answers: EquivalenceCache,
        queue: SchedulingQueue,
        waiting_pods: WaitingPods,
        sampled: Callable[[bytes], bool],
        watch: StartWatch,
        rewire: Callable[[str], None],
        metrics: PluginMetrics | None = None,
        landed: Callable[[Pod, str], Awaitable[bool]] | None = None,
        on_condition: Callable[[str, PluginCondition], None] = lambda _plugin, _condition: None,
        kept: KeptObjects | None = None,
        wake: Callable[[], None] = lambda: None,
        classes_ahead: int = CLASSES_AHEAD,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self.nodes: RawObjects[Node] = kept.nodes if kept else RawObjects()
        self.pods: RawObjects[Pod] = kept.pods if kept else RawObjects()
        self.rewire = rewire
        self._wake = wake
        self._clock = clock
        self._look_ahead = LookAhead(classes_ahead, queue.upcoming, self._look_soon)
        self._looking = False
        """Whether the scheduler is about to be woken."""
        if classes_ahead:
            self.nodes.followers.append(self._look_soon)
            self.pods.followers.append(self._look_soon)
        self.metrics = metrics or PluginMetrics()
        self._around = CallContext(
            self.pods, sampled, self.metrics, self._patched, landed, queue.take_sort_keys
        )
        self._on_condition = on_condition
        self._specs = {spec.name: spec for spec in specs}
        using = list(profiles)
        self._own = {each.scheduler_name: each.args for each in using}
        self._arguments = _arguments(self._specs.values(), using)
        self._askers: dict[tuple[str, str], HintAsker] = {}
        self._cache = cache
        self._snapshot = snapshot
        self._answers = answers
        self._queue = queue
        self._waiting_pods = waiting_pods
        self._objects = WatchedObjects(watch, queue.move_all)
        self._telling = False
        """Whether plugins are about to be sent promised pods."""
        self.plugins: dict[tuple[str, str], SidecarPlugin] = {}
        """By name and profile."""
        self.versions: dict[str, PluginVersion] = {}
        """The one of each plugin that new attempts begin with, by name."""
        self.others: list[PluginVersion] = []
        """Those that are not used yet, or not any more."""
        self.shadows = Shadows(_tell_done)
        """The plugins that follow attempts and have no say in them."""
        cache.followers.append(self._follow)
        queue.nominator.followers.append(self._nominated)
        for name, arguments in self._arguments.items():
            self.versions[name] = self.new_version(self._specs[name], arguments)

    @property
    def connections(self) -> dict[str, PluginConnection]:
        """The connection of each plugin that new attempts begin with, by name."""
        return {name: version.connection for name, version in self.versions.items()}

    def own_arguments(self, plugin: str) -> dict[str, Any]:
        """The arguments that profiles have of their own for that plugin, in their pluginConfig."""
        return {profile: args[plugin] for profile, args in self._own.items() if plugin in args}

    def factories(self) -> Mapping[str, PluginFactory]:
        """The factory of each plugin, by name."""
        return {name: self._factory(name) for name in self._specs}

    def new_version(self, spec: SidecarSpec, arguments: Mapping[str, Any]) -> PluginVersion:
        """A new connection to that plugin and its state feed, not yet started."""
        feed = StateFeed(
            self._snapshot,
            self.nodes,
            self.pods,
            self._cache.is_assumed,
            objects=self._objects,
            nominations=Nominations(self._queue.nominator, self.pods),
        )
        feed.begin()
        return PluginVersion(PluginConnection(spec, feed, arguments, self._listeners(), self._clock), feed)

    def work(self) -> Iterator[tuple[str, Any]]:
        """The coroutines to run for as long as the scheduler does, one for each connection, with a name."""
        for name, version in self.versions.items():
            yield f"plugin {name}", self._keep_up(version)

    async def _keep_up(self, version: PluginVersion) -> None:
        version.task = asyncio.current_task()
        await version.connection.run()

    async def settle(self, seconds: float) -> None:
        """Give running plugins a moment to connect, so that the first pods need not be tried twice."""
        awaited = {name: each for name, each in self.connections.items() if not each.spec.shadow}
        waits = [connection.came_up.wait() for connection in awaited.values()]
        try:
            async with asyncio.timeout(seconds):
                await asyncio.gather(*waits)
        except TimeoutError:
            late = [name for name, connection in awaited.items() if not connection.ready]
            log.warning("scheduling without plugins that are not there yet plugins=%s", ",".join(late))

    def ask_ahead(self) -> None:
        """Ask sidecars about changed rows before the next pod is popped; to be called between cycles."""
        if not self._knows_anything():
            return
        self._cache.update_snapshot(self._snapshot)
        for plugin in self.plugins.values():
            plugin.ask_ahead()

    def _look_soon(self) -> None:
        """Wake the scheduler if there is anything to ask ahead; once for all changes within a moment."""
        if not self._looking and self._knows_anything():
            self._looking = True
            asyncio.get_running_loop().call_later(MOMENT_SECONDS, self._look)

    def _knows_anything(self) -> bool:
        return bool(self._look_ahead.classes) and any(plugin.cached for plugin in self.plugins.values())

    def _look(self) -> None:
        self._looking = False
        self._wake()

    def cycles_done(self, record: CycleRecord) -> Iterator[tuple[str, Any]]:
        """End an attempt with its profile's sidecars; yields the CycleDone calls to run, each with a name."""
        followed = self.shadows.ended(record)
        for (name, profile), plugin in self.plugins.items():
            if profile != record.profile:
                continue
            caller = plugin.release(record)
            if record.result == "scheduled" and name in record.rescued_from:
                self.metrics.rescued(name)
            if caller.connection.recording is not None:
                caller.connection.recording.attempt_over()
            if name in followed:
                continue
            if caller.connection.offers(identity_pb2.EXTENSION_POINT_CYCLE_DONE):
                yield f"end of {record.pod.key} to {name}", _tell_done(caller, record)

    def _listeners(self) -> Listeners:
        return Listeners(
            requeue=self._on_requeue,
            ready=self._on_ready,
            answering=self._on_answering,
            probing=self._on_probing,
            greeted=self._on_greeted,
            condition=self._on_condition,
        )

    def _factory(self, name: str) -> PluginFactory:
        def make(args: Any, handle: Handle) -> SidecarPlugin:
            del args  # Configure passed them on.
            return self.make(self.versions[name], handle)

        return make

    def make(self, version: PluginVersion, handle: Handle) -> SidecarPlugin:
        """The plugin as one of that profile's."""
        name, profile = version.connection.spec.name, handle.profile_name
        caller = self.caller(version, profile)
        by_pod = handle.rules.resizes_count_by_pod
        hints = WaitingHints(lambda: plugin.caller.connection, self._bytes_of, resizes_count_by_pod=by_pod)
        cached = self._answers.columns(profile, name)
        plugin = self.plugins[name, profile] = SidecarPlugin(caller, handle, self._look_ahead, cached, hints)
        self._askers[name, profile] = HintAsker(
            lambda: plugin.caller, self._bytes_of, self._queue.hints_answered, resizes_count_by_pod=by_pod
        )
        return plugin

    def caller(self, version: PluginVersion, profile: str) -> Caller:
        """The caller of that version on behalf of that profile."""
        return Caller(version.connection, version.feed, profile, self._around)

    def forget(self, plugin: SidecarPlugin, profile: str) -> None:
        """Remove the plugin from the profile; pods that it has not answered about are queued."""
        del self.plugins[plugin.name, profile]
        self._answers.drop_columns(profile, plugin.name)
        self._askers.pop((plugin.name, profile)).close()
        plugin.keys.close()

    # Queueing: questions of the queue, and requeues by plugins.

    def ask_hints(self, questions: Sequence[HintQuestion]) -> None:
        """Ask the plugins for queueing hints; the queue receives the questions whose answer is Queue."""
        for question in questions:
            asker = self._askers.get((question.plugin, question.profile))
            if asker is None:
                self._queue.hints_answered([question])
            else:
                asker.ask(question)

    def _bytes_of(self, obj: Any) -> bytes:
        """This version of a node or pod as JSON; empty where it is no longer kept."""
        if isinstance(obj, WatchedObject):
            return obj.data
        return self.nodes.of(obj) if isinstance(obj, Node) else self.pods.of(obj)

    def _on_ready(self, connection: PluginConnection) -> None:
        if connection.starts == 1:
            self.check_gates(connection)
        self.ask_keys_anew(connection)
        self.requeue_rejected(connection.spec.name, None)
        self._on_answering(connection)

    def _on_answering(self, connection: PluginConnection) -> None:
        """Requeue the pods that failed while the plugin was unavailable, regardless of backoff."""
        for plugin in self.plugins.values():
            if plugin.caller.connection is connection:
                plugin.wake_failed()

    def _on_probing(self, connection: PluginConnection) -> None:
        """Requeue one pod, to make the probe: all of the plugin's pods may be in backoffQ."""
        any(
            plugin.wake_probe()
            for plugin in list(self.plugins.values())
            if plugin.caller.connection is connection
        )

    def check_gates(self, connection: PluginConnection) -> None:
        """Run a new PreEnqueue plugin for pods that are queued already."""
        if connection.spec.shadow or not connection.offers(PRE_ENQUEUE):
            return
        for (_, profile), plugin in self.plugins.items():
            if plugin.caller.connection is connection:
                self._queue.check_gates_again(profile)

    def ask_keys_anew(self, connection: PluginConnection) -> None:
        """Ask a QueueSort plugin for the keys of all pods that wait: it may have lost them."""
        for plugin in self.plugins.values():
            if plugin.caller.connection is connection:
                plugin.keys.ask_anew()

    async def _on_greeted(self, connection: PluginConnection) -> None:
        """Register the plugin's events, before its state receives any of them."""
        if connection.offers(HINTS):
            self.nodes.keeps_earlier = self.pods.keeps_earlier = True
        for (name, profile), plugin in list(self.plugins.items()):
            if name == connection.spec.name and plugin.caller.connection is connection:
                self.rewire(profile)

    def _on_requeue(self, connection: PluginConnection, response: queueing_pb2.RequeueResponse) -> None:
        plugin = connection.spec.name
        self.metrics.requeued(plugin)
        if any(version.connection.spec.shadow for version in self._versions_of(plugin)):
            return
        match response.WhichOneof("action"):
            case "requeue_all":
                self.requeue_rejected(plugin, None)
            case "requeue":
                self.requeue_rejected(plugin, frozenset(response.requeue.uids))
            case "allow_waiting":
                for waiting in self._waiting(response.allow_waiting):
                    waiting.allow(plugin)
            case "reject_waiting":
                for waiting in self._waiting(response.reject_waiting):
                    waiting.reject(plugin, bounded(response.cause))
            case "sort_keys":
                self._other_keys(connection, response.sort_keys)

    def _waiting(self, named: queueing_pb2.PodSet) -> Iterator[WaitingPod]:
        return (waiting for uid in named.uids if (waiting := self._waiting_pods.get(uid)))

    def _other_keys(self, connection: PluginConnection, changed: queueing_pb2.PodSortKeys) -> None:
        """Change sort keys as the plugin asks; counts keys of unknown pods. Raises: ProtocolError."""
        plugin = connection.spec.name
        keys = dict(zip(changed.uids, sort_keys_of(plugin, changed.keys, len(changed.uids)), strict=True))
        for one in self.plugins.values():
            if one.caller.connection is connection:
                keys = one.keys.change(keys)
        if keys:
            self.metrics.sorted(plugin, "unknown", len(keys))

    def requeue_rejected(self, plugin: str, uids: frozenset[str] | None) -> None:
        """Retry the pods that the plugin rejected, all of them or those named; those in flight, too."""
        for version in self._versions_of(plugin):
            version.feed.external_changes += 1
        self._queue.move_all(requeue_event(plugin), None, uids)

    def reject_waiting(self, plugin: str, why: str) -> None:
        """Reject the pods that wait at Permit for a plugin that is removed."""
        for waiting in list(self._waiting_pods):
            if plugin in waiting.pending_plugins():
                waiting.reject(plugin, f"plugin {plugin} {why}")

    # The cluster state that sidecars receive.

    def _patched(self, pod: Pod, patch: Mapping[str, Any]) -> Callable[[], None]:
        """Send a plugin's metadata patch of a pod to every sidecar; the result undoes that."""
        undo = self.pods.merge_metadata(pod.uid, patch)
        for version in self._every_version():
            version.feed.patched(pod)
        return undo

    def _follow(self, step: SnapshotStep) -> None:
        for version in self._every_version():
            version.feed.follow(step)

    def _nominated(self, node_name: str) -> None:
        """Send changed nominations to the sidecars, once for each turn of the event loop."""
        for version in self._every_version():
            version.feed.nominated(node_name)
        if not self._telling and any(each.feed.wanted.nominations for each in self._every_version()):
            self._telling = True
            asyncio.get_running_loop().call_soon(self._tell_nominations)

    def _tell_nominations(self) -> None:
        self._telling = False
        for version in self._every_version():
            version.feed.catch_up()

    def _every_version(self) -> list[PluginVersion]:
        return [*self.versions.values(), *self.others]

    def _versions_of(self, plugin: str) -> list[PluginVersion]:
        return [version for version in self._every_version() if version.connection.spec.name == plugin]


async def _tell_done(caller: Caller, record: CycleRecord) -> None:
    state = CycleState()
    call = caller.head(state, record.pod, with_state=False)
    call.pod.attempt = record.attempt
    request = scheduling_pb2.CycleDoneRequest(
        call=call,
        outcome=_OUTCOMES[record.result],
        node_name=record.node_name or None,
        rejected_by_plugin=caller.plugin in rejectors(record),
    )
    try:
        await caller.ask("CycleDone", request, state, lambda _: None)
    except SidecarError as error:
        log.debug("plugin not notified of an attempt's end pod=%s err=%s", record.pod.key, error)


def rejectors(record: CycleRecord) -> Collection[str]:
    """The plugins that rejected the pod."""
    status = record.status
    if status is None or not status.rejected:
        return ()
    error = status.error
    return error.diagnosis.unschedulable_plugins if isinstance(error, FitError) else (status.plugin,)


def _arguments(specs: Iterable[SidecarSpec], using: Sequence[ResolvedProfile]) -> dict[str, dict[str, Any]]:
    """Each plugin's arguments by profile, for the profiles that name it at some point."""
    found: dict[str, dict[str, Any]] = {}
    for spec in specs:
        for profile in using:
            named_here = (name for named in profile.points.values() for name, _ in named)
            if profile.scheduler_name in spec.profiles or spec.name in named_here:
                _compare_arguments(spec, profile)
                found.setdefault(spec.name, {})[profile.scheduler_name] = spec.args_for(profile)
    return found


def _compare_arguments(spec: SidecarSpec, profile: ResolvedProfile) -> None:
    """Log where arguments of an entry have no effect."""
    own = profile.args.get(spec.name, spec.args)
    if spec.args is not None and own != spec.args:
        log.warning(
            "arguments of the list have no effect, pluginConfig has others plugin=%s profile=%s",
            spec.name,
            profile.scheduler_name,
        )
