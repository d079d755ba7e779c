"""Verdicts as they come in: which rows are left, and what the others were turned down with."""

from typing import TypeAlias

import numpy as np

from berth.evaluation.reasons import Numbers, Reasons, filter_error
from berth.framework.cycle_state import CycleState
from berth.framework.diagnosis import Diagnosis, Rejections
from berth.framework.interface import FilterPlugin, ReasonCodes
from berth.framework.status import PluginError
from berth.snapshot.columns import Mask

Placed: TypeAlias = tuple[int, FilterPlugin]
"""A plugin and its place in its profile, from 1 on."""


class Sieve:
    """The candidates that are left, and the reasons against the others.

    Plugins in any place may have had their say before (`why`); then a plugin in a lower place takes their
    rejections over, as the first one owns them. `lasting` says whether codes mean the same in later cycles.
    `left` is the number of rows that are `alive`.
    Shapes: alive bool (n,), where nothing speaks against the pod; why (n,), the reasons' numbers.
    """

    __slots__ = ("_candidates", "_lasting", "alive", "left", "reasons", "why")

    def __init__(
        self, reasons: Reasons, candidates: Mask, why: Numbers | None = None, *, lasting: bool = True
    ) -> None:
        self.reasons = reasons
        self._lasting = lasting
        self._candidates = candidates if why is not None else None
        self.alive: Mask = candidates.copy() if why is None else candidates & (why == 0)
        self.why: Numbers = np.zeros(candidates.size, dtype=np.uint32) if why is None else why.copy()
        self.left = int(np.count_nonzero(self.alive))

    def leaves_any(self, place: int) -> bool:
        """Whether the answer of the plugin in that place matters for some row."""
        return bool(self.left) or bool(self._owned_later(place).any())

    def _owned_later(self, place: int) -> Mask:
        """The candidates that only plugins in later places have turned down. Shapes: result bool (n,)."""
        if self._candidates is None or self.reasons.last_place <= place:
            return self.alive[:0]
        return self._candidates & (self.reasons.places(self.why) > place)

    def turn_down(self, place: int, plugin: FilterPlugin, state: CycleState, codes: ReasonCodes) -> int:
        """Take the plugin's rejections in; how many there were. Shapes: codes (n,).

        Raises: PluginError where an answer is no code of the plugin's, or a code that rejects nothing.
        """
        try:
            if not np.count_nonzero(codes):  # three times as fast as any()
                return 0
            rejected = codes != 0
            rows = (rejected & self.alive).nonzero()[0]
            self.left -= rows.size
            if (later := self._owned_later(place)).size:
                rows = (rejected & (self.alive | later)).nonzero()[0]
            if rows.size:
                self.alive[rows] = False
                numbers = self.reasons.numbers(place, plugin, state, codes[rows], lasting=self._lasting)
                self.why[rows] = numbers
        except PluginError:
            raise
        except Exception as error:
            raise filter_error(plugin, error) from error
        return int(rows.size)


def record_rejections(diagnosis: Diagnosis, why: Numbers, reasons: Reasons) -> None:
    """Put what rows were turned down with into the diagnosis. Shapes: why (n,)."""
    if why.any():
        diagnosis.record(rejected_by(why, reasons))


def rejected_by(why: Numbers, reasons: Reasons) -> Rejections:
    """The rows that were turned down, as a diagnosis has them. Shapes: why (n,)."""
    rows = why.nonzero()[0]
    return Rejections(rows, why[rows], reasons.statuses.__getitem__)
