"""The gpu-share plugin: filter and score over the device table, hold devices for attempts, write them."""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from berth_gpu_share.contract import (
    COUNT,
    DEVICES,
    MEMORY,
    MILLI,
    MODELS,
    RESOURCE,
    WHOLE,
    Demand,
    DemandError,
    assigned_to,
)
from berth_gpu_share.devices import DeviceTable, Mask, Share
from berth_gpu_share.fragmentation import FragmentationGradientDescent
from berth_gpu_share.ledger import Holding, Ledger
from berth_gpu_share.policies import BestFit, Clustering, DotProduct, Packing, Policy, Random, in_order
from berth_gpu_share.vocabularies import ANNOTATIONS, PRESETS, Reading, vocabulary
from berth_sdk import (
    SKIP,
    Action,
    Answer,
    ArgumentError,
    ClusterEvent,
    Code,
    EventInterest,
    MetadataPatch,
    Node,
    Nodes,
    Normalization,
    PlacedPod,
    Plugin,
    Pod,
    PodKey,
    Reason,
    Scores,
    current_call,
)

POLICIES: Mapping[str, Callable[[], Policy]] = {
    "best-fit": BestFit,
    "clustering": Clustering,
    "dot-product": DotProduct,
    "fgd": FragmentationGradientDescent,
    "packing": Packing,
    "random": Random,
}
DEFAULT_POLICY = "best-fit"
TIES = ("any", "fixed", "used-first")
NOT_NODE_LOCAL = frozenset({"fgd", "random"})
"""By these a node's score is more than a matter of node and pod; the process says so for all profiles.

With fgd that is so while it learns which pods usually come, and not where it was given them."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Profile:
    """What a profile's arguments say."""

    policy: Policy
    ties: str
    cpu_pods: bool
    reading: Reading
    """How a pod's demand is read."""


class GpuShare(Plugin):
    """Share GPUs between pods."""

    name = "gpu-share"
    version = "0.2.0"
    reasons = (
        Reason("node(s) had no GPU", Code.UNSCHEDULABLE_AND_UNRESOLVABLE),
        Reason("node(s) had a GPU model that the pod doesn't allow", Code.UNSCHEDULABLE_AND_UNRESOLVABLE),
        Reason("node(s) had fewer GPUs than the pod asks for", Code.UNSCHEDULABLE_AND_UNRESOLVABLE),
        Reason("node(s) had no GPU with enough left for the share"),
        Reason("node(s) had too few unused GPUs"),
        Reason(
            "node(s) had GPUs of less memory than the pod asks for, or no label that says how much",
            Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
        ),
    )
    events = (
        EventInterest(
            "Node", (Action.ADD, Action.UPDATE_NODE_ALLOCATABLE, Action.UPDATE_NODE_LABEL), ask_hint=False
        ),
        EventInterest("Pod", (Action.DELETE,), pod_resources=(RESOURCE,), ask_hint=False),
        # A share by annotation alone is no resource that could be named here.
        EventInterest("Pod", (Action.DELETE,), ask_hint=True),
    )
    pod_fields = (
        "/spec/containers/*/resources/requests",
        "/spec/initContainers/*/resources/requests",
        "/spec/initContainers/*/restartPolicy",
        "/spec/overhead",
        "/spec/resources/requests",
        *(f"/metadata/annotations/{key.replace('/', '~1')}" for key in (COUNT, MILLI, MODELS, MEMORY)),
        *(f"/metadata/annotations/{key}" for key in ANNOTATIONS),
    )
    pods_without_status = True
    arguments_schema = {
        "type": "object",
        "properties": {
            "policy": {"enum": sorted(POLICIES)},
            "ties": {"enum": list(TIES)},
            "cpuPods": {"type": "boolean"},
            "names": {"type": ["string", "object"]},
        },
        "additionalProperties": False,
    }

    def __init__(
        self, policy: str = DEFAULT_POLICY, seed: int = 0, usual: Counter[Demand] | None = None
    ) -> None:
        self.default = policy
        known_workload = policy == "fgd" and usual is not None
        self.node_local = known_workload or policy not in NOT_NODE_LOCAL
        self.policies: dict[str, Policy] = {policy: _policy(policy, seed, usual)}
        self.profiles: dict[str, Profile] = {}
        self.table = DeviceTable(seed)
        self.ledger = Ledger()
        self._readings: list[Reading] = list(PRESETS.values())
        """How placed pods are read, of whatever profile: the first by which one asks for a GPU."""
        self._before_transfer: dict[str, Holding] = {}
        self._read: tuple[Pod | None, Demand | None] = (None, None)

    def configure(self, arguments: dict[str, Any], profile: str) -> None:
        """Take over how the profile scores."""
        name = arguments.get("policy", self.default)
        if errors := self._complaints(name, arguments):
            raise ArgumentError(*errors)
        if name not in self.policies:
            self.policies[name] = POLICIES[name]()
        ties, cpu_pods = arguments.get("ties", TIES[0]), arguments.get("cpuPods", False)
        reading = vocabulary(arguments.get("names", "berth"))
        if reading not in self._readings:
            self._readings.append(reading)
        self.profiles[profile] = Profile(self.policies[name], ties, cpu_pods, reading)

    def _complaints(self, name: str, arguments: dict[str, Any]) -> list[str]:
        known = self.arguments_schema["properties"]
        errors = [f"{key}: unknown argument" for key in arguments if key not in known]
        if name not in POLICIES:
            errors.append(f"policy: {name!r} is none of {', '.join(sorted(POLICIES))}")
        elif name in NOT_NODE_LOCAL and self.default != name:
            errors.append(f"policy: start the plugin with --policy {name} to use it")
        if arguments.get("ties", TIES[0]) not in TIES:
            errors.append(f"ties: {arguments['ties']!r} is none of {', '.join(TIES)}")
        if not isinstance(arguments.get("cpuPods", False), bool):
            errors.append(f"cpuPods: {arguments['cpuPods']!r} is neither true nor false")
        try:
            reading = vocabulary(arguments.get("names", "berth"))
        except ValueError as error:
            errors.append(f"names: {error}")
        else:
            if self.table.size and reading not in self._readings:
                errors.append(
                    "names: placed pods were read by others; restart the plugin with these arguments"
                )
        return errors

    # -- asked by the scheduler -----------------------------------------------------------------------------

    def pre_filter(self, pod: Pod) -> Answer:
        """Skip pods that ask for no GPU; turn down those that ask for nonsense."""
        try:
            demand = self._demand(pod)
        except DemandError as error:
            # No word of the pod's name, which its condition and event have: equal pods share the answer.
            return Reason(str(error), Code.UNSCHEDULABLE_AND_UNRESOLVABLE)
        wanted = demand or self._cpu_alone(pod)
        if wanted is not None and current_call().key.attempt == 1:
            self._saw(wanted)
        return SKIP if demand is None else None

    def filter_nodes(self, pod: Pod, nodes: Nodes) -> NDArray[np.uint8]:
        """Number the first of `reasons` that holds for each node."""
        del nodes
        demand = self._demand(pod)
        assert demand is not None, "pre_filter skips pods without a demand"
        table = self.table
        codes = np.full(table.size, 6, np.uint8)
        for rows, there in self._by_memory(demand):
            full = np.uint8(4 if there.milli < WHOLE else 5)
            codes[rows] = np.where(table.room(there), np.uint8(0), full)[rows]
        codes[table.count < demand.count] = 3
        if demand.models:
            codes[~table.allowed(demand.models)] = 2
        codes[table.count == 0] = 1
        return codes

    def score_nodes(self, pod: Pod, nodes: Nodes) -> Scores | None:
        """Score by the profile's policy."""
        del nodes
        try:
            demand = self._demand(pod) or self._cpu_alone(pod)
        except DemandError:
            return None  # `pre_filter` turns the pod down.
        if demand is None:
            return None
        profile = self._profile()
        scores = self._scored(profile.policy, demand)
        if profile.ties == TIES[0]:
            return scores
        return in_order(scores, self.table, used_first=profile.ties == "used-first")

    def _scored(self, policy: Policy, demand: Demand) -> Scores:
        if not demand.memory:
            return policy.score(demand, self.table)
        points, normalization = np.zeros(self.table.size, np.int64), Normalization.NONE
        for rows, there in self._by_memory(demand):
            scores = policy.score(there, self.table)
            points[rows], normalization = scores.points[rows], scores.normalization
        return Scores(points, normalization)

    def _by_memory(self, demand: Demand) -> Iterator[tuple[Mask, Demand]]:
        """Give the rows with enough memory by device, and the demand on them.

        Shapes: rows bool (n,).
        """
        if not demand.memory:
            yield np.ones(self.table.size, np.bool_), demand
            return
        for memory in np.unique(self.table.memory).tolist():
            there = demand.on(memory)
            if there is not None:
                yield self.table.memory == memory, there

    def queueing_hint(self, pod: Pod, event: ClusterEvent) -> bool:
        """Answer whether a pod that went held a share of a GPU; nodes that change always count."""
        del pod
        if event.resource != "Pod":
            return True
        gone, _ = event.pods()
        try:
            return gone is None or self._placed_demand(gone) is not None
        except DemandError:
            return False

    def reserve(self, pod: Pod, node: Node) -> MetadataPatch | Answer:
        """Hold devices for the attempt, and have them written to the pod before it is bound."""
        demand = self._demand(pod)
        if demand is not None and not self._hold(demand, current_call().key, node.name):
            return self.reasons[4 if demand.milli == WHOLE else 3]
        holding = self.ledger.by_uid.get(pod.uid)
        if holding is None or not holding.share.devices:
            return None
        return MetadataPatch(annotations={DEVICES: ",".join(map(str, holding.share.devices))})

    def unreserve(self, key: PodKey, node_name: str) -> None:
        """Give back what this attempt holds."""
        del node_name
        self._recompute(self.ledger.release(key.uid, key.attempt))

    def pre_bind(self, pod: Pod, node: Node) -> MetadataPatch | Answer:
        """Give an attempt its devices again that was reserved before a restart."""
        return self.reserve(pod, node)

    # -- the cluster's changes ------------------------------------------------------------------------------

    def state_reset(self, *, epoch_changed: bool) -> None:
        """Forget everything but the devices of attempts that go on."""
        held = self.ledger.clear()
        self._before_transfer = {} if epoch_changed else held
        self.table.clear()

    def state_settled(self) -> None:
        """Forget what the transfer did not confirm."""
        self._before_transfer = {}

    def node_upserted(self, index: int, node: Node) -> None:
        """Take over a row."""
        self.table.put(index, node, self.ledger.on(node.name))

    def node_removed(self, index: int, last: int) -> None:
        """Drop a row."""
        self.table.remove(index, last)

    def pod_upserted(self, placed: PlacedPod) -> None:
        """Count the pod where the state says: on the devices written to it, or held, or chosen now."""
        try:
            demand = self._placed_demand(placed.pod)
        except DemandError as error:
            log.warning(
                "placed pod ignored pod=%s err=%s", f"{placed.pod.namespace}/{placed.pod.name}", error
            )
            demand = None
        demand = demand and (demand.on(self._memory_of(placed.node_name)) or replace(demand, milli=WHOLE))
        known = self.ledger.by_uid.get(placed.uid) or self._before_transfer.get(placed.uid)
        if demand is not None and known is None and not placed.attempt:
            self._saw(demand)
        devices = () if demand is None else self._devices(placed, demand, known)
        milli, cpu = (demand.milli, demand.cpu) if demand else (0, placed.pod.request("cpu"))
        share = Share(devices, milli, cpu)
        self._recompute(self.ledger.put(Holding(placed.uid, placed.attempt, placed.node_name, share)))

    def pod_removed(self, placed: PlacedPod) -> None:
        """Free what the pod had."""
        self._recompute(self.ledger.drop(placed.uid))

    def _devices(self, placed: PlacedPod, demand: Demand, known: Holding | None) -> tuple[int, ...]:
        written = assigned_to(placed.pod)
        if written is not None:
            return written
        if known is not None and known.node_name == placed.node_name:
            return known.share.devices
        self._recompute(self.ledger.drop(placed.uid))
        index = self.table.index.get(placed.node_name)
        if index is None:
            return ()
        picked = self.policies[self.default].pick(demand, self.table, index)
        if picked is None:
            log.warning("no room for a placed pod pod=%s", f"{placed.pod.namespace}/{placed.pod.name}")
            fullest_last = np.argsort(-self.table.left[index], kind="stable")
            picked = tuple(fullest_last[: demand.count].tolist())
        return picked

    def _hold(self, demand: Demand, key: PodKey, node_name: str) -> bool:
        if self.ledger.held(key.uid, key.attempt, node_name):
            return True
        self._recompute(self.ledger.drop(key.uid))
        there = demand.on(self._memory_of(node_name))
        if there is None:
            return False
        devices = self._profile().policy.pick(there, self.table, self.table.index[node_name])
        if devices is None:
            return False
        share = Share(devices, there.milli, there.cpu)
        self._recompute(self.ledger.put(Holding(key.uid, key.attempt, node_name, share)))
        return True

    def _recompute(self, node_names: Iterable[str]) -> None:
        for name in node_names:
            index = self.table.index.get(name)
            if index is not None:
                self.table.charge(index, self.ledger.on(name))

    def _demand(self, pod: Pod) -> Demand | None:
        """Read what the pod asks for, once for the calls of an attempt: they all get the same object.

        Raises: DemandError.
        """
        if self._read[0] is not pod:
            self._read = (pod, self._profile().reading(pod))
        return self._read[1]

    def _placed_demand(self, pod: Pod) -> Demand | None:
        return next(filter(None, (reading(pod) for reading in self._readings)), None)

    def _memory_of(self, node_name: str) -> int:
        index = self.table.index.get(node_name)
        return 0 if index is None else int(self.table.memory[index])

    def _cpu_alone(self, pod: Pod) -> Demand | None:
        """Read the demand of a pod without GPU, None where the profile leaves those to others."""
        return Demand(0, 0, cpu=pod.request("cpu")) if self._profile().cpu_pods else None

    def _profile(self) -> Profile:
        return self.profiles[current_call().profile]

    def _saw(self, demand: Demand) -> None:
        usual = demand.on(int(self.table.memory.max(initial=0)))
        if usual is None:
            return
        for policy in self.policies.values():
            policy.saw(usual)


def _policy(name: str, seed: int, usual: Counter[Demand] | None) -> Policy:
    if name == "random":
        return Random(seed)
    if name == "fgd" and usual is not None:
        return FragmentationGradientDescent.knowing(usual)
    return POLICIES[name]()
