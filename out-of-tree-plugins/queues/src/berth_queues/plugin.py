"""The queues plugin: the order of the queue, room by quota, and what is taken back."""

from collections.abc import Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from berth_queues.admission import refusal
from berth_queues.amounts import add
from berth_queues.budgets import BUDGETS, Budgets
from berth_queues.cluster import Cluster
from berth_queues.device_claims import devices_asked
from berth_queues.groups import POD_GROUPS, facts_of, group_key
from berth_queues.hints import Hints
from berth_queues.keys import Keys
from berth_queues.making_room import MakingRoom
from berth_queues.promises import counted, counting
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
        self.keys, self.hints, self.making_room = Keys(self), Hints(self), MakingRoom(self)
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
        pods = self.cluster.wanted(devices_asked(pod), facts.group)
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
        return self.making_room.for_pod(pod, nodes, verdicts)

    def pod_group_post_filter(
        self, group: PodGroup, pod: Pod, nodes: Nodes, verdicts: Verdicts
    ) -> Sequence[GroupPreemption] | Answer:
        """Make room for a whole group, as for a pod; the scheduler tries the group before a pod leaves."""
        del group
        return self.making_room.for_group(pod, nodes, verdicts)

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
            self.clock.after(self.cluster.patience, self.making_room.wake_others)
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
        self.hints.stop()
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
