"""LowNodeUtilization and HighNodeUtilization: by what pods request, as the scheduler counts it.

Source: pkg/framework/plugins/nodeutilization (descheduler v0.36).
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

from berth.config.descheduling.policy import HighNodeUtilizationArgs, LowNodeUtilizationArgs
from berth.descheduling.simulated_cluster import SimulatedCluster
from berth.descheduling.strategies.strategy import (
    EvictionCandidate,
    EvictionProposal,
    Filter,
    Judge,
    Judgement,
    Scene,
)
from berth.framework.pluralize import pluralize
from berth.objects.pods.node_pods import belongs_to_node
from berth.objects.pods.pod import Pod
from berth.snapshot.pod_info import PodInfo

LOW: Final = "LowNodeUtilization"

Uses = Mapping[str, Mapping[str, float]]
"""The percentage in use, by resource and node."""
Requests = Mapping[str, int]


class LowUtilization:
    """From nodes above a target to nodes that stay below every target."""

    def __init__(self, args: LowNodeUtilizationArgs) -> None:
        self._args = args
        self._filter = Filter(args.evictable_namespaces)

    async def candidates(self, scene: Scene) -> EvictionProposal:
        """Pods of overutilised nodes, the fullest first, while enough nodes are underutilised."""
        simulated = scene.simulated
        uses = _uses(simulated, self._args.thresholds)
        low, high = self._bounds(uses)
        under = [
            name for name in simulated.nodes if _schedulable(simulated, name) and _below(uses, name, low)
        ]
        over = [name for name in simulated.nodes if _above(uses, name, high)]
        why_none = self._why_none(simulated, uses, under, over)
        if why_none:
            return EvictionProposal((), why_none)
        over.sort(key=lambda name: -_sum(uses, name))
        pods: dict[str, list[Pod]] = defaultdict(list)
        for pod in self._filter.among(scene.pods()):
            pods[pod.node_name].append(pod)
        found = [
            EvictionCandidate((pod,), f"{name} is overutilised: {_shown(uses, name, high)}")
            for name in over
            for pod in pods[name]
            if self._asks(simulated, pod, uses, high)
        ]
        without = "without a pod that may move and asks for what its node has too much of"
        return EvictionProposal(found, f"{pluralize(len(over), 'overutilised node')}, {without}")

    def _why_none(
        self, simulated: SimulatedCluster, uses: Uses, under: Sequence[str], over: Sequence[str]
    ) -> str:
        """Why no pod is to move, whatever pods there are; empty where some may be."""
        low, high = self._bounds(uses)
        why = _too_few(simulated, under, self._args.number_of_nodes, uses, low)
        if len(under) == len(simulated.nodes):
            why = f"all {len(under)} nodes are underutilised"
        if why or over:
            return why
        fullest = max(simulated.nodes, key=lambda name: _sum(uses, name))
        text = f"the fullest, {fullest}, has {_all(uses, fullest)}"
        return f"no node is overutilised: {text}, {_named('target', high)}"

    async def judge_of(self, scene: Scene, pod: Pod) -> Judge:
        """Better where no target is exceeded with the pod, while its own node was above one."""
        simulated, own = scene.simulated, pod.node_name
        most = self._args.eviction_limits.node
        if most is not None and scene.taken[LOW, own] >= most:
            return lambda _: Judgement(False, f"evictionLimits.node {most} is reached")
        uses = _uses(simulated, self._args.thresholds)
        requests = PodInfo(pod).requests
        before = _with(simulated, uses, requests, own)
        _, high = self._bounds({name: {**uses[name], **before[name]} for name in uses})
        if not _above(before, own, high):
            return lambda _: Judgement(False, f"{own} is not overutilised any more")
        text = f"{own} from {_all(before, own)} to {_all(uses, own)}"

        def judge(node: str) -> Judgement:
            after = _with(simulated, uses, requests, node)
            if not _above(after, node, high):
                return Judgement(True, text)
            return Judgement(False, f"{node} would be overutilised: {_all(after, node)}")

        return judge

    def _bounds(self, uses: Uses) -> tuple[Mapping[str, float], Mapping[str, float]]:
        low, high = self._args.thresholds, self._args.target_thresholds
        if not self._args.use_deviation_thresholds:
            return low, high
        mean = {name: sum(use.values()) / len(use) if use else 0.0 for name, use in uses.items()}
        return (
            {name: max(0.0, mean[name] - low[name]) for name in low},
            {name: min(100.0, mean[name] + high[name]) for name in high},
        )

    def _asks(self, simulated: SimulatedCluster, pod: Pod, uses: Uses, high: Mapping[str, float]) -> bool:
        """Whether the pod asks for something that its node is above the target of."""
        node, requests = pod.node_name, PodInfo(pod).requests
        return any(
            uses[name].get(node, 0.0) > high[name] and _share(simulated, requests, name, node) > 0
            for name in high
        )


class HighUtilization:
    """Empties underutilised nodes: all pods of a node find place on nodes that are not, or none moves."""

    def __init__(self, args: HighNodeUtilizationArgs) -> None:
        self._args = args
        self._filter = Filter(args.evictable_namespaces)

    async def candidates(self, scene: Scene) -> EvictionProposal:
        """The pods of each underutilised node, together; the emptiest node first."""
        simulated = scene.simulated
        uses, under = self._under(simulated)
        busy = [name for name in under if _movable(simulated, name)]
        why_none = self._why_none(simulated, uses, under, busy)
        if why_none:
            return EvictionProposal((), why_none)
        busy.sort(key=lambda name: _sum(uses, name))
        may_move = {pod.uid for pod in self._filter.among(scene.pods())}
        found = []
        for name in busy:
            pods = tuple(_movable(simulated, name))
            if all(pod.uid in may_move and self._asks(simulated, pod) for pod in pods):
                text = f"{name} is underutilised: {_all(uses, name)}"
                found.append(EvictionCandidate(pods, text))
        stay = "each with a pod that nodeSelector, evictableNamespaces or evictionModes keep"
        return EvictionProposal(found, f"{pluralize(len(busy), 'underutilised node')}, {stay}")

    def _why_none(
        self, simulated: SimulatedCluster, uses: Uses, under: Sequence[str], busy: Sequence[str]
    ) -> str:
        """Why no node is to be emptied, whatever pods there are; empty where some may be."""
        low, least = self._args.thresholds, self._args.number_of_nodes
        if under and not busy:
            return (
                f"{pluralize(len(under), 'underutilised node')} of {len(simulated.nodes)}, and no pod on them"
            )
        if len(under) == len(simulated.nodes):
            return f"all {len(under)} nodes are underutilised, none is left to take their pods"
        return _too_few(simulated, busy, least, uses, low)

    async def judge_of(self, scene: Scene, pod: Pod) -> Judge:
        """Better on a node in use that is not underutilised itself."""
        uses, own = _uses(scene.simulated, self._args.thresholds), pod.node_name

        def judge(node: str) -> Judgement:
            if _below(uses, node, self._args.thresholds):
                return Judgement(False, f"{node} is underutilised as well; score by MostAllocated")
            return Judgement(True, f"{own} is emptied")

        return judge

    def _under(self, simulated: SimulatedCluster) -> tuple[Uses, list[str]]:
        uses = _uses(simulated, self._args.thresholds)
        return uses, [name for name in simulated.nodes if _below(uses, name, self._args.thresholds)]

    def _asks(self, simulated: SimulatedCluster, pod: Pod) -> bool:
        """Whether the pod asks for one of the resources, where that matters."""
        if not self._args.eviction_modes:
            return True
        requests = PodInfo(pod).requests
        return any(_share(simulated, requests, name, pod.node_name) > 0 for name in self._args.thresholds)


def _too_few(
    simulated: SimulatedCluster, under: Sequence[str], least: int, uses: Uses, low: Mapping[str, float]
) -> str:
    """Why these underutilised nodes are too few; empty where they are enough."""
    if not under:
        nodes = [name for name in simulated.nodes if _schedulable(simulated, name)]
        if not nodes:
            return "every node is cordoned"
        emptiest = min(nodes, key=lambda name: _sum(uses, name))
        text = f"the emptiest, {emptiest}, has {_all(uses, emptiest)}"
        return f"no node is underutilised: {text}, {_named('threshold', low)}"
    if len(under) <= least:
        return f"{pluralize(len(under), 'underutilised node')}, no more than numberOfNodes {least}"
    return ""


def _movable(simulated: SimulatedCluster, node: str) -> list[Pod]:
    """The pods that have to leave for the node to be empty: daemons and static pods do not count."""
    return [pod for pod in simulated.on(node) if not belongs_to_node(pod)]


def _schedulable(simulated: SimulatedCluster, node: str) -> bool:
    return not simulated.nodes[node].spec.unschedulable


def _uses(simulated: SimulatedCluster, resources: Mapping[str, float]) -> Uses:
    return {name: simulated.use(name) for name in resources}


def _below(uses: Uses, node: str, bounds: Mapping[str, float]) -> bool:
    return all(uses[name].get(node, 0.0) <= most for name, most in bounds.items())


def _above(uses: Uses, node: str, bounds: Mapping[str, float]) -> bool:
    return any(uses[name].get(node, 0.0) > most for name, most in bounds.items())


def _with(simulated: SimulatedCluster, uses: Uses, requests: Requests, node: str) -> Uses:
    """What that node alone has in use with a pod of these requests on it as well."""
    return {
        name: {node: use[node] + _share(simulated, requests, name, node)} if node in use else {}
        for name, use in uses.items()
    }


def _share(simulated: SimulatedCluster, requests: Requests, resource: str, node: str) -> float:
    """The percentage of the node that a pod of these requests asks for."""
    row = simulated.snapshot.row_of[node]
    if resource == "pods":
        offered, asked = int(simulated.snapshot.allowed_pods[row]), 1
    else:
        found = simulated.snapshot.offered(resource)
        offered = 0 if found is None else int(found[row])
        asked = requests.get(resource, 0)
    return 100 * asked / offered if offered else 0.0


def _shown(uses: Uses, node: str, high: Mapping[str, float]) -> str:
    return ", ".join(
        f"{name} {uses[name][node]:.1f} % (target {high[name]:.1f} %)"
        for name in high
        if uses[name].get(node, 0.0) > high[name]
    )


def _sum(uses: Uses, node: str) -> float:
    return sum(use.get(node, 0.0) for use in uses.values())


def _named(what: str, bounds: Mapping[str, float]) -> str:
    return f"{what} " + ", ".join(f"{name} {most:.1f} %" for name, most in bounds.items())


def _all(uses: Uses, node: str) -> str:
    return ", ".join(f"{name} {use.get(node, 0.0):.1f} %" for name, use in uses.items())
