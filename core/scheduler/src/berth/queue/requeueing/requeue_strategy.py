"""Whether an event makes a waiting pod worth another attempt, and how soon.

Source: pkg/scheduler/backend/queue/scheduling_queue.go isPodWorthRequeuing (Kubernetes v1.36).
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import partial
from typing import Any

from berth.framework.clock import Clock
from berth.framework.cluster_event import ClusterEvent, ConcernedPods, QueueingHint, QueueingHintFn
from berth.framework.queueing.queued_pod import QueuedGroupInfo, QueuedPodInfo
from berth.objects.pods.pod import Pod
from berth.queue.pools.unschedulable_pods import Group
from berth.queue.queue_metrics import QueueMetrics
from berth.queue.requeueing.hint_questions import HintQuestions
from berth.queue.requeueing.queue_profile import QueueProfile

log = logging.getLogger(__name__)

ERROR_HINT = "Error"


class RequeueStrategy(Enum):
    """What becomes of a pod: it stays, it backs off first, or it goes straight to activeQ."""

    SKIP = "skip"
    AFTER_BACKOFF = "after backoff"
    IMMEDIATELY = "immediately"


class RequeueStrategies:
    """Asks the plugins that rejected a pod."""

    def __init__(self, profiles: Mapping[str, QueueProfile], clock: Clock, metrics: QueueMetrics) -> None:
        self._profiles = profiles
        self._clock = clock
        self._metrics = metrics

    def gate_events_of(self, plugin: str) -> tuple[ClusterEvent, ...]:
        """The events that may have a plugin's PreEnqueue answer otherwise, in any profile."""
        return tuple(event for p in self._profiles.values() for event in p.hints.gate_events_of(plugin))

    def of_interest(self, event: ClusterEvent) -> bool:
        """Whether any plugin of any profile waits for the event."""
        return event.wildcard or any(p.hints.matching(event).hints for p in self._profiles.values())

    def may_help(self, group: Group, gating_events: tuple[ClusterEvent, ...], event: ClusterEvent) -> bool:
        """Whether a record of that group can be moved by the event, as far as the registrations tell."""
        if event.wildcard:
            return True
        if group.gating_plugin and not any(gating.matches(event) for gating in gating_events):
            return False
        profile = self._profiles.get(group.scheduler_name)
        if profile is None or not group.rejectors:
            return True
        return not group.rejectors.isdisjoint(profile.hints.matching(event).hints)

    def hint_for_all(self, group: Group, event: ClusterEvent, old: Any, new: Any) -> QueueingHint | None:
        """What the only plugin that rejected a group says for all its pods alike; None where they differ."""
        of_all = getattr(self._only_hint(group, event), "of_all", None)
        hint: QueueingHint | None = of_all(old, new) if of_all is not None else None
        return hint

    def concerned(self, group: Group, event: ClusterEvent, old: Any, new: Any) -> ConcernedPods | None:
        """The only pods that the event may help, as the only plugin that rejected the group knows them."""
        find = getattr(self._only_hint(group, event), "concerned", None)
        if find is None:
            return None
        try:
            concerned: ConcernedPods | None = find(old, new)
        except Exception:  # noqa: BLE001 - the hint itself is asked about each pod then, and says what is wrong
            return None
        return concerned

    def _only_hint(self, group: Group, event: ClusterEvent) -> QueueingHintFn | None:
        """The hint of the only plugin that rejected the group, if it has one for the event."""
        profile = self._profiles.get(group.scheduler_name)
        if event.wildcard or profile is None or len(group.rejectors) != 1:
            return None
        hints = profile.hints.matching(event).hints.get(next(iter(group.rejectors)), ())
        return hints[0] if len(hints) == 1 else None

    def distinguishes_pods(self, group: Group, event: ClusterEvent) -> bool:
        """Whether a plugin that rejected the group may answer differently for pods of one kind."""
        profile = self._profiles.get(group.scheduler_name)
        return profile is not None and not group.rejectors.isdisjoint(profile.hints.matching(event).apart)

    def worth(
        self, record: QueuedPodInfo, event: ClusterEvent, old: Any, new: Any, asked: HintQuestions
    ) -> RequeueStrategy:
        """What the event means for one record."""
        return self.worth_to_all((record,), event, old, new, asked)

    def worth_to_all(
        self,
        records: Sequence[QueuedPodInfo],
        event: ClusterEvent,
        old: Any,
        new: Any,
        asked: HintQuestions,
    ) -> RequeueStrategy:
        """What the event means for records of one group and kind: the best that any of their rejectors says.

        A pod that a plugin left pending skips its backoff where that plugin says so. What sidecars
        have to be asked, and can still improve on the result, goes into `asked`.
        """
        first = records[0]
        if isinstance(first, QueuedGroupInfo):
            return self._worth_to_group(first, event, old, new, asked)
        return self._worth_to_alike(records, event, old, new, asked)

    def _worth_to_alike(
        self,
        records: Sequence[QueuedPodInfo],
        event: ClusterEvent,
        old: Any,
        new: Any,
        asked: HintQuestions,
    ) -> RequeueStrategy:
        record = records[0]
        rejectors = record.rejectors
        if not rejectors or event.wildcard:
            return _without_hints(record, new)
        profile = self._profiles.get(record.pod.spec.scheduler_name)
        if profile is None:
            log.error(
                "no profile of that name pod=%s profile=%s", record.pod.key, record.pod.spec.scheduler_name
            )
            return RequeueStrategy.AFTER_BACKOFF
        best = RequeueStrategy.SKIP
        left_open: list[str] = []
        matching = profile.hints.matching(event)
        for plugin, hints in matching.hints.items():
            if plugin not in rejectors:
                continue
            asks = [partial(hint, record.pod, old, new) for hint in hints]
            hint = self._best(plugin, matching.label, records, asks)
            if hint is QueueingHint.ASK:
                left_open.append(plugin)
            if hint is not QueueingHint.QUEUE:
                continue
            if plugin in record.pending_plugins:
                return RequeueStrategy.IMMEDIATELY
            if not record.pending_plugins:
                return RequeueStrategy.AFTER_BACKOFF
            best = RequeueStrategy.AFTER_BACKOFF
        for plugin in _improving(left_open, record, best):
            asked.add(plugin, event, old, new, records)
        return best

    def _worth_to_group(
        self, group: QueuedGroupInfo, event: ClusterEvent, old: Any, new: Any, asked: HintQuestions
    ) -> RequeueStrategy:
        """The best that the event means for one of the group's pods, or for the one that holds it back."""
        best = RequeueStrategy.SKIP
        for member in group.members if group.holder is None else (group.holder,):
            if best is RequeueStrategy.SKIP or member.pending_plugins:
                strategy = self.worth(member, event, old, new, asked)
                if strategy is RequeueStrategy.IMMEDIATELY:
                    return strategy
                best = strategy if best is RequeueStrategy.SKIP else best
        return best

    def _best(
        self,
        plugin: str,
        event: str,
        records: Sequence[QueuedPodInfo],
        hints: Sequence[Callable[[], QueueingHint]],
    ) -> QueueingHint:
        """What the plugin says, by the first of its hints that says Queue."""
        best = QueueingHint.SKIP
        for ask in hints:
            hint = self._hint(plugin, event, records, ask)
            if hint is QueueingHint.QUEUE:
                return hint
            if hint is QueueingHint.ASK:
                best = hint
        return best

    def _hint(
        self, plugin: str, event: str, records: Sequence[QueuedPodInfo], ask: Callable[[], QueueingHint]
    ) -> QueueingHint:
        started = self._clock.monotonic()
        try:
            answer = ask()
            text = answer.value
        except Exception as error:  # noqa: BLE001 - a hint that fails counts as Queue, whatever it raises
            log.error(  # noqa: TRY400 - one line: a broken hint is asked again and again
                "hint failed, the pod is queued plugin=%s event=%s pod=%s pods=%s err=%s",
                plugin,
                event,
                records[0].pod.key,
                len(records),
                error,
            )
            answer, text = QueueingHint.QUEUE, ERROR_HINT
        if answer is not QueueingHint.ASK:
            seconds = self._clock.monotonic() - started
            self._metrics.hint_executed(plugin, event, text, seconds, len(records))
        return answer


def _without_hints(record: QueuedPodInfo, new: Any) -> RequeueStrategy:
    """What an event means for a pod that no plugin rejected, and a wildcard for any pod."""
    of_another = new is not None and not (isinstance(new, Pod) and new.uid == record.pod.uid)
    return RequeueStrategy.SKIP if record.rejectors and of_another else RequeueStrategy.AFTER_BACKOFF


def _improving(plugins: Sequence[str], record: QueuedPodInfo, known: RequeueStrategy) -> Sequence[str]:
    """The plugins whose answers can improve on what is known."""
    return plugins if known is RequeueStrategy.SKIP else [p for p in plugins if p in record.pending_plugins]
