"""A node as a plan leaves it: what is free there of what the pods ask for."""

from collections.abc import Sequence
from dataclasses import dataclass

from berth_queues.amounts import Amounts
from berth_queues.ledger import Holding


@dataclass(slots=True)
class PlannedNode:
    """`free` has what nodes themselves count, and devices where none is left unused."""

    name: str
    free: dict[str, int]

    def fits(self, requests: Amounts, staying: Sequence[Holding] = ()) -> bool:
        """Return whether they fit, beside pods that were taken away if these stay.

        What the node has no amount of is devices, which plugins of the scheduler look for.
        """
        if not all(amount <= self.free.get(name, amount) for name, amount in requests.items()):
            return False
        here = [each.requests for each in staying if each.node_name == self.name]
        return not here or all(
            amount + sum(each.get(name, 0) for each in here) <= self.free[name]
            for name, amount in requests.items()
            if name in self.free
        )

    def add(self, requests: Amounts, sign: int = 1) -> None:
        """Count requests as free again, or as taken, of those resources that are counted."""
        for name in self.free.keys() & requests.keys():
            self.free[name] += sign * requests[name]
