"""One evaluation of an expression: its variables, and what it has cost so far.

Two counts bound it. `cost` is what cel-go counts, and the limit is upstream's, so what upstream evaluates is
evaluated here. But cel-go counts some steps as nothing (constants, `&&`, a filter that takes no element) or
as one however long they take (lists put together, elements compared in depth). `work` counts those in
elements, characters and nodes, and has room for ten of them for each unit of cost.

Source: cel-go v0.26 interpreter/runtimecost.go.
"""

from collections.abc import Mapping
from typing import Any, Final

from berth.cel.errors import CostLimitError

COST_LIMIT: Final = 1_000_000
"""Upstream's limit for a device selector (CELSelectorExpressionMaxCost), and for a rule of a CRD."""
WORK_FOR_COST: Final = 10


class Run:
    """The state of one evaluation. `slots` holds what macros bind, at places given out when compiling."""

    __slots__ = ("cost", "cost_limit", "patterns", "slots", "variables", "work", "work_limit")

    def __init__(self, variables: Mapping[str, Any], slots: int, cost_limit: int) -> None:
        self.variables = variables
        self.slots: list[Any] = [None] * slots
        self.cost = 0
        self.cost_limit = cost_limit
        self.work = 0
        self.work_limit = WORK_FOR_COST * cost_limit
        self.patterns: frozenset[str] = frozenset()
        """The regular expressions used so far; each is paid for once."""

    def spend(self, cost: int, work: int = 0) -> None:
        """Count a step before it is taken.

        Raises: CostLimitError.
        """
        self.cost += cost
        self.work += work
        if self.cost > self.cost_limit or self.work > self.work_limit:
            raise CostLimitError

    def toil(self, work: int) -> None:
        """Count work that upstream does not count.

        Raises: CostLimitError.
        """
        self.work += work
        if self.work > self.work_limit:
            raise CostLimitError
