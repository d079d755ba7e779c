"""How many evictions PodDisruptionBudgets still allow."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

from berth.objects.label_selector import InvalidSelectorError, Selector, compile_selector
from berth.objects.pods.pod import Pod
from berth.objects.pods.pod_template import PodTemplate
from berth.objects.workloads import PodDisruptionBudget

UNGUARDED: Final = frozenset({"Pending", "Succeeded", "Failed"})
"""Phases in which a pod counts against no budget, as does one that is being deleted.

Source: pkg/registry/core/pod/storage/eviction.go canIgnorePDB (Kubernetes v1.36).
"""


class Budgets:
    """What PodDisruptionBudgets still allow, counted down as pods are evicted.

    Unlike in preemption, a budget with an empty selector covers all pods of its namespace, as for the
    Eviction API; one whose selector does not parse covers none.

    Cost: each budget of the namespace once for pods that are alike.
    """

    def __init__(self, budgets: Iterable[PodDisruptionBudget]) -> None:
        self.left: dict[str, int] = {}
        """How many more disruptions each budget allows, by its key."""
        self._selectors: dict[str, list[tuple[Selector, str]]] = defaultdict(list)
        self._covering: dict[PodTemplate, Sequence[str]] = {}
        for each in budgets:
            self.left[each.key] = max(0, each.status.disruptions_allowed)
            try:
                selector = compile_selector(each.spec.selector)
            except InvalidSelectorError:
                continue
            self._selectors[each.namespace].append((selector, each.key))

    def covering(self, pod: Pod) -> Sequence[str]:
        """The keys of the budgets that cover the pod."""
        known = self._covering.get(pod.template)
        if known is None:
            pairs = self._selectors.get(pod.namespace, ())
            known = [key for selector, key in pairs if selector.matches(pod.labels)]
            self._covering[pod.template] = known
        return known

    def of(self, pod: Pod) -> Sequence[str]:
        """The keys of the budgets that an eviction of the pod counts against."""
        return () if pod.terminating or pod.status.phase in UNGUARDED else self.covering(pod)

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
