"""The queues plugin: the order of the queue, room by quota, and what is taken back."""

import logging
from collections.abc import Hashable, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from berth_queues.admission import refusal
from berth_queues.amounts import add
from berth_queues.budgets import BUDGETS, Budgets
from berth_queues.candidates import Candidates
from berth_queues.cluster import Cluster
from berth_queues.device_claims import devices_asked
from berth_queues.groups import POD_GROUPS, PodFacts, facts_of, group_key
from berth_queues.hints import Hints
from berth_queues.keys import Keys
from berth_queues.plan import Claimant, PlanState, Wanted
from berth_queues.planner import Planner
from berth_queues.promises import Promise, counted, counting
from berth_queues.settings import Settings
from berth_queues.status import statuses
from berth_queues.status_writer import StatusClient, StatusWriter
from berth_queues.watching import kinds
from berth_sdk import (
    SKIP,
    Action,
    Answer,
    ClusterEvent,
    Code,
    CycleOutcome,
    EventInterest,
    GroupPreemption,
    Node,
    Nodes,
    Nomination,
    ObjectKey,
    PlacedPod,
    Plugin,
    Pod,
    PodGroup,
    PodKey,
    Reason,
    SortKey,
    Status,
    Verdicts,
    current_call,
)

NEVER = Status(Code.UNSCHEDULABLE, ("not eligible due to preemptionPolicy=Never.",))
ON_ITS_WAY = Status(Code.UNSCHEDULABLE, ("pods that are leaving make room for the pod",))
NO_ROOM = Status(Code.UNSCHEDULABLE, ("no node where evicting pods that queues let go makes room",))
PAUSED = Status(
    Code.UNSCHEDULABLE, ("pods were evicted for the pod in vain: it has to wait before others are",)
)
log = logging.getLogger(__name__)


class Queues(Plugin):
    """Divide the cluster among queues: whose pods are next, which have to wait, and which have to leave."""

    name = "queues"
    version = "0.2.0"
    arguments = Settings
    events = (EventInterest("Pod", (Action.DELETE, Action.UPDATE_POD_SCALE_DOWN)),)
    pod_fields = (
        "/metadata/namespace",
        "/metadata/labels",
        "/spec/priority",
        "/spec/schedulingGroup",
        "/spec/resourceClaims",
        "/spec/containers/*/resources/requests",
        "/spec/initContainers/*/resources/requests",
        "/spec/initContainers/*/restartPolicy",
        "/spec/overhead",
        "/spec/resources/requests",
    )
    uses_clock = True
    wanted_deadlines_seconds = MappingProxyType({"post_filter": 10.0})

    def __init__(self, watched: Sequence[str] = (), client: StatusClient | None = None) -> None:
        self.watches = kinds(watched)
        self.cluster = Cluster(self.clock, self._weight)
        self._weights = Settings()
        self.budgets = Budgets()
        self.keys, self.hints = Keys(self), Hints(self)
        self._status: StatusWriter | None = None
        if client is not None:
            self._status = StatusWriter(self.clock, client, partial(statuses, self.cluster))

    @property
    def settings(self) -> Settings:
        """Return the arguments of the profile that the call being answered is about."""
        found: Settings = self.arguments_for(current_call().profile)
        return found

    @property
    def by_fair_share(self) -> bool:
        """Return whether fair shares are taken back, by the arguments that came last."""
        return self._weights.by_fair_share

    @property
    def reclaims(self) -> bool:
        """Return whether anything is taken back, by the arguments that came last."""
        return self._weights.reclaims

    def configure(self, arguments: Any, profile: str) -> None:
        """Divide the cluster in that way from now on."""
        del profile
        self._weights = arguments
        self.cluster.configure(self._weights)
        self.keys.all_changed()

    # -- asked by the scheduler -----------------------------------------------------------------------------

    def pre_filter(self, pod: Pod) -> Answer:
        """Turn down, on every node, a pod or group that its queue has no room for."""
        self._lead()
        registry = self.cluster.registry
        misplaced = registry.misplaced(pod.namespace, pod.labels)
        if misplaced is not None:
            return Reason(misplaced, Code.UNSCHEDULABLE_AND_UNRESOLVABLE)
        found = self.refusal_of(pod)
        self.cluster.waiting.tried(pod.uid, current_call().key.attempt, refused=found is not None)
        # Without backoff: hints say when the pod's turn has come.
        return SKIP if found is None else Status(Code.PENDING, (found,))

    def refusal_of(self, pod: Pod) -> str | None:
        """Return why the pod's queue has no room for it and those of its group that go with it, if so."""
        registry, facts = self.cluster.registry, facts_of(pod)
        name = registry.name_of(pod.namespace, pod.labels)
        if registry.queue(name) is None:
            return None
        pods = self._wanted(pod, facts)
        asked: dict[str, int] = {}
        for each in pods:
            add(asked, each.requests)
        held, ledger = self.cluster.promises.held(), self.cluster.ledger
        key = self.cluster.claim_key(pod.uid, facts.group)
        others = counting(held, ledger, key, name, pod.spec.priority)
        with counted(others, registry):
            return refusal(registry, name, asked, len(pods))

    def post_filter(self, pod: Pod, nodes: Nodes, verdicts: Verdicts) -> Nomination | Answer:
        """Take back what others have too much of, or make room among less important pods of the queue."""
        facts, promises = facts_of(pod), self.cluster.promises
        key = self.cluster.claim_key(pod.uid, facts.group)
        before = promises.take(key)
        if facts.never_preempts:
            return NEVER
        if before is not None and key != pod.uid and (planned := self._as_planned(pod, before)):
            promises.by_key[key] = before
            return planned
        found = self._planned(key, pod, before, Candidates.of(nodes, verdicts))
        return self._nominated(pod, found) if isinstance(found, Promise) else found

    def pod_group_post_filter(
        self, group: PodGroup, pod: Pod, nodes: Nodes, verdicts: Verdicts
    ) -> Sequence[GroupPreemption] | Answer:
        """Make room for a whole group, as for a pod; the scheduler tries the group before a pod leaves."""
        del group
        facts, promises = facts_of(pod), self.cluster.promises
        key = self.cluster.claim_key(pod.uid, facts.group)
        before = promises.take(key)
        if facts.never_preempts:
            return NEVER
        found = self._planned(key, pod, before, Candidates.of(nodes, verdicts))
        if not isinstance(found, Promise):
            return found
        victims = tuple(sorted(found.staying))
        self._hold(pod, found)
        return [GroupPreemption(victims)] if victims else []

    def reserve(self, pod: Pod, node: Node) -> Answer:
        """Count the pod from now on, under its attempt."""
        self.cluster.place(pod, node.name, current_call().key.attempt)
        return None

    def unreserve(self, key: PodKey, node_name: str) -> None:
        """Free what this attempt holds."""
        del node_name
        self.cluster.release(key.uid, key.attempt)

    def cycle_done(self, key: PodKey, outcome: CycleOutcome, node_name: str | None) -> None:
        """Let a pod that fits nowhere hold back no other one."""
        del node_name
        if outcome is CycleOutcome.UNSCHEDULABLE:
            self.cluster.waiting.tried_in_vain(key.uid)
            self.keys.refresh_soon()

    def queueing_hints(self, pods: Sequence[Pod], events: Sequence[ClusterEvent]) -> NDArray[np.bool_]:
        """Whether a pod is worth an attempt after an event. Shapes: (events, pods)."""
        return self.hints.after(pods, events)

    def sort_key(self, pod: Pod) -> SortKey:
        """Put the pod behind those of its queue, at the share that this comes to."""
        self._lead()
        return self.keys.key_of(pod)

    def pods_left(self, uids: Sequence[str]) -> None:
        """Count those pods no more among the waiting."""
        self.keys.leave(uids)

    def queue_reset(self, profile: str) -> None:
        """Forget who waits for that profile."""
        self.keys.leave(self.cluster.waiting.leave_profile(profile))

    # -- the cluster's changes ------------------------------------------------------------------------------

    def state_reset(self, *, epoch_changed: bool) -> None:
        """Forget what is placed; pods that leave for a promise are marked on themselves."""
        if epoch_changed and self._status is not None:
            self._status.follow()
        self.cluster.reset()
        self.budgets.clear()

    def state_settled(self) -> None:
        """Find the queue of each pod; from now on a queue's change is news."""
        self.cluster.settled()
        self.keys.all_changed()

    def node_upserted(self, index: int, node: Node) -> None:
        """Count what the node offers."""
        self.cluster.put_node(index, node)
        self.keys.all_changed()

    def node_removed(self, index: int, last: int) -> None:
        """Count it no more."""
        self.cluster.remove_node(index, last)
        self.keys.all_changed()

    def pod_upserted(self, placed: PlacedPod) -> None:
        """Count what the pod uses."""
        self.cluster.place(placed.pod, placed.node_name, placed.attempt)
        self.keys.refresh_soon()

    def pod_removed(self, placed: PlacedPod) -> None:
        """Count it no more."""
        if self.cluster.remove(placed.uid):
            self.clock.after(self.cluster.patience, self._promise_over)
        self.keys.refresh_soon()

    def object_upserted(self, key: ObjectKey, source: bytes) -> None:
        """Take over a queue of any kind, a pod group, a namespace's labels, or a disruption budget."""
        if key.resource == BUDGETS.resource:
            self.budgets.put(key, source)
        else:
            self._changed(key, changed=self.cluster.put_object(key, source))

    def object_removed(self, key: ObjectKey) -> None:
        """Drop it: what was in a queue that is gone is in another, or in none."""
        if key.resource == BUDGETS.resource:
            self.budgets.remove(key)
        else:
            self._changed(key, changed=self.cluster.remove_object(key))

    def state(self) -> dict[str, Any]:
        """Show what each queue has, wants, and would have by its fair share."""
        return {"queues": self.cluster.shown()}

    def stopped(self) -> None:
        """Send and write nothing more."""
        self.keys.stop()
        if self._status is not None:
            self._status.stop()

    def _lead(self) -> None:
        if self._status is not None and not self._status.leads:
            self._status.lead()

    def _weight(self, namespace: str) -> float:
        return self._weights.weights.get(namespace, self._weights.weight)

    def _changed(self, key: ObjectKey, *, changed: bool) -> None:
        if not changed or self.cluster.in_transfer:
            return
        self.keys.all_changed()
        name = f"{key.namespace}/{key.name}" if key.namespace else key.name
        cause, waiting = f"{key.resource} {name} changed", self.cluster.waiting
        if key.resource == POD_GROUPS.resource and waiting.by_uid:
            # Anyone may change groups, and only their own pods may fit because of that.
            members = waiting.by_group.get(group_key(key), {})
            self.requeue.pods(list(members), cause)
        else:
            self.requeue.all_rejected(cause)

    # -- making room ----------------------------------------------------------------------------------------

    def _wanted(self, pod: Pod, facts: PodFacts) -> list[Wanted]:
        """Return the pod, and of its group as many as have to find a place with it."""
        return self.cluster.wanted(devices_asked(pod), facts.group)

    def _claimant(self, key: Hashable, pod: Pod) -> Claimant:
        queue = self.cluster.registry.name_of(pod.namespace, pod.labels)
        return Claimant(key, queue, pod.spec.priority, self._wanted(pod, facts_of(pod)))

    def _planner(self) -> Planner:
        settings = self.settings
        state = PlanState(
            self.cluster.ledger,
            self.cluster.promises,
            self.budgets,
            self.cluster.groups,
            self.cluster.devices,
            self.cluster.entitlement(by_fair_share=settings.by_fair_share),
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
        promises, claimant = self.cluster.promises, self._claimant(key, pod)
        leaving, staying = set[str](), set[str]()
        if before is not None and before.begun:
            there = self.cluster.ledger.by_uid.keys()
            leaving, staying = before.victims & there, before.staying & there
        planner = self._planner()
        plan = planner.plan(claimant, candidates, leaving)
        if plan is None:
            queue = self.cluster.registry.queue(claimant.queue)
            entitled = planner.state.entitlement.covers(queue, claimant.asked)
            self.cluster.waiting.no_plan(pod.uid, self.clock.now(), entitled=entitled)
            return NO_ROOM
        if plan.victims and promises.paused(key):
            return PAUSED
        victims = {victim.uid for victim in plan.victims}
        return Promise(
            key,
            claimant.queue,
            claimant.priority,
            plan.places | self.cluster.held_by(facts_of(pod).group),
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
        self.cluster.promises.give(promise)
        if promise.staying:
            self.clock.after(self.cluster.patience, self._promise_over)
            preemptor, node_name = f"{pod.namespace}/{pod.name}", promise.places[pod.uid].node_name
            log.info("preempting pod=%s node=%s victims=%s", preemptor, node_name, len(promise.staying))

    def _promise_over(self) -> None:
        """Have pods tried again that respected promises which hold no more."""
        before = {key: promise.queue for key, promise in self.cluster.promises.by_key.items()}
        held = {promise.key for promise in self.cluster.promises.held()}
        roots = {self.cluster.registry.root_of(queue) for key, queue in before.items() if key not in held}
        if worth := self.hints.worth(roots):
            self.requeue.pods(sorted(worth), "places that pods were evicted for were not taken")
