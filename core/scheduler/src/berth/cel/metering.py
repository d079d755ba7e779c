"""One evaluation of an expression: its variables, and what it has cost so far.

Two counts bound it. `cost` is what cel-go counts, and the limit is upstream's, so what upstream evaluates is
evaluated here. But cel-go counts some steps as nothing (constants, `&&`, a filter that takes no element) or
as one however long they take (lists put together, elements compared in depth). `work` counts those in
elements, characters and nodes, and has room for ten of them for each unit of cost.

Within these limits an evaluation may still take a second. It looks up from its work a hundred times on the
way: what is called then ends the evaluation by raising an exception of its own.

Source: cel-go v0.26 interpreter/runtimecost.go.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from berth.cel.errors import CostLimitError

COST_LIMIT: Final = 1_000_000
"""Upstream's limit for a device selector (CELSelectorExpressionMaxCost), and for a rule of a CRD."""
WORK_FOR_COST: Final = 10
LOOKS: Final = 100
"""How many times an evaluation looks up before it reaches a limit."""

Look = Callable[[], None]
"""Called in the midst of an evaluation, which ends with what this raises."""


def look_at_nothing() -> None:
    """Let the evaluation go on to its limits."""


class Evaluation:
    """The state of one evaluation. `slots` holds what macros bind, at places given out when compiling."""

    __slots__ = (
        "_cost_limit",
        "_cost_to_look",
        "_look",
        "_work_limit",
        "_work_to_look",
        "cost",
        "patterns",
        "slots",
        "variables",
        "work",
    )

    def __init__(
        self, variables: Mapping[str, Any], slots: int, cost_limit: int, look: Look = look_at_nothing
    ) -> None:
        self.variables = variables
        self.slots: list[Any] = [None] * slots
        self.cost = 0
        self.work = 0
        self._cost_limit = cost_limit
        self._work_limit = WORK_FOR_COST * cost_limit
        self._cost_to_look = cost_limit // LOOKS
        self._work_to_look = self._work_limit // LOOKS
        self._look = look
        self.patterns: frozenset[str] = frozenset()
        """The regular expressions used so far; each is paid for once."""

    def spend(self, cost: int, work: int = 0) -> None:
        """Count a step before it is taken.

        Raises: CostLimitError, and what looking up raises.
        """
        self.cost += cost
        self.work += work
        if self.cost > self._cost_to_look or self.work > self._work_to_look:
            self._look_up()

    def toil(self, work: int) -> None:
        """Count work that upstream does not count.

        Raises: CostLimitError, and what looking up raises.
        """
        self.work += work
        if self.work > self._work_to_look:
            self._look_up()

    def _look_up(self) -> None:
        if self.cost > self._cost_limit or self.work > self._work_limit:
            raise CostLimitError
        self._cost_to_look = min(self.cost + self._cost_limit // LOOKS, self._cost_limit)
        self._work_to_look = min(self.work + self._work_limit // LOOKS, self._work_limit)
        self._look()
