"""How many evictions are left: of PodDisruptionBudgets, and of the policy's own limits."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from berth.descheduling.policy import Policy
from berth.objects.label_selector import InvalidSelectorError, compile_selector
from berth.objects.pod import Pod
from berth.objects.workloads import PodDisruptionBudget

UNGUARDED: Final = frozenset({"Pending", "Succeeded", "Failed"})
"""Phases in which a pod counts against no budget.

Source: pkg/registry/core/pod/storage/eviction.go canIgnorePDB (Kubernetes v1.36).
"""


def covers(budget: PodDisruptionBudget, pod: Pod) -> bool:
    """Whether the budget is about the pod; one whose selector does not parse is about none."""
    try:
        matches = compile_selector(budget.spec.selector).matches(pod.labels)
    except InvalidSelectorError:
        return False
    return matches and budget.namespace == pod.namespace


class Budgets:
    """What PodDisruptionBudgets still allow, counted down while a plan grows."""

    def __init__(self, budgets: Iterable[PodDisruptionBudget]) -> None:
        self._budgets = list(budgets)
        self.left = {each.key: max(0, each.status.disruptions_allowed) for each in self._budgets}
        """How many more disruptions each budget allows, by its key."""

    def of(self, pod: Pod) -> list[str]:
        """The keys of the budgets that an eviction of the pod counts against."""
        if pod.status.phase in UNGUARDED:
            return []
        return [each.key for each in self._budgets if covers(each, pod)]

    def why_not(self, pods: Sequence[Pod]) -> str:
        """Why these pods cannot all be evicted; empty where they can."""
        wanted: Counter[str] = Counter()
        for pod in pods:
            keys = self.of(pod)
            if len(keys) > 1:
                return f"PodDisruptionBudgets {', '.join(keys)} cover it; the API server evicts no such pod"
            wanted.update(keys)
        short = [key for key, count in wanted.items() if count > self.left[key]]
        return f"PodDisruptionBudget {short[0]} allows no more disruptions now" if short else ""

    def take(self, pod: Pod) -> None:
        """Count the pod's eviction."""
        for key in self.of(pod):
            self.left[key] -= 1


@dataclass(slots=True)
class Limits:
    """What the policy still allows, counted down while a plan grows."""

    policy: Policy
    _per_node: Counter[str] = field(default_factory=Counter)
    _per_namespace: Counter[str] = field(default_factory=Counter)

    def why_not(self, pods: Sequence[Pod]) -> str:
        """Why these pods cannot all be evicted; empty where they can."""
        policy = self.policy
        for field_name, most, counts in (
            ("maxNoOfPodsToEvictTotal", policy.most, {"": self._per_node.total() + len(pods)}),
            ("maxNoOfPodsToEvictPerNode", policy.most_per_node, self._per_node + _counted(pods, "node_name")),
            (
                "maxNoOfPodsToEvictPerNamespace",
                policy.most_per_namespace,
                self._per_namespace + _counted(pods, "namespace"),
            ),
        ):
            touched = {"", *(pod.node_name for pod in pods), *(pod.namespace for pod in pods)}
            if most is not None and any(counts[key] > most for key in touched & counts.keys()):
                return f"{field_name} {most} is reached"
        return ""

    def take(self, pod: Pod) -> None:
        """Count the pod's eviction."""
        self._per_node[pod.node_name] += 1
        self._per_namespace[pod.namespace] += 1


def _counted(pods: Iterable[Pod], attribute: str) -> Counter[str]:
    return Counter(getattr(pod, attribute) for pod in pods)
