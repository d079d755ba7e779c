"""Accumulates filter results plugin by plugin: the rows still feasible, and the reasons of the others."""

from typing import TypeAlias

import numpy as np

from berth.evaluation.points.reasons import Numbers, Reasons, filter_error
from berth.framework.attempts.cycle_state import CycleState
from berth.framework.attempts.diagnosis import Diagnosis, Rejections
from berth.framework.interface import FilterPlugin, ReasonCodes
from berth.framework.status import PluginError
from berth.snapshot.columns.growing import Mask

OrderedFilter: TypeAlias = tuple[int, FilterPlugin]
"""A plugin and its place in its profile, from 1 on."""


class FilterAccumulator:
    """The candidates that are still feasible, and the reasons against the others.

    `why` may hold results of plugins that have run already, at any position; a rejection belongs to the
    plugin of the lowest position. `lasting` says whether codes mean the same in later cycles. `left` is the
    number of feasible rows.
    Shapes: feasible bool (n,); why (n,), the reasons' numbers, 0 where the pod fits.
    """

    __slots__ = ("_candidates", "_lasting", "feasible", "left", "reasons", "why")

    def __init__(
        self, reasons: Reasons, candidates: Mask, why: Numbers | None = None, *, lasting: bool = True
    ) -> None:
        self.reasons = reasons
        self._lasting = lasting
        self._candidates = candidates if why is not None else None
        self.feasible: Mask = candidates.copy() if why is None else candidates & (why == 0)
        self.why: Numbers = np.zeros(candidates.size, dtype=np.uint32) if why is None else why.copy()
        self.left = int(np.count_nonzero(self.feasible))

    def leaves_any(self, place: int) -> bool:
        """Whether the result of the plugin at that position can change anything."""
        return bool(self.left) or bool(self._rejected_by_later_plugins(place).any())

    def _rejected_by_later_plugins(self, place: int) -> Mask:
        """The candidates that only plugins at later positions rejected. Shapes: result bool (n,)."""
        if self._candidates is None or self.reasons.last_place <= place:
            return self.feasible[:0]
        return self._candidates & (self.reasons.places(self.why) > place)

    def turn_down(self, place: int, plugin: FilterPlugin, state: CycleState, codes: ReasonCodes) -> int:
        """Record the plugin's rejections and return their number. Shapes: codes (n,).

        Raises: PluginError where a code is not one of the plugin's, or stands for no rejection.
        """
        try:
            if not np.count_nonzero(codes):  # three times as fast as any()
                return 0
            rejected = codes != 0
            rows = (rejected & self.feasible).nonzero()[0]
            self.left -= rows.size
            if (later := self._rejected_by_later_plugins(place)).size:
                rows = (rejected & (self.feasible | later)).nonzero()[0]
            if rows.size:
                self.feasible[rows] = False
                numbers = self.reasons.numbers(place, plugin, state, codes[rows], lasting=self._lasting)
                self.why[rows] = numbers
        except PluginError:
            raise
        except Exception as error:
            raise filter_error(plugin, error) from error
        return int(rows.size)


def record_rejections(diagnosis: Diagnosis, why: Numbers, reasons: Reasons) -> None:
    """Record the rejected rows in the diagnosis. Shapes: why (n,)."""
    if why.any():
        diagnosis.record(rejected_by(why, reasons))


def rejected_by(why: Numbers, reasons: Reasons) -> Rejections:
    """The rejected rows in a diagnosis's form. Shapes: why (n,)."""
    rows = why.nonzero()[0]
    return Rejections(rows, why[rows], reasons.statuses.__getitem__)
