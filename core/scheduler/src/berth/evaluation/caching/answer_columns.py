"""Columns of one plugin's answers: reason codes and raw scores by row, for pods that it signs alike.

    dirty --asked about--> known --the row changed, or the plugin was called about the node--> dirty

For plugins whose answers take a round trip (`RemotePlugin`), so that classes of pods that other plugins tell
apart share them. A plugin whose answers hold for single nodes has columns for each signature in the
equivalence cache; any other gets new ones in each cycle. Source: docs/decisions/0027-asking-ahead.md.
"""

from collections.abc import Iterable
from typing import NamedTuple

import msgspec
import numpy as np

from berth.framework.interface import ReasonCodes, Scores
from berth.framework.status import Status
from berth.snapshot.columns.growing import Mask, Rows, rows_where

MAX_REASONS = 4096
"""Max different reasons in the columns of one signature."""


class TooManyReasonsError(ValueError):
    """A plugin gave more than MAX_REASONS different reasons."""

    def __init__(self) -> None:
        super().__init__(f"brings up more than {MAX_REASONS} different reasons in one cycle")


class RowAnswers(NamedTuple):
    """Which of the two one request asks for."""

    verdicts: bool
    scores: bool


VERDICTS, SCORES, BOTH = RowAnswers(True, False), RowAnswers(False, True), RowAnswers(True, True)


class AnsweredRows(msgspec.Struct):
    """A response about k rows, in the order of the request.

    Shapes: codes (k,); raw int64 (k,).
    """

    codes: ReasonCodes | None = None
    reasons: tuple[Status, ...] = ()
    raw: Scores | None = None
    normalization: int | None = None
    """None where the plugin returned no scores."""


class PrefetchedAnswer(msgspec.Struct, eq=False):
    """A request about these rows that was sent before a pod needed it."""

    rows: Rows
    changed: set[int] = msgspec.field(default_factory=set)
    """Rows that changed since: the response is not valid for them."""

    def left_out(self, rows: Rows) -> Rows:
        """The rows for which the response is not valid. Shapes: rows and result intp (k,)."""
        awaited = np.isin(rows, self.rows)
        if self.changed:
            awaited &= ~np.isin(rows, list(self.changed))
        return rows[~awaited]


class AnswerColumns:
    """Reason codes and raw scores of the rows of one snapshot.

    Shapes: codes uint16 (n,); raw int64 (n,); dirty bool (n,), by part.
    """

    __slots__ = (
        "_codes",
        "_dirty",
        "_normalization",
        "_raw",
        "ahead",
        "failed_ahead",
        "lasting",
        "reasons",
        "spoiled",
    )

    def __init__(self, n: int, *, lasting: bool = False) -> None:
        self.lasting = lasting
        """Whether they hold for single nodes, beyond this cycle; else all rows are asked about at once."""
        self.ahead: PrefetchedAnswer | None = None
        self.failed_ahead = False
        """The last question that no pod waited for failed, and no row changed since."""
        self.spoiled = False
        """The plugin's scores can't be used beside its verdicts: the next cycle asks for both anew."""
        self._begin(n)

    def _begin(self, n: int) -> None:
        self._codes: ReasonCodes = np.zeros(n, dtype=np.uint16)
        self._raw: Scores = np.zeros(n, dtype=np.int64)
        self._dirty: dict[RowAnswers, Mask] = {part: np.ones(n, dtype=bool) for part in (VERDICTS, SCORES)}
        self._normalization: int | None = None
        self.reasons: tuple[Status, ...] = ()
        self.spoiled = False

    def __len__(self) -> int:
        """How many rows there are."""
        return len(self._codes)

    @property
    def normalization(self) -> int | None:
        """How the raw scores are to be mapped to 0 to 100; None as long as there are none."""
        return self._normalization

    def forget(self, n: int | None = None) -> None:
        """Drop all answers: all n rows are dirty."""
        self.ahead = None
        self._begin(len(self) if n is None else n)

    def change(self, rows: Rows) -> None:
        """Mark these rows dirty. Shapes: rows intp (k,)."""
        for mask in self._dirty.values():
            mask[rows] = True
        if self.ahead is not None:
            self.ahead.changed.update(rows.tolist())
        self.failed_ahead = False

    def missing(self, part: RowAnswers, rows: Rows | None) -> Rows:
        """The dirty ones of the rows (None: all). Shapes: rows and result intp (k,)."""
        mask = self._dirty[part]
        return rows_where(mask) if rows is None else rows[mask[rows]]

    def misses(self, part: RowAnswers, rows: Rows | None) -> int:
        """How many of the rows (None: all) are dirty. Shapes: rows intp (k,)."""
        mask = self._dirty[part]
        return int(np.count_nonzero(mask if rows is None else mask[rows]))

    def is_dirty(self, part: RowAnswers, row: int) -> bool:
        """Whether that row is dirty."""
        return bool(self._dirty[part].item(row))

    def are_dirty(self, part: RowAnswers, rows: Rows) -> Mask | None:
        """Which of the rows are dirty, None for none. Shapes: rows intp (k,); result bool (k,)."""
        mask = self._dirty[part].take(rows)
        return mask if np.count_nonzero(mask) else None

    def code(self, row: int) -> int:
        """The reason code of a row that is not dirty."""
        return int(self._codes.item(row))

    def raw_score(self, row: int) -> int:
        """The raw score of a row that is not dirty."""
        return int(self._raw.item(row))

    def codes(self, rows: Rows | None) -> ReasonCodes:
        """The codes of these rows (None: all), as a copy. Shapes: rows intp (k,); result uint16 (k,)."""
        return self._codes.copy() if rows is None else self._codes[rows]

    def raw(self, rows: Rows | None) -> Scores:
        """The raw scores of these rows (None: all), as a copy. Shapes: rows intp (k,); result int64 (k,)."""
        return self._raw.copy() if rows is None else self._raw[rows]

    def take(self, found: AnsweredRows, rows: Rows, changed: Iterable[int] = ()) -> None:
        """Store a response about these rows, except rows that `changed` since the request.

        Raises: TooManyReasonsError.
        """
        codes, raw = found.codes, found.raw
        if changed:
            unchanged = ~np.isin(rows, list(changed))
            rows = rows[unchanged]
            codes = None if codes is None else codes[unchanged]
            raw = None if raw is None else raw[unchanged]
        taken = _places(rows, len(self))
        if codes is not None:
            self._codes[taken] = self.numbered(codes, found.reasons)
            self._dirty[VERDICTS][taken] = False
        if raw is not None:
            self._take_scores(raw, found.normalization, taken)
        self.failed_ahead = False

    def _take_scores(self, raw: Scores, normalization: int | None, rows: Rows | slice) -> None:
        if normalization is not None and normalization != self._normalization:
            if self._normalization is not None:
                # Scores that are to be mapped in another way can't be compared with those given before.
                self._dirty[SCORES][:] = True
            self._normalization = normalization
        self._raw[rows] = raw
        self._dirty[SCORES][rows] = False

    def numbered(self, codes: ReasonCodes, reasons: tuple[Status, ...]) -> ReasonCodes:
        """The response's codes, renumbered so that codes of earlier responses keep their meaning.

        Raises: TooManyReasonsError.
        """
        if not self.reasons:
            self.reasons = reasons
        if self.reasons[: len(reasons)] == reasons:
            return codes
        before = set(self.reasons)
        known = [*self.reasons, *dict.fromkeys(each for each in reasons if each not in before)]
        if len(known) > MAX_REASONS:
            raise TooManyReasonsError
        number = {each: i for i, each in enumerate(known, 1)}
        numbers = np.array([0, *(number[each] for each in reasons)], dtype=np.uint16)
        self.reasons = tuple(known)
        return numbers.take(codes)


def _places(rows: Rows, n: int) -> Rows | slice:
    """The rows as an index; all rows, and a single one, as a slice, which takes a tenth of the time."""
    if rows.size == n:
        return slice(None)
    return slice(rows.item(0), rows.item(0) + 1) if rows.size == 1 else rows
