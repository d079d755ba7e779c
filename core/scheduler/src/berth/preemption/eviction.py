"""Evicting the victims of a chosen node, beside the scheduling cycles of other pods.

    chosen --> nominations of less important pods taken back --> all victims but the last, side by side
                                                                              |
           preemptor may be queued again <-- last one leaving <-- last victim-+
                     |
           (what failed activates the preemptor: it tries again)

While this goes on the preemptor is kept out of the queue: PreEnqueue asks `running`. It may return from the
moment that the watch shows that the last victim is leaving, also where that is heard before the API server's
answer.

Source: pkg/scheduler/framework/preemption/executor.go prepareCandidate, prepareCandidateAsync (Kubernetes
v1.36).
"""

import logging
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from berth.framework.handle import Handle, PodGoneError
from berth.framework.status import SUCCESS, Status, failed
from berth.objects.pods.pod import Pod, PodCondition
from berth.preemption.candidates import Candidate
from berth.preemption.departures import Departures
from berth.preemption.eligibility import DISRUPTION_TARGET, PREEMPTION_BY_SCHEDULER
from berth.preemption.preemption_metrics import PreemptionMetrics
from berth.preemption.preemptor import Preemptor

log = logging.getLogger(__name__)

ASYNC_PREEMPTION = "SchedulerAsyncPreemption"


class PreemptionEvictions:
    """The evictions of one profile: who preempts now, and which victim is each one's last."""

    def __init__(self, handle: Handle, metrics: PreemptionMetrics, departures: Departures) -> None:
        self._handle = handle
        self._metrics = metrics
        self._departures = departures
        self._preempting: set[str] = set()
        self._last_victim: dict[str, Pod] = {}

    def running(self, uid: str) -> bool:
        """Whether evictions for the pod of that UID go on, as far as the watch has shown.

        They do until it says that the last victim is leaving, also where the API server has answered before:
        on nodes as they were, the pod would preempt the same victims again.
        """
        if uid not in self._preempting:
            return False
        last = self._last_victim.get(uid)
        return last is None or not self._left(last)

    def is_on_its_way(self, uid: str) -> bool:
        """Whether a victim of that UID is being evicted, as far as the watch has not shown that it leaves."""
        return uid in self._departures

    def start(self, plugin: str, preemptor: Preemptor, candidate: Candidate) -> None:
        """Evict the candidate's victims in the background; nothing happens where all are leaving already.

        Those that others are evicting are left to them; less important nominations are taken back anyway.
        """
        self._forget_those_heard_of()
        staying = _staying(candidate.victims)
        if not staying:
            return
        victims = self._departures.begin(staying, preemptor.pods)
        self._metrics.chosen(preemptor.kind, candidate)
        self._preempting.add(preemptor.uid)
        eviction = _Eviction(self._handle, self._departures, plugin, preemptor, candidate.node_name)
        work = self._run(eviction, victims, staying)
        self._handle.background.spawn(work, f"preemption by {preemptor.key}")

    async def evict_for(self, plugin: str, preemptor: Preemptor, candidate: Candidate) -> Status:
        """Start the evictions, or make them at once where SchedulerAsyncPreemption is off."""
        if self._handle.feature_enabled(ASYNC_PREEMPTION):
            self.start(plugin, preemptor, candidate)
            return SUCCESS
        return await self.carry_out(plugin, preemptor, candidate)

    async def carry_out(self, plugin: str, preemptor: Preemptor, candidate: Candidate) -> Status:
        """Evict the candidate's victims and wait for that; an error where one could not be evicted."""
        self._metrics.chosen(preemptor.kind, candidate)
        started = self._handle.clock.monotonic()
        self._forget_those_heard_of()
        eviction = _Eviction(self._handle, self._departures, plugin, preemptor, candidate.node_name)
        victims = self._departures.begin(_staying(candidate.victims), preemptor.pods)
        try:
            await eviction.evict_all(victims)
        finally:
            self._give_back(victims)
        seconds = self._handle.clock.monotonic() - started
        self._metrics.evicted(preemptor.kind, seconds, failed=eviction.error is not None, beside=False)
        if eviction.error is not None:
            return failed(eviction.error)
        await eviction.take_back_nominations()
        return SUCCESS

    async def _run(self, eviction: "_Eviction", victims: Sequence[Pod], staying: Sequence[Pod]) -> None:
        """Evict the victims; those of `staying` that are not among them leave by others' evictions."""
        uid, started = eviction.preemptor.uid, self._handle.clock.monotonic()
        unheard = leaving = unsuccessful = False
        try:
            taken_back = await eviction.take_back_nominations()
            await eviction.evict_all(victims[:-1])
            if victims and eviction.error is None:
                unheard = self._left(victims[-1])
                self._last_victim[uid] = victims[-1]
                leaving = await eviction.evict(victims[-1])
            if not victims:
                unheard = not all(map(self._is_to_leave, staying))
            unsuccessful = not taken_back or eviction.error is not None
        finally:
            if unsuccessful or not leaving:
                self._forget(uid)
            self._give_back(victims)
        seconds = self._handle.clock.monotonic() - started
        self._metrics.evicted(eviction.preemptor.kind, seconds, failed=unsuccessful, beside=True)
        # Where a victim had left, or another's eviction had failed, while PreEnqueue still held the preemptor
        # back, no event is to come any more.
        if unsuccessful or unheard:
            self._handle.activate(eviction.preemptor.pods)

    def _give_back(self, victims: Sequence[Pod]) -> None:
        """Have the preemptors tried again that counted on evictions which did not come to be."""
        if waiting := self._departures.give_back(victims):
            self._handle.activate(waiting)

    def _forget_those_heard_of(self) -> None:
        for uid in [uid for uid, last in self._last_victim.items() if self._left(last)]:
            self._forget(uid)
        self._departures.forget(self._left)

    def _forget(self, uid: str) -> None:
        self._preempting.discard(uid)
        self._last_victim.pop(uid, None)

    def _is_to_leave(self, victim: Pod) -> bool:
        """Whether the watch is still to show that a victim leaves that another preemptor evicts."""
        return victim.uid in self._departures and not self._left(victim)

    def _left(self, victim: Pod) -> bool:
        """Whether the watch has shown that the victim is leaving, or gone."""
        current = self._handle.known(victim)
        return current is None or current.terminating


class _Eviction:
    """One preemptor's evictions from one node; the first that fails stops those that have not begun."""

    def __init__(
        self, handle: Handle, departures: Departures, plugin: str, preemptor: Preemptor, node_name: str
    ) -> None:
        self._handle = handle
        self._departures = departures
        self._plugin = plugin
        self.preemptor = preemptor
        self._node_name = node_name
        self.error: Exception | None = None

    async def take_back_nominations(self) -> bool:
        """Let less important pods look for another node; False where a nomination could not be taken back."""
        pods = self._handle.nominator.nominated_pods_for_node(self._node_name)
        lower = [pod for pod in pods if pod.priority < self.preemptor.priority and pod.nominated_node_name]
        return all([await self._take_back(pod) for pod in lower])

    async def _take_back(self, pod: Pod) -> bool:
        try:
            await self._handle.writer.patch_pod_status(pod, None, "")
        except Exception as error:  # noqa: BLE001 - the others are still to be patched
            log.warning("nomination not taken back pod=%s err=%s", pod.key, error)
            return False
        return True

    async def evict_all(self, victims: Iterable[Pod]) -> None:
        """Evict them side by side."""
        await self._handle.background.all_of([self.evict(victim) for victim in victims])

    async def evict(self, victim: Pod) -> bool:
        """Evict one, unless another could not be evicted; whether the watch will tell that it leaves."""
        if self.error is not None:
            return False
        try:
            in_memory = self._stop_on_its_way(victim)
            if not in_memory:
                await self._delete(victim)
                self._departures.deleted(victim)
        except PodGoneError:
            self._departures.deleted(victim)
            return False
        except Exception as error:  # noqa: BLE001 - passed to the preemptor, which tries again
            log.warning(
                "victim not evicted pod=%s preemptor=%s err=%s", victim.key, self.preemptor.key, error
            )
            self.error = self.error or error
            return False
        self._tell(victim, in_memory=in_memory)
        return not in_memory

    def _stop_on_its_way(self, victim: Pod) -> bool:
        """Whether the victim was not bound yet and will not be: there is nothing to delete."""
        waiting = self._handle.waiting_pods.get(victim.uid)
        if waiting is not None:
            return waiting.preempt(self._plugin, "preempted")
        binding = self._handle.pods_in_pre_bind.get(victim.uid)
        return binding is not None and binding.cancel(f"preempted by {self._plugin}")

    async def _delete(self, victim: Pod) -> None:
        """Say why in the victim's status, then delete it. Raises: PodGoneError where it is gone."""
        condition = PodCondition(
            type=DISRUPTION_TARGET,
            status="True",
            reason=PREEMPTION_BY_SCHEDULER,
            message=f"{self.preemptor.scheduler_name}: "
            f"preempting to accommodate a higher priority {self._kind_in_words()}",
            last_transition_time=_timestamp(self._handle.clock.wall()),
            observed_generation=victim.metadata.generation or None,
        )
        await self._handle.writer.patch_pod_status(victim, condition, None)
        await self._handle.writer.delete_pod(victim)

    def _kind_in_words(self) -> str:
        apart = self._handle.rules.groups_keep_the_nodes_found and not isinstance(self.preemptor.obj, Pod)
        return "pod group" if apart else self.preemptor.kind

    def _tell(self, victim: Pod, *, in_memory: bool) -> None:
        note = f"Preempted by {self.preemptor.kind} {self.preemptor.uid} on node {self._node_name}"
        if in_memory:
            note += " (in kube-scheduler memory)."
        self._handle.recorder.event(
            victim,
            "Normal",
            "Preempted",
            "Preempting",
            note,
            related=self.preemptor.obj,
            controller=self.preemptor.scheduler_name,
        )


def _staying(victims: Iterable[Pod]) -> list[Pod]:
    return [victim for victim in victims if not victim.terminating]


def _timestamp(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
