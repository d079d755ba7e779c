"""What is in use on nodes, in percent of what they offer: by requests, as schedulers count, or by metrics.

LowNodeUtilization and HighNodeUtilization look at nothing else; what a pod takes with it is here, too.

Source: pkg/framework/plugins/nodeutilization/usageclients.go (descheduler v0.36).
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Protocol

from berth.config.descheduling.metrics_rules import METRIC_RESOURCE
from berth.descheduling.load.load import Load
from berth.descheduling.simulated_cluster import SimulatedCluster
from berth.descheduling.strategies.strategy import Scene
from berth.objects.pods.pod import Pod
from berth.snapshot.pod_info import PodInfo

PODS: Final = "pods"

Uses = Mapping[str, Mapping[str, float]]
"""The percentage in use, by resource and node."""


class NodeUsage(Protocol):
    """A way to count what is in use."""

    by: str
    """Whose numbers these are, after "overutilised"; empty for requests."""
    by_pod: bool
    """Whether it is known what a pod takes with it."""
    nodes: Sequence[str]
    """The nodes that something is known of."""

    def shows(self, pod: Pod) -> bool:
        """Whether it is known what this pod takes with it."""

    def uses(self, without: Pod | None = None) -> Uses:
        """What is in use with all moves made so far; `without` has been taken out on trial."""

    def plus(self, uses: Uses, pod: Pod, node: str) -> Uses:
        """What that node alone has in use with the pod on it as well."""

    def share(self, pod: Pod, resource: str, node: str) -> float:
        """The percentage of the node that the pod takes; 0 where that is not known."""


class RequestedUsage:
    """What pods request."""

    by, by_pod = "", True

    def __init__(self, simulated: SimulatedCluster, resources: Iterable[str]) -> None:
        self._simulated = simulated
        self._resources = tuple(resources)
        self.nodes: Sequence[str] = tuple(simulated.nodes)

    def shows(self, pod: Pod) -> bool:  # noqa: ARG002 - each pod has requests
        """Always."""
        return True

    def uses(self, without: Pod | None = None) -> Uses:  # noqa: ARG002 - the snapshot knows of the trial
        """What pods on nodes request."""
        return {name: self._simulated.use(name) for name in self._resources}

    def plus(self, uses: Uses, pod: Pod, node: str) -> Uses:
        """The same with the pod's requests."""
        return {
            name: {node: use[node] + self.share(pod, name, node)} if node in use else {}
            for name, use in uses.items()
        }

    def share(self, pod: Pod, resource: str, node: str) -> float:
        """What the pod requests."""
        return _percent(self._simulated, PodInfo(pod).requests, resource, node)


class MeasuredUsage:
    """What metrics say, changed by what the pods use that the plan has moved.

    A pod that metrics do not show yet counts by its requests where another would join it, as load-aware does
    it: all evicted pods would go to the node that was idle when metrics were taken.
    """

    def __init__(self, scene: Scene, load: Load, resources: Iterable[str]) -> None:
        self.by = f" by {load.source}"
        self.by_pod = load.pods is not None
        self._scene = scene
        self._load = load
        self._resources = tuple(resources)
        self.nodes: Sequence[str] = tuple(name for name in scene.simulated.nodes if name in load.nodes)
        self._moved: dict[tuple[str, str], float] = defaultdict(float)
        """By resource and node: what moves brought, less what they took. Units: the scheduler's."""
        self._counted = 0
        self._unseen = self._not_yet_shown() if self.by_pod else {}

    def _not_yet_shown(self) -> dict[tuple[str, str], float]:
        unseen: dict[tuple[str, str], float] = defaultdict(float)
        for pod in self._scene.simulated.pods.values():
            if not self.shows(pod):
                for name, amount in PodInfo(pod).requests.items():
                    unseen[name, pod.node_name] += amount
        return unseen

    def shows(self, pod: Pod) -> bool:
        """Whether it is known what the pod uses."""
        return self._load.pods is not None and pod.key in self._load.pods

    def uses(self, without: Pod | None = None) -> Uses:
        """What metrics say of the nodes, with what was moved."""
        self._count_moves()
        found = {name: self._use_of(name) for name in self._resources}
        if without is not None and self.by_pod:
            for name, use in found.items():
                if without.node_name in use and name != PODS:
                    use[without.node_name] -= self.share(without, name, without.node_name)
        return found

    def _use_of(self, resource: str) -> dict[str, float]:
        if resource == PODS:
            counted = self._scene.simulated.use(PODS)
            return {node: counted[node] for node in self.nodes if node in counted}
        found = {}
        for node in self.nodes:
            amount = self._load.nodes[node].get(resource)
            if amount is not None:
                moved = {resource: amount + self._moved[resource, node]}
                found[node] = max(0.0, _percent(self._scene.simulated, moved, resource, node))
        return found

    def plus(self, uses: Uses, pod: Pod, node: str) -> Uses:
        """The same with what the pod uses; on another node also with what is not shown yet."""
        return {
            name: {node: use[node] + self.share(pod, name, node) + self._hidden(pod, name, node)}
            if node in use
            else {}
            for name, use in uses.items()
        }

    def _hidden(self, pod: Pod, resource: str, node: str) -> float:
        if node == pod.node_name or resource == PODS:
            return 0.0
        hidden = {resource: self._unseen.get((resource, node), 0.0)}
        return _percent(self._scene.simulated, hidden, resource, node)

    def share(self, pod: Pod, resource: str, node: str) -> float:
        """What metrics say that the pod uses."""
        return _percent(self._scene.simulated, self._amounts(pod), resource, node)

    def _amounts(self, pod: Pod) -> Mapping[str, float]:
        return {} if self._load.pods is None else self._load.pods.get(pod.key, {})

    def _count_moves(self) -> None:
        for pod, to in self._scene.moved[self._counted :]:
            # A pod that waited has used nothing so far.
            amounts = self._amounts(pod) if pod.node_name else PodInfo(pod).requests
            for name, amount in amounts.items():
                self._moved[name, pod.node_name] -= amount
                self._moved[name, to] += amount
        self._counted = len(self._scene.moved)


def _percent(simulated: SimulatedCluster, amounts: Mapping[str, float], resource: str, node: str) -> float:
    """The percentage of the node that these amounts are."""
    if resource == PODS:
        offered, amount = int(simulated.snapshot.allowed_pods[simulated.snapshot.row_of[node]]), 1.0
    elif resource == METRIC_RESOURCE:
        offered, amount = 100, amounts.get(resource, 0.0)
    else:
        found = simulated.snapshot.offered(resource)
        offered = 0 if found is None else int(found[simulated.snapshot.row_of[node]])
        amount = amounts.get(resource, 0.0)
    return 100 * amount / offered if offered else 0.0
