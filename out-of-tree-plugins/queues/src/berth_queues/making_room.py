"""What is done for pods that fit nowhere: a plan, and the places that it makes, which are kept for the pods.

asked --plan--> victims named, places promised --asked again--> the same node, victims that are still there
  |
  +--no plan, or others were evicted in vain--> a reason
"""

import logging
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING

from berth_queues.candidates import Candidates
from berth_queues.device_claims import devices_asked
from berth_queues.groups import facts_of
from berth_queues.plan import Claimant, PlanState
from berth_queues.planner import Planner
from berth_queues.promises import Promise
from berth_sdk import Answer, Code, GroupPreemption, Nodes, Nomination, Pod, Status, Verdicts, current_call

if TYPE_CHECKING:
    from berth_queues.plugin import Queues

NEVER = Status(Code.UNSCHEDULABLE, ("not eligible due to preemptionPolicy=Never.",))
ON_ITS_WAY = Status(Code.UNSCHEDULABLE, ("pods that are leaving make room for the pod",))
NO_ROOM = Status(Code.UNSCHEDULABLE, ("no node where evicting pods that queues let go makes room",))
PAUSED = Status(
    Code.UNSCHEDULABLE, ("pods were evicted for the pod in vain: it has to wait before others are",)
)

log = logging.getLogger(__name__)


class MakingRoom:
    """The answers at PostFilter, by the plugin's books and the arguments of the pod's profile."""

    def __init__(self, plugin: "Queues") -> None:
        self._plugin, self._cluster = plugin, plugin.cluster

    def for_pod(self, pod: Pod, nodes: Nodes, verdicts: Verdicts) -> Nomination | Answer:
        """Return the pod's node and which pods to evict, by its group's plan if there is one."""
        promises = self._cluster.promises
        key, before = self._take(pod)
        if facts_of(pod).never_preempts:
            return NEVER
        if before is not None and key != pod.uid and (planned := self._as_planned(pod, before)):
            promises.by_key[key] = before
            return planned
        found = self._planned(key, pod, before, Candidates.of(nodes, verdicts))
        return self._nominated(pod, found) if isinstance(found, Promise) else found

    def for_group(self, pod: Pod, nodes: Nodes, verdicts: Verdicts) -> Sequence[GroupPreemption] | Answer:
        """Return which pods to evict for the pod's whole group; the scheduler tries the group first."""
        key, before = self._take(pod)
        if facts_of(pod).never_preempts:
            return NEVER
        found = self._planned(key, pod, before, Candidates.of(nodes, verdicts))
        if not isinstance(found, Promise):
            return found
        victims = tuple(sorted(found.staying))
        self._hold(pod, found)
        return [GroupPreemption(victims)] if victims else []

    def _take(self, pod: Pod) -> tuple[Hashable, Promise | None]:
        key = self._cluster.claim_key(pod.uid, facts_of(pod).group)
        return key, self._cluster.promises.take(key)

    def _claimant(self, key: Hashable, pod: Pod) -> Claimant:
        queue = self._cluster.registry.name_of(pod.namespace, pod.labels)
        return Claimant(
            key, queue, pod.spec.priority, self._cluster.wanted(devices_asked(pod), facts_of(pod).group)
        )

    def _planner(self) -> Planner:
        settings = self._plugin.settings
        state = PlanState(
            self._cluster.ledger,
            self._cluster.promises,
            self._plugin.budgets,
            self._cluster.groups,
            self._cluster.devices,
            self._cluster.entitlement(by_fair_share=settings.by_fair_share),
            settings.sparedPriority,
        )
        return Planner(state, settings.reclaims)

    def _as_planned(self, pod: Pod, promise: Promise) -> Nomination | None:
        """Return the pod's place by the plan that was made for its group, None where that is of no use.

        An answer that came too late is dropped, and so is a proposal for a pod that would not fit: evictions
        that did not begin until the next attempt are planned anew.
        """
        if not promise.victims or pod.uid not in promise.places:
            return None
        again = promise.note_asked(pod.uid, current_call().key.attempt)
        if again and not promise.begun:
            return None
        return Nomination(promise.places[pod.uid].node_name, tuple(promise.staying) if again else ())

    def _planned(
        self, key: Hashable, pod: Pod, before: Promise | None, candidates: Candidates
    ) -> Promise | Status:
        """Return the best plan for the pod and those of its group that go with it, or why there is none."""
        promises, claimant = self._cluster.promises, self._claimant(key, pod)
        leaving, staying = set[str](), set[str]()
        if before is not None and before.begun:
            there = self._cluster.ledger.by_uid.keys()
            leaving, staying = before.victims & there, before.staying & there
        planner = self._planner()
        plan = planner.plan(claimant, candidates, leaving)
        if plan is None:
            queue = self._cluster.registry.queue(claimant.queue)
            entitled = planner.state.entitlement.covers(queue, claimant.asked)
            self._cluster.waiting.no_plan(pod.uid, self._plugin.clock.now(), entitled=entitled)
            return NO_ROOM
        if plan.victims and promises.paused(key):
            return PAUSED
        victims = {victim.uid for victim in plan.victims}
        return Promise(
            key,
            claimant.queue,
            claimant.priority,
            plan.places | self._cluster.held_by(facts_of(pod).group),
            leaving | victims,
            entitled=plan.entitled,
            staying=staying | victims,
            given=before.given if before is not None and leaving and not victims else None,
            begun=bool(leaving),
        )

    def _nominated(self, pod: Pod, promise: Promise) -> Nomination | Answer:
        """Hold what is promised; victims of which no deletion was seen are named, some of them once more."""
        node_name, victims = promise.places[pod.uid].node_name, tuple(sorted(promise.staying))
        if not current_call().shadow:
            self._hold(pod, promise)
            if not victims and promise.key == pod.uid:
                return ON_ITS_WAY
        return Nomination(node_name, victims)

    def _hold(self, pod: Pod, promise: Promise) -> None:
        """Hold the places of a plan until the pods have them; in shadow no pod leaves for them."""
        if current_call().shadow:
            return
        promise.note_asked(pod.uid, current_call().key.attempt)
        self._cluster.promises.give(promise)
        if promise.staying:
            self._plugin.clock.after(self._cluster.patience, self.wake_others)
            preemptor, node_name = f"{pod.namespace}/{pod.name}", promise.places[pod.uid].node_name
            log.info("preempting pod=%s node=%s victims=%s", preemptor, node_name, len(promise.staying))

    def wake_others(self) -> None:
        """Have pods tried again that respected promises which hold no more."""
        before = {key: promise.queue for key, promise in self._cluster.promises.by_key.items()}
        held = {promise.key for promise in self._cluster.promises.held()}
        roots = {self._cluster.registry.root_of(queue) for key, queue in before.items() if key not in held}
        if worth := self._plugin.hints.worth(roots):
            self._plugin.requeue.pods(sorted(worth), "places that pods were evicted for were not taken")
