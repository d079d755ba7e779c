"""Where evicting pods makes room for a pod, and which pods: by quota first, then by what nodes have left.

    who may go:   the pod's quota would stay within its min   pods of quotas that borrow over their min
                  it would not                                less important pods of its own namespace
                  the pod's namespace has no quota            less important pods of such namespaces
    on one node:  the least important go until the pod fits, those that a budget protects last; then
                  who can stays: the protected ones first, then the most important
    which node:   the one with the least violated budgets, then the one whose most important victim is least
                  important, then the least victims in all

Pods that are leaving anyway count as gone, promises to others as kept.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

from berth_capacity_scheduling.amounts import Amounts, add
from berth_capacity_scheduling.balance import Balance
from berth_capacity_scheduling.budgets import Budgets
from berth_capacity_scheduling.ledger import Holding, Ledger
from berth_capacity_scheduling.promises import Promise, Promises, counting
from berth_capacity_scheduling.settings import Settings
from berth_sdk import Node, Pod

_ABOVE_NEGATIVE = 1 << 31
"""Makes every priority a positive number, so that fewer victims weigh less."""


@dataclass(frozen=True, slots=True)
class Room:
    """A node, and the pods that have to leave it; none if room is on its way already."""

    node_name: str
    victims: tuple[Holding, ...]
    violations: int
    """How many of them a disruption budget protects."""

    @property
    def cost(self) -> tuple[int, int, int]:
        """Return what to keep small: violated budgets, the highest priority, then all of them together."""
        priorities = [victim.priority for victim in self.victims]
        highest = max(priorities, default=-_ABOVE_NEGATIVE)
        return self.violations, highest, sum(each + _ABOVE_NEGATIVE for each in priorities)


class Search:
    """One pod's search, on a copy of the balance."""

    def __init__(
        self,
        pod: Pod,
        requests: Amounts,
        ledger: Ledger,
        promises: Promises,
        *,
        budgets: Budgets,
        settings: Settings,
    ) -> None:
        self._pod, self._requests, self._ledger, self._settings = pod, requests, ledger, settings
        self._budgets = budgets
        self.balance = ledger.balance.copy()
        going = promises.victims()
        self._leaving = {uid for uid, each in ledger.by_uid.items() if each.leaving or uid in going}
        for uid in self._leaving:
            leaving = ledger.by_uid[uid]
            self.balance.use(leaving.namespace, leaving.requests, -1)
        others = list(promises.beside(pod.uid))
        self._promised = [each for each in others if each.priority >= pod.spec.priority]
        for promise in counting(others, self.balance, pod.namespace, pod.spec.priority):
            self.balance.use(promise.namespace, promise.requests)

    def best(self, node: Callable[[str], Node | None]) -> Room | None:
        """Return where it costs least, None if nowhere; `node` gives those nodes that may be tried."""
        choices = self._by_node()
        found = None
        for name in sorted(choices):
            place = node(name)
            room = None if place is None else self._on(place, choices[name])
            if room is not None and (found is None or room.cost < found.cost):
                found = room
        return found

    def _by_node(self) -> dict[str, list[Holding]]:
        """Return who may go, least important first, of each node where pods go or are leaving."""
        choices: dict[str, list[Holding]] = {self._ledger.by_uid[uid].node_name: [] for uid in self._leaving}
        for each in self._evictable():
            if each.uid not in self._leaving and each.uid != self._pod.uid:
                choices.setdefault(each.node_name, []).append(each)
        for there in choices.values():
            there.sort(key=lambda each: (each.priority, -each.order))
        return choices

    def _evictable(self) -> Iterator[Holding]:
        """Yield the pods that this pod may evict; of borrowers only as long as they borrow, see `_on`."""
        spared = self._settings.spared_priority
        for namespace in self._namespaces():
            for each in self._ledger.by_namespace.get(namespace, {}).values():
                if each.priority < (spared if self._reclaims else min(spared, self._pod.spec.priority)):
                    yield each

    def _namespaces(self) -> Sequence[str]:
        quotas = self.balance.quotas.by_namespace
        if self._pod.namespace not in quotas:
            return [namespace for namespace in self._ledger.by_namespace if namespace not in quotas]
        if not self._reclaims:
            return [self._pod.namespace]
        return [name for name in quotas if name != self._pod.namespace] if self._settings.reclaim else []

    @property
    def _reclaims(self) -> bool:
        """Whether the pod asks for nothing but what its quota guarantees."""
        quota = self.balance.quota(self._pod.namespace)
        return quota is not None and self.balance.within_min(quota, self._requests)

    def _on(self, node: Node, choices: list[Holding]) -> Room | None:
        trial = _Trial(self.balance, self._free(node), self._requests)
        protected = self._budgets.protected(choices)
        reclaims, gone = self._reclaims, []
        for each in sorted(choices, key=lambda each: each.uid in protected):
            if not reclaims or trial.is_borrowed(each):
                trial.take(each)
                gone.append(each)
        fits = trial.fits(self._pod.namespace)
        victims = self._reprieve(trial, gone, protected) if fits else []
        for each in victims if fits else gone:
            trial.take(each, back=True)
        violations = sum(each.uid in protected for each in victims)
        return Room(node.name, tuple(victims), violations) if fits else None

    def _reprieve(self, trial: "_Trial", gone: list[Holding], protected: Collection[str]) -> list[Holding]:
        """Let stay who can, those that a budget protects first, then the most important; return who can't."""
        victims = []
        for each in sorted(gone, key=lambda each: (each.uid not in protected, -each.priority, each.order)):
            trial.take(each, back=True)
            if not trial.fits(self._pod.namespace):
                trial.take(each)
                victims.append(each)
        return victims

    def _free(self, node: Node) -> dict[str, int]:
        """Return what the node will have left of what the pod asks for."""
        free = {name: node.allocatable(name) for name in self._requests}
        for uid, each in self._ledger.by_node.get(node.name, {}).items():
            if uid not in self._leaving and uid != self._pod.uid:
                add(free, each.requests, -1)
        for promise in self._promised_on(node.name):
            add(free, promise.requests, -1)
        return free

    def _promised_on(self, node_name: str) -> Iterator[Promise]:
        return (promise for promise in self._promised if promise.node_name == node_name)


@dataclass(slots=True)
class _Trial:
    """One node and the balance while pods are simulated as removed and restored."""

    balance: Balance
    free: dict[str, int]
    requests: Amounts

    def take(self, each: Holding, *, back: bool = False) -> None:
        """Think a pod away, or back."""
        sign = -1 if back else 1
        add(self.free, each.requests, sign)
        self.balance.use(each.namespace, each.requests, -sign)

    def is_borrowed(self, each: Holding) -> bool:
        """Return whether the pod uses something that is wanted and its namespace has borrowed."""
        quota = self.balance.quota(each.namespace)
        wanted = {name: amount for name, amount in each.requests.items() if name in self.requests}
        return quota is not None and self.balance.borrows(quota, wanted)

    def fits(self, namespace: str) -> bool:
        """Return whether the pod has room, on the node and in its quota."""
        if any(amount > self.free[name] for name, amount in self.requests.items()):
            return False
        quota = self.balance.quota(namespace)
        return quota is None or self.balance.refusal(quota, self.requests) is None
