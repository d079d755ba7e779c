"""The capacity-scheduling plugin: pods within their namespace's quota, and room for what it guarantees."""

import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from berth_capacity_scheduling.amounts import requests_of
from berth_capacity_scheduling.budgets import BUDGETS, Budgets
from berth_capacity_scheduling.ledger import Ledger
from berth_capacity_scheduling.promises import Promise, Promises, counted, counting
from berth_capacity_scheduling.quota import ELASTIC_QUOTAS, KIND
from berth_capacity_scheduling.room import Room, Search
from berth_capacity_scheduling.settings import SCHEMA, Settings, settings_of
from berth_sdk import (
    SKIP,
    Action,
    Answer,
    ClusterEvent,
    Code,
    EventInterest,
    Node,
    Nodes,
    Nomination,
    ObjectKey,
    PlacedPod,
    Plugin,
    Pod,
    PodKey,
    Reason,
    Status,
    Verdicts,
    current_call,
)
from berth_sdk.objects import decode_pod

NEVER = Status(Code.UNSCHEDULABLE, ("not eligible due to preemptionPolicy=Never.",))
ON_ITS_WAY = Status(Code.UNSCHEDULABLE, ("pods that are leaving make room for the pod",))
NO_ROOM = Status(Code.UNSCHEDULABLE, ("no node where evicting pods that quotas let go makes room",))
_OF_RESOURCES = ("Insufficient ", "Too many pods")

log = logging.getLogger(__name__)


class CapacityScheduling(Plugin):
    """Keep namespaces within their ElasticQuotas, and give them back what others borrowed."""

    name = "capacity-scheduling"
    version = "0.1.0"
    watches = (ELASTIC_QUOTAS, BUDGETS)
    events = (EventInterest("Pod", (Action.DELETE, Action.UPDATE_POD_SCALE_DOWN)),)
    pod_fields = (
        "/metadata/namespace",
        "/spec/priority",
        "/spec/containers/*/resources/requests",
        "/spec/initContainers/*/resources/requests",
        "/spec/initContainers/*/restartPolicy",
        "/spec/overhead",
        "/spec/resources/requests",
    )
    arguments_schema = SCHEMA
    uses_clock = True

    def __init__(self) -> None:
        self.profiles: dict[str, Settings] = {}
        self.ledger = Ledger()
        self.budgets = Budgets()
        self.promises = Promises(self.clock.now)
        self._in_transfer = False

    def configure(self, arguments: dict[str, Any], profile: str) -> None:
        """Take over the profile's settings."""
        self.profiles[profile] = settings_of(arguments)

    def profile_removed(self, profile: str) -> None:
        """Forget the profile's settings."""
        self.profiles.pop(profile, None)

    # -- asked by the scheduler -----------------------------------------------------------------------------

    def pre_filter(self, pod: Pod) -> Answer:
        """Turn a pod down that its quota has no room for, on every node."""
        balance = self.ledger.balance
        quota = balance.quota(pod.namespace)
        if quota is None:
            return SKIP
        promised = counting(self.promises.beside(pod.uid), balance, pod.namespace, pod.spec.priority)
        with counted(promised, balance):
            refusal = balance.refusal(quota, requests_of(pod))
        return SKIP if refusal is None else Reason(refusal, Code.UNSCHEDULABLE_AND_UNRESOLVABLE)

    def post_filter(self, pod: Pod, nodes: Nodes, verdicts: Verdicts) -> Nomination | Answer:
        """Take back what others borrowed, or make room among less important pods of the namespace."""
        self.promises.withdraw(pod.uid)
        if pod.raw["spec"].get("preemptionPolicy") == "Never":
            return NEVER
        search = Search(
            pod,
            requests_of(pod),
            self.ledger,
            self.promises,
            budgets=self.budgets,
            settings=self._settings(),
        )
        room = search.best(_Candidates(nodes, verdicts))
        if room is None:
            return NO_ROOM
        if not room.victims:
            return ON_ITS_WAY
        return self._promised(pod, room)

    def reserve(self, pod: Pod, node: Node) -> Answer:
        """Count the pod from now on, under its attempt."""
        self.promises.withdraw(pod.uid)
        self.ledger.put(pod, requests_of(pod), node.name, current_call().key.attempt)
        return None

    def unreserve(self, key: PodKey, node_name: str) -> None:
        """Free what this attempt holds."""
        del node_name
        self.ledger.release(key.uid, key.attempt)

    def queueing_hints(self, pods: Sequence[Pod], events: Sequence[ClusterEvent]) -> NDArray[np.bool_]:
        """Whether what a pod leaves behind may be what another waits for. Shapes: (events, pods)."""
        rows = [self._hints(pods, event) for event in events]
        return np.array(rows, np.bool_).reshape(len(events), len(pods))

    # -- the cluster's changes ------------------------------------------------------------------------------

    def state_reset(self, *, epoch_changed: bool) -> None:
        """Forget everything; pods that leave for a promise are marked on themselves."""
        del epoch_changed
        self.ledger.clear()
        self.budgets.clear()
        self.promises.by_uid.clear()
        self._in_transfer = True

    def state_settled(self) -> None:
        """From now on a quota's change is news."""
        self._in_transfer = False

    def object_upserted(self, key: ObjectKey, source: bytes) -> None:
        """Take over a quota, or a disruption budget."""
        if key.resource == BUDGETS.resource:
            self.budgets.put(key, source)
            return
        self._quota_changed(key, changed=self.ledger.balance.quotas.put(key, source))

    def object_removed(self, key: ObjectKey) -> None:
        """Drop a quota: its namespace is free, and guaranteed nothing; or drop a disruption budget."""
        if key.resource == BUDGETS.resource:
            self.budgets.remove(key)
            return
        self._quota_changed(key, changed=self.ledger.balance.quotas.remove(key))

    def pod_upserted(self, placed: PlacedPod) -> None:
        """Count a pod."""
        self.promises.withdraw(placed.uid)
        self.ledger.put(placed.pod, requests_of(placed.pod), placed.node_name, placed.attempt)

    def pod_removed(self, placed: PlacedPod) -> None:
        """Count it no longer."""
        self.ledger.drop(placed.uid)
        self.promises.victim_gone(placed.uid)

    def _quota_changed(self, key: ObjectKey, *, changed: bool) -> None:
        if not changed:
            return
        self.ledger.balance.quotas_changed()
        if not self._in_transfer:
            self.requeue.all_rejected(f"{KIND} {key.namespace}/{key.name} changed")

    def _settings(self) -> Settings:
        return self.profiles[current_call().profile]

    def _promised(self, pod: Pod, room: Room) -> Nomination:
        victims = tuple(victim.uid for victim in room.victims)
        if current_call().shadow:
            return Nomination(room.node_name, victims)  # no pod leaves for it
        self.promises.give(
            Promise(pod.uid, pod.namespace, room.node_name, pod.spec.priority, requests_of(pod), set(victims))
        )
        log.info(
            "preempting pod=%s/%s node=%s victims=%s", pod.namespace, pod.name, room.node_name, len(victims)
        )
        return Nomination(room.node_name, victims)

    def _hints(self, pods: Sequence[Pod], event: ClusterEvent) -> list[bool]:
        source = event.old or event.new
        if source is None:
            return [True] * len(pods)
        gone = decode_pod(source)
        if event.new is None and self.promises.withdraw(gone.uid):
            return [True] * len(pods)
        return [self._helps(gone, pod) for pod in pods]

    def _helps(self, gone: Pod, pod: Pod) -> bool:
        """Whether room that this pod leaves counts for the other: in its own quota, or to be borrowed."""
        balance, asked = self.ledger.balance, requests_of(pod)
        quota = balance.quota(pod.namespace)
        if quota is None or gone.namespace == pod.namespace:
            return True
        if balance.quota(gone.namespace) is None or not asked.keys() & requests_of(gone).keys():
            return False
        return not balance.is_full(quota, asked)


class _Candidates:
    """The nodes where room may be made: those turned down for a quota, or for resources that pods take up."""

    def __init__(self, nodes: Nodes, verdicts: Verdicts) -> None:
        self._nodes, self._verdicts = nodes, verdicts
        self._index = {node.name: index for index, node in enumerate(nodes)}

    def __call__(self, name: str) -> Node | None:
        index = self._index.get(name)
        if index is None:
            return None
        code = int(self._verdicts.codes[index])
        helps = code == 0 or _may_be_helped(self._verdicts.reasons[code - 1])
        return self._nodes[index] if helps else None


def _may_be_helped(reason: Reason) -> bool:
    if reason.text.startswith(f"{KIND} "):
        return True
    of_resources = all(part.startswith(_OF_RESOURCES) for part in reason.text.split("; "))
    return reason.code is Code.UNSCHEDULABLE and of_resources
