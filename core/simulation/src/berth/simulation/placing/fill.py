"""How many more copies of a pod fit, on which nodes, and why the next one does not.

Copies are placed one by one (one_by_one.py), so spreading, affinity and ties are as for pods created one
after the other.

Called by: `berth simulate fill`.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import Final

import msgspec

from berth.framework.status import Status
from berth.objects.node import Node
from berth.objects.pods.pod import Pod
from berth.simulation.errors import InputError
from berth.simulation.placing.group_placing import GroupPlacing
from berth.simulation.placing.one_by_one import Left, OneByOne, Pace, check_not_grouped, on_running
from berth.simulation.plugins.plugin_calls import PluginUse
from berth.simulation.reading.inputs import ClusterInput
from berth.simulation.reading.timeline import PREFIX
from berth.simulation.running.engine import Simulation
from berth.simulation.running.options import SimulationOptions
from berth.simulation.running.outcome import (
    API_VERSION,
    ERROR,
    UNSCHEDULABLE,
    USUAL,
    PendingPod,
    ResourceUtilization,
    in_use,
    utilization,
    without_profile,
)
from berth.simulation.what_if.changes import evicted_by
from berth.simulation.what_if.drain_messages import drain_messages

WEIGHT: Final = f"{PREFIX}weight"
"""How often a pod comes in a mixture, beside the others."""
HEAVIEST: Final = 10_000
MAX_COPIES: Final = 1_000_000

POOLS: Final = (
    "topology.kubernetes.io/region",
    "topology.kubernetes.io/zone",
    "cloud.google.com/gke-nodepool",
    "eks.amazonaws.com/nodegroup",
    "kubernetes.azure.com/agentpool",
    "karpenter.sh/nodepool",
    "node.kubernetes.io/instance-type",
)
"""Labels by which placements are counted, where nodes have them."""


class Stop(msgspec.Struct, rename="camel", frozen=True):
    """The first copy that does not fit, and why; the message is kube-scheduler's."""

    pod: str
    reason: str
    message: str


class Fill(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    """How many copies fit."""

    api_version: str = API_VERSION
    kind: str = "Fill"
    seed: int
    count: int
    pods: dict[str, int]
    """Of each pod of the mixture."""
    stopped_by: Stop | None
    """None where as many were placed as were asked for."""
    nodes: dict[str, int]
    by_label: dict[str, dict[str, int]]
    nodes_in_use: list[str]
    """Nodes with a pod at the end, a copy or another one, that is neither a DaemonSet's nor static."""
    utilization: dict[str, ResourceUtilization]
    evicted: int = 0
    """Pods of the cluster that lost their node to a change; they are placed before the first copy."""
    evicted_pending: list[PendingPod] = []
    """Those of them that fit on no other node."""
    drain: dict[str, list[str]] = {}
    """What `kubectl drain` says of pods on the nodes that a change drains, by its messages."""
    before: "Fill | None" = None
    """The same without `--what-if`, where it was given."""
    left_out: dict[str, int] = {}
    """Objects of the input that no decision reads and no plugin was shown, by kind."""
    plugins: list[PluginUse] = []
    """The sidecars and extenders."""


def fill(
    cluster: ClusterInput,
    pods: Sequence[Pod],
    options: SimulationOptions,
    *,
    most: int = MAX_COPIES,
    labels: Sequence[str] = POOLS,
    then: ClusterInput | None = None,
    pace: Pace = nullcontext,
) -> Fill:
    """Place copies of these pods, in turn by their weights, until one does not fit or there are `most`.

    The cluster's pending pods are left out. Where `then` is given, the cluster
    after the changes, pods that lost their node are placed before the copies, by priority, and `before`
    is the result for the unchanged cluster. Copies are counted by `labels`.
    Raises: InputError, PluginsError, BuildError, and what `pace` raises.
    """
    names = {profile.scheduler_name for profile in options.loaded.profiles}
    for pod in pods:
        check_not_grouped(pod, names)

    def found(there: ClusterInput, evicted: Sequence[Pod]) -> Fill:
        async def run(simulation: Simulation) -> Fill:
            filling = _Filling(simulation, pods, pace)
            await filling.place_evicted(evicted)
            stop = await filling.place(most)
            return _found(simulation, filling, stop, labels)

        return on_running(there, options, run, pace)

    as_it_is = found(cluster, ())
    if then is None:
        return as_it_is
    changed = found(then, evicted_by(cluster, then))
    return msgspec.structs.replace(changed, before=as_it_is, drain=drain_messages(cluster, then))


def _weight(pod: Pod) -> int:
    text = pod.metadata.annotations.get(WEIGHT, "1")
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:9]) <= HEAVIEST:
        expected = f"a whole number from 1 to {HEAVIEST} is expected"
        raise InputError(f"Pod {pod.key}: metadata.annotations[{WEIGHT}]: found {text[:60]!r}; {expected}")
    return int(text)


def in_turn(weights: Sequence[int]) -> Iterator[int]:
    """The index of each next pod, mixed as evenly as the weights allow."""
    total, credit = sum(weights), [0] * len(weights)
    while True:
        credit = [held + weight for held, weight in zip(credit, weights, strict=True)]
        index = credit.index(max(credit))
        credit[index] -= total
        yield index


class _Filling:
    """Places one copy after another."""

    def __init__(self, simulation: Simulation, pods: Sequence[Pod], pace: Pace) -> None:
        self.nodes: Counter[str] = Counter()
        self.counts = [0] * len(pods)
        self.pods = pods
        self._pace = pace
        self.evicted = 0
        self.evicted_pending: list[PendingPod] = []
        self._profiles = simulation.core.profiles.frameworks
        self._one_by_one = OneByOne(simulation)
        self._groups = GroupPlacing(simulation, self._one_by_one)
        self._turns = in_turn([_weight(pod) for pod in pods])

    async def place_evicted(self, pods: Sequence[Pod]) -> None:
        """Place each pod that fits, those of higher priority first, and those of a group together."""
        self.evicted = len(pods)
        self._groups.know(pods)
        turns: dict[object, list[Pod]] = {}
        for pod in sorted(pods, key=lambda each: -each.priority):
            turns.setdefault(self._groups.key_of(pod) or pod.uid, []).append(pod)
        for members in turns.values():
            known = [pod for pod in members if pod.spec.scheduler_name in self._profiles]
            unknown = [pod for pod in members if pod.spec.scheduler_name not in self._profiles]
            self.evicted_pending += [without_profile(pod, self._profiles) for pod in unknown]
            with self._pace():
                left = await self._left_of(known)
            for pod, status in left:
                reason = _reason(status)
                pending = PendingPod(pod.key, pod.spec.scheduler_name, reason, status.message, 1)
                self.evicted_pending.append(pending)

    async def _left_of(self, members: Sequence[Pod]) -> Sequence[Left]:
        """Place a pod, or the pods of one group; returns those without a node."""
        if not members:
            return ()
        group = self._groups.key_of(members[0])
        if group is not None:
            return (await self._groups.place(group, members)).left
        (pod,) = members
        placed = await self._one_by_one.place(pod)
        return [Left(pod, placed)] if isinstance(placed, Status) else ()

    async def place(self, most: int) -> Stop | None:
        """Place until a copy does not fit; None where all do."""
        for number in range(most):
            index = next(self._turns)
            with self._pace():
                placed = await self._one_by_one.place(copy_of(self.pods[index], number))
            if isinstance(placed, Status):
                return Stop(self.pods[index].key, _reason(placed), placed.message)
            self.nodes[placed.node] += 1
            self.counts[index] += 1
        return None


def _reason(status: Status) -> str:
    return UNSCHEDULABLE if status.rejected else ERROR


def copy_of(pod: Pod, number: int) -> Pod:
    """A new pod of the same template."""
    name = f"{pod.name}-{number}"
    metadata = msgspec.structs.replace(pod.metadata, name=name, uid=f"{pod.namespace}/{name}")
    return Pod(metadata=metadata, template=pod.template)


def _found(simulation: Simulation, filling: _Filling, stop: Stop | None, labels: Sequence[str]) -> Fill:
    core = simulation.core
    core.cache.update_snapshot(core.snapshot)
    there = {node.name: node for node in simulation.state.all(Node)}
    extended = {name for node in there.values() for name in node.status.allocatable} - USUAL
    by_label = {label: _counted(filling.nodes, there, label) for label in labels}
    return Fill(
        seed=simulation.options.seed,
        count=sum(filling.counts),
        pods={pod.key: count for pod, count in zip(filling.pods, filling.counts, strict=True)},
        stopped_by=stop,
        nodes=dict(sorted(filling.nodes.items())),
        by_label={label: counts for label, counts in by_label.items() if counts},
        nodes_in_use=in_use(core.snapshot),
        utilization=utilization(core.snapshot, extended),
        evicted=filling.evicted,
        evicted_pending=filling.evicted_pending,
        left_out=simulation.left_out(),
        plugins=simulation.plugins.uses(),
    )


def _counted(placed: Counter[str], nodes: dict[str, Node], label: str) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for name, count in placed.items():
        value = nodes[name].labels.get(label)
        if value is not None:
            counts[value] += count
    return dict(sorted(counts.items()))
