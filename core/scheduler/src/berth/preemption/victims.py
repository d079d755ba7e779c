"""Which pods of a node could go for a pod, in which order they are spared, and which a budget protects.

Source: pkg/scheduler/framework/preemption/preemption.go filterVictimsWithPDBViolation; util/utils.go
MoreImportantPod (Kubernetes v1.36).
"""

from collections.abc import Iterable, Sequence

import msgspec
import numpy as np

from berth.framework.mirrors.listers import Store
from berth.objects.label_selector import InvalidSelectorError, Selector, compile_selector
from berth.objects.pods.pod import Pod
from berth.objects.workloads import PodDisruptionBudget
from berth.snapshot.columns.growing import Ints, Rows
from berth.snapshot.pod_info import PodClass, PodInfo


class Seniority(msgspec.Struct, frozen=True):
    """Which victims of equal priority are more important: those that started earlier.

    A victim that has not started counts as started at `unstarted`. Units: seconds since the epoch.
    With `trees_first`, a tree of groups that goes as a whole is more important than pod groups. With
    `ties_by_uid`, smaller UIDs are more important among those that started together; else they keep
    their order.
    """

    unstarted: float
    ties_by_uid: bool = False
    trees_first: bool = False

    def start(self, pod: Pod) -> float:
        """When the pod started. Units: seconds since the epoch."""
        start = pod.start_time
        return self.unstarted if start is None else start.timestamp()

    def rank(self, pod: Pod) -> tuple[float, str]:
        """What sorts the more important pod first."""
        return self.start(pod), pod.uid if self.ties_by_uid else ""


def by_importance(victims: Iterable[PodInfo], seniority: Seniority) -> list[PodInfo]:
    """The pods, higher priority first, then by seniority."""
    return sorted(victims, key=lambda info: (-info.pod.priority, seniority.rank(info.pod)))


def lower_priority(pods: Iterable[PodInfo], priority: int) -> list[PodInfo]:
    """The pods that a pod of that priority may evict; an equal never is one."""
    return [info for info in pods if info.pod.priority < priority]


class CompiledBudgets:
    """The disruption budgets, each compiled once and asked once about pods that are labelled alike.

    A pod may be meant by every budget there is: what is left of them is counted in vectors, by their numbers.

    Cost: O(budgets) steps in Python for pods of labels not seen before, one numpy step a victim after that.
    """

    def __init__(self, budgets: Store[PodDisruptionBudget], *, empty_matches_all: bool = False) -> None:
        self._budgets = budgets
        self._empty_matches_all = empty_matches_all
        self._generation = -1
        self._protecting: dict[str, list[tuple[Selector, int]]] = {}
        self._meaning: dict[PodClass, Rows] = {}
        self._disrupted: dict[tuple[str, str], list[int]] = {}
        self._allowed: Ints = np.zeros(0, dtype=np.int64)

    def split(self, victims: Sequence[PodInfo]) -> tuple[list[PodInfo], list[PodInfo]]:
        """Those whose eviction would violate a budget, and the others, both in the order given.

        Every budget that means a pod is used up by it, also once one of them is violated.
        """
        self._follow()
        if not self._protecting:
            return [], list(victims)
        left = self._allowed.copy()
        violating: list[PodInfo] = []
        others: list[PodInfo] = []
        for victim in victims:
            meant = self._meant(victim)
            left[meant] -= 1
            (violating if (left[meant] < 0).any() else others).append(victim)
        return violating, others

    def violated_by(self, units: Iterable[Sequence[PodInfo]], *, whole_units: bool = False) -> list[int]:
        """How many pods of each unit would violate a budget if they were evicted, in the order given.

        A pod is looked at no further than its first such budget, and, unless `whole_units`, a unit than its
        first such pod: what comes behind is not used up by it.
        """
        self._follow()
        left = self._allowed.copy()
        if whole_units:
            return [sum([self._use_up_to_a_violation(pod, left) for pod in pods]) for pods in units]
        return [int(any(self._use_up_to_a_violation(pod, left) for pod in pods)) for pods in units]

    def _use_up_to_a_violation(self, victim: PodInfo, left: Ints) -> bool:
        meant = self._meant(victim)
        violated = np.flatnonzero(left[meant] < 1)
        left[meant[: violated[0] + 1] if violated.size else meant] -= 1
        return bool(violated.size)

    def _meant(self, victim: PodInfo) -> Rows:
        """The numbers of the budgets that the victim's eviction uses up, ascending. Shapes: result (k,)."""
        known = self._meaning.get(victim.pod_class)
        if known is None:
            labels = victim.pod.labels
            protected = bool(labels) or self._empty_matches_all
            pairs = self._protecting.get(victim.pod.namespace, ()) if protected else ()
            known = np.array([i for selector, i in pairs if selector.matches(labels)], dtype=np.intp)
            self._meaning[victim.pod_class] = known
        disrupted = self._disrupted.get((victim.pod.namespace, victim.pod.name))
        return known if disrupted is None else known[~np.isin(known, disrupted)]

    def _follow(self) -> None:
        """Start afresh where a budget changed."""
        if self._generation == self._budgets.generation:
            return
        self._generation = self._budgets.generation
        self._protecting, self._meaning, self._disrupted = {}, {}, {}
        allowed: list[int] = []
        for budget in self._budgets:
            selector = _selector(budget, empty_matches_all=self._empty_matches_all)
            if selector is not None:
                self._protecting.setdefault(budget.namespace, []).append((selector, len(allowed)))
                for name in budget.status.disrupted_pods:
                    self._disrupted.setdefault((budget.namespace, name), []).append(len(allowed))
                allowed.append(budget.status.disruptions_allowed)
        self._allowed = np.array(allowed, dtype=np.int64)


def _selector(budget: PodDisruptionBudget, *, empty_matches_all: bool) -> Selector | None:
    """What the budget protects; None where that is nothing: no selector, a broken or an idle empty one."""
    try:
        selector = compile_selector(budget.spec.selector)
    except InvalidSelectorError:
        return None
    idle = selector.nothing or (selector.empty and not empty_matches_all)
    return None if idle else selector
