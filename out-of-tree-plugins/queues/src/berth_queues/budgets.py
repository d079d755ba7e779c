"""PodDisruptionBudgets: which of a node's pods may not go without one of them being violated.

A budget's allowance is spent on the first pods that go; its other pods are protected. A budget that selects
everything, or nothing, protects no pod, as for DefaultPreemption.

Source: policy/v1 PodDisruptionBudget; docs of the plugin, README.md "Whom a pod may evict".
"""

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import msgspec

from berth_queues.ledger import Holding
from berth_queues.selectors import Selector
from berth_sdk import ObjectKey, WatchedResource

BUDGETS = WatchedResource("policy", "v1", "poddisruptionbudgets")

log = logging.getLogger(__name__)


class _Spec(msgspec.Struct):
    selector: Selector | None = None


class _Status(msgspec.Struct, rename="camel"):
    disruptions_allowed: int = 0
    disrupted_pods: dict[str, str] | None = None


class _Budget(msgspec.Struct):
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)

    def protects(self, each: Holding) -> bool:
        """Return whether evicting the pod counts against it; who is on the way out has been counted."""
        selector = self.spec.selector
        if selector is None or not each.labels or not selector.matches(each.labels):
            return False
        return each.name not in (self.status.disrupted_pods or ())


_decoder = msgspec.json.Decoder(_Budget)


@dataclass
class Budgets:
    """The budgets there are, by namespace and name."""

    _by_namespace: dict[str, dict[str, _Budget]] = field(default_factory=dict)

    def put(self, key: ObjectKey, source: bytes) -> None:
        """Take over a budget; one that can't be read is as good as none."""
        self.remove(key)
        try:
            budget = _decoder.decode(source)
        except msgspec.MsgspecError as error:
            log.warning("budget ignored budget=%s err=%s", f"{key.namespace}/{key.name}", error)
            return
        self._by_namespace.setdefault(key.namespace, {})[key.name] = budget

    def remove(self, key: ObjectKey) -> None:
        """Forget a budget."""
        self._by_namespace.get(key.namespace, {}).pop(key.name, None)

    def clear(self) -> None:
        """Forget all of them."""
        self._by_namespace.clear()

    def protected(self, leaving: Iterable[Holding]) -> set[str]:
        """Return the UIDs of those who violate a budget if they leave in that order.

        Every budget that means a pod is used up by it, also once one of them is violated.
        """
        left: dict[tuple[str, str], int] = {}
        violating = set()
        for each in leaving:
            if not self._by_namespace.get(each.namespace):
                continue
            for name, budget in self._protecting(each):
                key = each.namespace, name
                left[key] = left.get(key, budget.status.disruptions_allowed) - 1
                if left[key] < 0:
                    violating.add(each.uid)
        return violating

    def _protecting(self, each: Holding) -> Iterator[tuple[str, _Budget]]:
        budgets = self._by_namespace[each.namespace]
        return ((name, budget) for name, budget in budgets.items() if budget.protects(each))
