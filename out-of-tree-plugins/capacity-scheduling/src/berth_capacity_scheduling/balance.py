"""What each namespace uses, against its quota and against what all quotas guarantee together.

A resource is governed if some quota's min names it; a quota that does not name it is guaranteed none of it.
"""

from dataclasses import dataclass, field

from berth_capacity_scheduling.amounts import Amounts, add, excess, room
from berth_capacity_scheduling.quota import Quota, Quotas


@dataclass
class Balance:
    """Use by namespace, and of all namespaces with a quota together."""

    quotas: Quotas = field(default_factory=Quotas)
    used: dict[str, dict[str, int]] = field(default_factory=dict)
    total: dict[str, int] = field(default_factory=dict)
    guaranteed: dict[str, int] = field(default_factory=dict)

    def quota(self, namespace: str) -> Quota | None:
        """Return the namespace's quota, None if it has none."""
        return self.quotas.by_namespace.get(namespace)

    def use(self, namespace: str, amounts: Amounts, sign: int = 1) -> None:
        """Count amounts as used, or as free again."""
        add(self.used.setdefault(namespace, {}), amounts, sign)
        if namespace in self.quotas.by_namespace:
            add(self.total, amounts, sign)

    def quotas_changed(self) -> None:
        """Add up anew what depends on which quotas there are."""
        self.total, self.guaranteed = {}, {}
        for namespace, quota in self.quotas.by_namespace.items():
            add(self.total, self.used.get(namespace, {}))
            add(self.guaranteed, quota.min)

    def copy(self) -> "Balance":
        """Return a balance to try things on."""
        used = {namespace: dict(amounts) for namespace, amounts in self.used.items()}
        return Balance(self.quotas, used, dict(self.total), self.guaranteed)

    def clear(self) -> None:
        """Forget all use and all quotas."""
        self.quotas.clear()
        self.used.clear()
        self.quotas_changed()

    def refusal(self, quota: Quota, asked: Amounts) -> str | None:
        """Return why the quota's namespace can't have this on top of what it uses, None if it can."""
        over = self._over_max(quota, asked)
        if over:
            left = room(over, self.used.get(quota.namespace, {}), quota.max)
            return f"{quota} would be over its max of {', '.join(over)}: {left}"
        over = excess(self.total, asked, self.guaranteed)
        if over:
            left = room(over, self.total, self.guaranteed)
            said = "all quotas together would be over the sum of their min of"
            return f"{quota}: {said} {', '.join(over)}: {left}"
        return None

    def is_full(self, quota: Quota, asked: Amounts) -> bool:
        """Return whether the quota's max alone turns that down."""
        return bool(self._over_max(quota, asked))

    def within_min(self, quota: Quota, asked: Amounts) -> bool:
        """Return whether what is asked for is guaranteed: governed, and all of it within the quota's min."""
        governed = {name: amount for name, amount in asked.items() if name in self.guaranteed}
        return bool(governed) and not excess(self.used.get(quota.namespace, {}), governed, self._min(quota))

    def borrows(self, quota: Quota, resources: Amounts) -> bool:
        """Return whether the namespace uses more than its min of one of these resources."""
        used, least = self.used.get(quota.namespace, {}), self._min(quota)
        return any(used.get(name, 0) > least[name] for name in resources if name in least)

    def _over_max(self, quota: Quota, asked: Amounts) -> list[str]:
        return excess(self.used.get(quota.namespace, {}), asked, quota.max)

    def _min(self, quota: Quota) -> Amounts:
        """Return the min of every governed resource."""
        return {name: quota.min.get(name, 0) for name in self.guaranteed}
