"""PreEnqueue: plugins that keep a pod out of activeQ and backoffQ.

Sidecars are asked last, all at once and beside the queue's work (`async_pre_enqueue.py`). One
that orders the queue is asked for the pod's key after them: it holds the pod back until it has answered.

Source: pkg/scheduler/backend/queue/scheduling_queue.go runPreEnqueuePlugins (Kubernetes v1.36).
"""

import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping

from berth.evaluation.points.plugin_calls import drop_unread
from berth.framework.clock import Clock
from berth.framework.cluster_event import ClusterEvent
from berth.framework.interface import MaybeAwaitable, PreEnqueuePlugin
from berth.framework.queueing.queued_pod import QueuedGroupInfo, QueuedPodInfo
from berth.framework.status import Code, Status, failed
from berth.queue.queue_metrics import QueueMetrics
from berth.queue.recently_gated import RecentlyGated
from berth.queue.requeueing.queue_profile import QueueProfile
from berth.queue.sort_keys import SortKeys

log = logging.getLogger(__name__)

TIMED_ONE_IN = 10
MAX_MESSAGE = 256
"""Characters of a gate's message that are kept with each pod, for explanations."""

AskRemotely = Callable[[QueuedPodInfo, Mapping[str, Awaitable[Status]]], None]


class Gating:
    """Runs a profile's PreEnqueue plugins and notes in the record which one holds the pod back.

    `ask` waits for the answers of sidecars, by plugin; then `settle` is to be called.
    """

    def __init__(
        self,
        profiles: Mapping[str, QueueProfile],
        gate_events_of: Callable[[str], tuple[ClusterEvent, ...]],
        clock: Clock,
        metrics: QueueMetrics,
        *,
        ask: AskRemotely,
        keys: SortKeys,
        recently: RecentlyGated,
    ) -> None:
        self._profiles = profiles
        self._gate_events_of = gate_events_of
        self._clock = clock
        self._metrics = metrics
        self._ask = ask
        self._keys = keys
        self._recently = recently
        self._runs = 0

    def check(self, record: QueuedPodInfo) -> bool:
        """Whether the pod may be queued; else the record names the plugin that holds it back.

        The first pod of a group that is held back holds the group back.
        """
        if isinstance(record, QueuedGroupInfo):
            return self._check_group(record)
        if not self._passed(record):
            return False
        _clear(record)
        record.gates_passed = frozenset()
        return True

    def _check_group(self, group: QueuedGroupInfo) -> bool:
        """The same for a group; a member that has passed is not asked about again while it is the same pod.

        What holds any member of a group back, as a gang that lacks pods, the first one is asked about.
        """
        group.holder = self._first_held(group)
        if group.holder is not None:
            group.gating_plugin, group.gating_message = (
                group.holder.gating_plugin,
                group.holder.gating_message,
            )
            group.gating_plugin_events = group.holder.gating_plugin_events
            return False
        _clear(group)
        group.sort_key = group.members[0].sort_key
        return True

    def _first_held(self, group: QueuedGroupInfo) -> QueuedPodInfo | None:
        """The first pod that is held back; sidecars are asked about all pods at once.

        Cost: O(members that pass), each of them once as long as it is queued.
        """
        first: QueuedPodInfo | None = None
        passed: list[QueuedPodInfo] = []
        for member in group.unchecked.values() or group.members[:1]:
            asked_before = _is_asked_about(member)
            if not asked_before and self._passed(member):
                passed.append(member)
                continue
            first = first or member
            if asked_before or not _is_asked_about(member):
                break
        for member in passed:
            _clear(member)
            member.gates_passed = frozenset()
            group.unchecked.pop(member.key, None)
        return first

    def _passed(self, record: QueuedPodInfo) -> bool:
        profile = self._profiles.get(record.pod.spec.scheduler_name)
        if profile is None:
            return True
        if profile.pre_enqueue and not self._run(profile, record):
            return False
        return profile.sorter is None or self.has_key(record)

    def has_key(self, record: QueuedPodInfo) -> bool:
        """Whether the queue knows where to put the pod; asks where it does not."""
        sorter = self._keys.sorter_for(record)
        if sorter is not None and record.asked_as is not record.pod:
            record.gating_plugin, record.gating_message, record.gating_plugin_events = sorter.name, "", ()
            self._ask(record, {sorter.name: self._keys.ask(sorter, record)})
        return sorter is None

    def settle(self, record: QueuedPodInfo, verdicts: Mapping[str, Status]) -> bool:
        """Take in what sidecars answered; whether all of them let the pod pass."""
        for plugin, status in verdicts.items():
            if not status.ok:
                self._hold(plugin, record, status)
                return False
        record.gates_passed |= verdicts.keys()
        return True

    def _run(self, profile: QueueProfile, record: QueuedPodInfo) -> bool:
        started = self._clock.monotonic()
        self._runs += 1
        plugins = _gating_first(profile, record) if record.gating_plugin else profile.pre_enqueue
        sidecars = [plugin for plugin in profile.pre_enqueue if not plugin.in_process]
        passed = True
        for plugin in plugins:
            if plugin.in_process and not self._passes(plugin, record):
                passed = False
                break
        self._metrics.pre_enqueue_executed(record.pod.spec.scheduler_name, self._clock.monotonic() - started)
        return passed and (not sidecars or self._passes_sidecars(sidecars, record))

    def _passes(self, plugin: PreEnqueuePlugin, record: QueuedPodInfo) -> bool:
        timed = self._runs % TIMED_ONE_IN == 0
        started = self._clock.monotonic() if timed else 0.0
        status = _answer(plugin, record)
        assert isinstance(status, Status)
        if timed:
            seconds = self._clock.monotonic() - started
            self._metrics.gate_executed(plugin.name, str(status.code), seconds)
        passed = status.ok
        if not passed:
            self._hold(plugin.name, record, status)
        return passed

    def _passes_sidecars(self, plugins: list[PreEnqueuePlugin], record: QueuedPodInfo) -> bool:
        if record.asked_as is record.pod:
            return False
        answers = {p.name: _answer(p, record) for p in plugins if p.name not in record.gates_passed}
        known = {name: answer for name, answer in answers.items() if isinstance(answer, Status)}
        waited = {name: answer for name, answer in answers.items() if not isinstance(answer, Status)}
        if not self.settle(record, known):
            drop_unread(waited.values())
            return False
        if waited:
            record.gating_plugin, record.gating_message = next(iter(waited)), ""
            record.gating_plugin_events = ()
            self._ask(record, waited)
        return not waited

    def _hold(self, plugin: str, record: QueuedPodInfo, status: Status) -> None:
        if status.code is Code.ERROR:
            log.error(
                "PreEnqueue failed, the pod is held back plugin=%s pod=%s err=%s",
                plugin,
                record.pod.key,
                status.message,
            )
        if plugin not in record.rejectors:
            self._metrics.rejected_pods(plugin, record.pod.spec.scheduler_name, 1)
        record.unschedulable_plugins.add(plugin)
        record.gating_plugin, record.gating_message = plugin, status.message[:MAX_MESSAGE]
        record.gating_plugin_events = self._gate_events_of(plugin)
        record.gates_passed = frozenset()
        self._recently.note(record)


def _clear(record: QueuedPodInfo) -> None:
    record.gating_plugin = record.gating_message = ""
    record.gating_plugin_events = ()


def _is_asked_about(record: QueuedPodInfo) -> bool:
    return record.asked_as is record.pod


def _answer(plugin: PreEnqueuePlugin, record: QueuedPodInfo) -> MaybeAwaitable[Status]:
    try:
        return plugin.pre_enqueue(record.pod)
    except Exception as error:  # noqa: BLE001 - a broken gate holds its pod back, not the queue
        return failed(error)


def _gating_first(profile: QueueProfile, record: QueuedPodInfo) -> Iterator[PreEnqueuePlugin]:
    """The plugins in the profile's order, the one that gated the pod before them."""
    yield from (plugin for plugin in profile.pre_enqueue if plugin.name == record.gating_plugin)
    yield from (plugin for plugin in profile.pre_enqueue if plugin.name != record.gating_plugin)
