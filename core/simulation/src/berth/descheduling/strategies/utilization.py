"""LowNodeUtilization and HighNodeUtilization: by what pods request, as schedulers count it, or by metrics.

By metrics a node is relieved once it is clearly above its target, by RELIEF_MARGIN points, and then down to
the target: one that was relieved, or that got pods up to the target, has to rise by the margin before it is
relieved again. What varies by less moves nothing to and fro.

Source: pkg/framework/plugins/nodeutilization (descheduler v0.36).
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

from berth.config.descheduling.policy import HighNodeUtilizationArgs, LowNodeUtilizationArgs
from berth.descheduling.load.load import LoadFailure
from berth.descheduling.simulated_cluster import SimulatedCluster
from berth.descheduling.strategies.strategy import (
    EvictionCandidate,
    EvictionProposal,
    Filter,
    Judge,
    Judgement,
    Scene,
)
from berth.descheduling.strategies.usage import MeasuredUsage, NodeUsage, RequestedUsage, Uses
from berth.framework.pluralize import pluralize
from berth.objects.pods.node_pods import belongs_to_node
from berth.objects.pods.pod import Pod

LOW: Final = "LowNodeUtilization"
RELIEF_MARGIN: Final = 5.0
"""Percentage points above its target from which on a node is relieved by metrics.

Where less than twice as much is left above the target, half of that.
"""

Bounds = Mapping[str, float]
"""Percentages by resource."""


class LowUtilization:
    """From nodes above a target to nodes that stay below every target."""

    def __init__(self, args: LowNodeUtilizationArgs) -> None:
        self._args = args
        self._filter = Filter(args.evictable_namespaces)
        self._measured: MeasuredUsage | None = None

    async def candidates(self, scene: Scene) -> EvictionProposal:
        """Pods of overutilised nodes, the fullest first, while enough nodes are underutilised."""
        usage = self._usage(scene)
        if isinstance(usage, LoadFailure):
            return EvictionProposal((), f"{usage.text}; no pod is evicted for it", failed=True)
        simulated, uses = scene.simulated, usage.uses()
        low, high = self._bounds(uses)
        under = [name for name in _schedulable(simulated, usage.nodes) if _below(uses, name, low)]
        over = [name for name in usage.nodes if _above(uses, name, self._relieved_from(high))]
        why_none = self._why_none(simulated, usage, under, over)
        if why_none:
            return EvictionProposal((), why_none)
        over.sort(key=lambda name: -_sum(uses, name))
        pods: dict[str, list[Pod]] = defaultdict(list)
        for pod in self._filter.among(scene.pods()):
            pods[pod.node_name].append(pod)
        found = [
            EvictionCandidate((pod,), f"{name} is overutilised{usage.by}: {_shown(uses, name, high)}")
            for name in over
            for pod in pods[name]
            if self._takes(usage, pod, uses, high)
        ]
        without = "without a pod that may move and asks for what its node has too much of"
        return EvictionProposal(found, f"{pluralize(len(over), 'overutilised node')}, {without}")

    def _usage(self, scene: Scene) -> NodeUsage | LoadFailure:
        chosen, resources = self._args.metrics_utilization, self._args.thresholds
        if chosen is None:
            return RequestedUsage(scene.simulated, resources)
        load = scene.loads[chosen]
        if isinstance(load, LoadFailure):
            return load
        if self._measured is None:
            self._measured = MeasuredUsage(scene, load, resources)
        return self._measured

    def _why_none(
        self, simulated: SimulatedCluster, usage: NodeUsage, under: Sequence[str], over: Sequence[str]
    ) -> str:
        """Why no pod is to move, whatever pods there are; empty where some may be."""
        uses = usage.uses()
        low, high = self._bounds(uses)
        why = _too_few(_schedulable(simulated, usage.nodes), under, self._args.number_of_nodes, uses, low)
        if len(under) == len(usage.nodes):
            why = f"all {len(under)} nodes are underutilised"
        if why or over:
            return why
        fullest = max(usage.nodes, key=lambda name: _sum(uses, name))
        text = f"the fullest, {fullest}, has {_all(uses, fullest)}"
        margin = f", {_named('relieved from', self._relieved_from(high))} on" if usage.by else ""
        return f"no node is overutilised{usage.by}: {text}, {_named('target', high)}{margin}"

    async def judge_of(self, scene: Scene, pod: Pod) -> Judge:
        """Better where no target is exceeded with the pod, while its own node was above one."""
        usage, own = self._usage(scene), pod.node_name
        assert not isinstance(usage, LoadFailure), "no candidates are proposed then"
        if usage.by_pod and not usage.shows(pod):
            return lambda _: Judgement(False, f"there are no metrics of it{usage.by}")
        most = self._args.eviction_limits.node
        if most is not None and scene.taken[LOW, own] >= most:
            return lambda _: Judgement(False, f"evictionLimits.node {most} is reached")
        uses = usage.uses(without=pod)
        before = usage.plus(uses, pod, own)
        _, high = self._bounds({name: {**uses[name], **before[name]} for name in uses})
        if not _above(before, own, high):
            return lambda _: Judgement(False, f"{own} is not overutilised any more")
        if not usage.by_pod:
            return self._judge_by_nodes(scene, usage, own)
        text = f"{own} from {_all(before, own)} to {_all(uses, own)}"

        def judge(node: str) -> Judgement:
            if node not in usage.nodes:
                return Judgement(False, f"there are no metrics of {node}")
            after = usage.plus(uses, pod, node)
            if not _above(after, node, high):
                return Judgement(True, text)
            return Judgement(False, f"{node} would be overutilised: {_all(after, node)}")

        return judge

    def _judge_by_nodes(self, scene: Scene, usage: NodeUsage, own: str) -> Judge:
        """Without a word on pods few leave one node and few go to one, and only to one that is underutilised.

        Source: pkg/framework/plugins/nodeutilization/nodeutilization.go evictPods (descheduler v0.36).
        """
        most = self._args.eviction_limits.node or 1
        uses = usage.uses()
        low, _ = self._bounds(uses)
        unknown = "what its pods use is not known; evictionLimits.node allows more"
        if scene.taken[LOW, own] >= most:
            return lambda _: Judgement(False, f"{pluralize(most, 'pod')} left {own}, and {unknown}")

        def judge(node: str) -> Judgement:
            if node not in usage.nodes:
                return Judgement(False, f"there are no metrics of {node}")
            if scene.given[LOW, node] >= most:
                return Judgement(False, f"{node} got {pluralize(most, 'pod')}, and {unknown}")
            if not _below(uses, node, low):
                return Judgement(False, f"{node} is not underutilised: {_all(uses, node)}")
            return Judgement(True, f"{own} has {_all(uses, own)}, {node} {_all(uses, node)}")

        return judge

    def _bounds(self, uses: Uses) -> tuple[Bounds, Bounds]:
        low, high = self._args.thresholds, self._args.target_thresholds
        if not self._args.use_deviation_thresholds:
            return low, high
        mean = {name: sum(use.values()) / len(use) if use else 0.0 for name, use in uses.items()}
        return (
            {name: max(0.0, mean[name] - low[name]) for name in low},
            {name: min(100.0, mean[name] + high[name]) for name in high},
        )

    def _relieved_from(self, high: Bounds) -> Bounds:
        if self._args.metrics_utilization is None:
            return high
        return {name: most + min(RELIEF_MARGIN, (100 - most) / 2) for name, most in high.items()}

    def _takes(self, usage: NodeUsage, pod: Pod, uses: Uses, high: Bounds) -> bool:
        """Whether the pod takes with it what its node has too much of, or it is not known what it takes."""
        return not usage.shows(pod) or any(
            uses[name].get(pod.node_name, 0.0) > high[name] and usage.share(pod, name, pod.node_name) > 0
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
        return _too_few(_schedulable(simulated, tuple(simulated.nodes)), busy, least, uses, low)

    async def judge_of(self, scene: Scene, pod: Pod) -> Judge:
        """Better on a node in use that is not underutilised itself."""
        uses, own = RequestedUsage(scene.simulated, self._args.thresholds).uses(), pod.node_name

        def judge(node: str) -> Judgement:
            if _below(uses, node, self._args.thresholds):
                return Judgement(False, f"{node} is underutilised as well; score by MostAllocated")
            return Judgement(True, f"{own} is emptied")

        return judge

    def _under(self, simulated: SimulatedCluster) -> tuple[Uses, list[str]]:
        uses = RequestedUsage(simulated, self._args.thresholds).uses()
        return uses, [name for name in simulated.nodes if _below(uses, name, self._args.thresholds)]

    def _asks(self, simulated: SimulatedCluster, pod: Pod) -> bool:
        """Whether the pod asks for one of the resources, where that matters."""
        if not self._args.eviction_modes:
            return True
        usage = RequestedUsage(simulated, self._args.thresholds)
        return any(usage.share(pod, name, pod.node_name) > 0 for name in self._args.thresholds)


def _too_few(schedulable: Sequence[str], under: Sequence[str], least: int, uses: Uses, low: Bounds) -> str:
    """Why these underutilised nodes are too few; empty where they are enough."""
    if not under:
        if not schedulable:
            return "every node is cordoned"
        emptiest = min(schedulable, key=lambda name: _sum(uses, name))
        text = f"the emptiest, {emptiest}, has {_all(uses, emptiest)}"
        return f"no node is underutilised: {text}, {_named('threshold', low)}"
    if len(under) <= least:
        return f"{pluralize(len(under), 'underutilised node')}, no more than numberOfNodes {least}"
    return ""


def _movable(simulated: SimulatedCluster, node: str) -> list[Pod]:
    """The pods that have to leave for the node to be empty: daemons and static pods do not count."""
    return [pod for pod in simulated.on(node) if not belongs_to_node(pod)]


def _schedulable(simulated: SimulatedCluster, nodes: Sequence[str]) -> list[str]:
    return [name for name in nodes if not simulated.nodes[name].spec.unschedulable]


def _below(uses: Uses, node: str, bounds: Bounds) -> bool:
    return all(uses[name].get(node, 0.0) <= most for name, most in bounds.items())


def _above(uses: Uses, node: str, bounds: Bounds) -> bool:
    return any(uses[name].get(node, 0.0) > most for name, most in bounds.items())


def _shown(uses: Uses, node: str, high: Bounds) -> str:
    return ", ".join(
        f"{name} {uses[name][node]:.1f} % (target {high[name]:.1f} %)"
        for name in high
        if uses[name].get(node, 0.0) > high[name]
    )


def _sum(uses: Uses, node: str) -> float:
    return sum(use.get(node, 0.0) for use in uses.values())


def _named(what: str, bounds: Bounds) -> str:
    return f"{what} " + ", ".join(f"{name} {most:.1f} %" for name, most in bounds.items())


def _all(uses: Uses, node: str) -> str:
    return ", ".join(f"{name} {use.get(node, 0.0):.1f} %" for name, use in uses.items())
