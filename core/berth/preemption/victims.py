"""Which pods of a node could go for a pod, in which order they are spared, and which a budget protects.

Source: spec/core.md 6.4; spec/plugins.md 4.10, 5.18.
"""

from collections.abc import Iterable, Iterator, Sequence

from berth.framework.listers import Store
from berth.objects.label_selector import InvalidSelectorError, Selector, compile_selector
from berth.objects.pod import Pod
from berth.objects.workloads import PodDisruptionBudget
from berth.snapshot.pod_info import PodClass, PodInfo


def start_seconds(pod: Pod, now: float) -> float:
    """When the pod started; one that has not says `now`. Units: seconds since the epoch."""
    start = pod.status.start_time
    return now if start is None else start.timestamp()


def by_importance(victims: Iterable[PodInfo], now: float) -> list[PodInfo]:
    """The pods, higher priority first, then those that started earlier."""
    return sorted(victims, key=lambda info: (-info.pod.priority, start_seconds(info.pod, now)))


def lower_priority(pods: Iterable[PodInfo], priority: int) -> list[PodInfo]:
    """The pods that a pod of that priority may evict; an equal never is one."""
    return [info for info in pods if info.pod.priority < priority]


class Budgets:
    """The disruption budgets, each compiled once and asked once about pods that are labelled alike."""

    def __init__(self, budgets: Store[PodDisruptionBudget]) -> None:
        self._budgets = budgets
        self._generation = -1
        self._protecting: dict[str, list[tuple[Selector, PodDisruptionBudget]]] = {}
        self._meaning: dict[PodClass, tuple[PodDisruptionBudget, ...]] = {}

    def split(self, victims: Sequence[PodInfo]) -> tuple[list[PodInfo], list[PodInfo]]:
        """Those whose eviction would violate a budget, and the others, both in the order given.

        Every budget that means a pod is used up by it, also once one of them is violated.
        """
        self._follow()
        if not self._protecting:
            return [], list(victims)
        allowed: dict[str, int] = {}
        violating: list[PodInfo] = []
        others: list[PodInfo] = []
        for victim in victims:
            (violating if self._violates(victim, allowed) else others).append(victim)
        return violating, others

    def violated_by(self, units: Iterable[Sequence[PodInfo]]) -> list[bool]:
        """Whether each unit's eviction would violate a budget, in the order given.

        A unit is looked at no further than its first pod that does, and a pod than its first such budget:
        what comes behind is not used up by it.
        """
        self._follow()
        allowed: dict[str, int] = {}
        return [any(left < 0 for pod in pods for left in self._used(pod, allowed)) for pods in units]

    def _violates(self, victim: PodInfo, allowed: dict[str, int]) -> bool:
        return min(self._used(victim, allowed), default=0) < 0

    def _used(self, victim: PodInfo, allowed: dict[str, int]) -> Iterator[int]:
        """Use up each budget that means the pod; what is left of it then."""
        for budget in self._meant(victim):
            if victim.pod.name not in budget.status.disrupted_pods:
                allowed[budget.key] = allowed.get(budget.key, budget.status.disruptions_allowed) - 1
                yield allowed[budget.key]

    def _meant(self, victim: PodInfo) -> tuple[PodDisruptionBudget, ...]:
        known = self._meaning.get(victim.pod_class)
        if known is None:
            labels = victim.pod.labels
            pairs = self._protecting.get(victim.pod.namespace, ()) if labels else ()
            known = tuple(budget for selector, budget in pairs if selector.matches(labels))
            self._meaning[victim.pod_class] = known
        return known

    def _follow(self) -> None:
        """Start afresh where a budget changed."""
        if self._generation == self._budgets.generation:
            return
        self._generation = self._budgets.generation
        self._protecting, self._meaning = {}, {}
        for budget in self._budgets:
            selector = _selector(budget)
            if selector is not None:
                self._protecting.setdefault(budget.namespace, []).append((selector, budget))


def _selector(budget: PodDisruptionBudget) -> Selector | None:
    """What the budget protects; None for one that protects nothing: no selector, an empty or a broken one."""
    try:
        selector = compile_selector(budget.spec.selector)
    except InvalidSelectorError:
        return None
    return None if selector.empty or selector.nothing else selector
