"""A sidecar's filter results and scores by row, cached for pods with equal signatures.

    dirty --requested--> cached --the row changed, or the plugin was called about the node--> dirty

A node-local plugin has one `NodeAnswers` for each signature, kept across cycles; any other gets a new
one in each cycle. Source: docs/decisions/0027-asking-ahead.md.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import NamedTuple

import numpy as np

from berth.framework.interface import ReasonCodes, Scores
from berth.framework.status import Status
from berth.objects.pod import Pod
from berth.out_of_tree.errors import ProtocolError, SidecarError
from berth.out_of_tree.limits import CYCLE_REASONS
from berth.snapshot.columns import Mask, Rows, rows_where
from berth.snapshot.row_journal import RowJournal
from berth.snapshot.snapshot import Snapshot
from berth_plugin_proto import scheduling_pb2

ROW_BYTES = 12
ENTRY_BYTES = 1024
MAX_BYTES = 16 << 20
MAX_SIGNATURES = 1024


class RowAnswers(NamedTuple):
    """Which of the two one request asks for."""

    verdicts: bool
    scores: bool


VERDICTS, SCORES, BOTH = RowAnswers(True, False), RowAnswers(False, True), RowAnswers(True, True)


@dataclass(slots=True)
class FilterScoreAnswer:
    """A response about k rows, in the order of the request.

    Shapes: codes (k,); raw int64 (k,).
    """

    codes: ReasonCodes | None = None
    reasons: tuple[Status, ...] = ()
    raw: Scores | None = None
    normalization: int | None = None
    """None where the plugin returned no scores."""
    failure: SidecarError | None = None
    """The error of the scores, where the filter results are valid."""


@dataclass(slots=True, eq=False)
class PrefetchedAnswer:
    """A request about these rows that was sent before a pod needed it."""

    rows: Rows
    changed: set[int] = field(default_factory=set)
    """Rows that changed since: the response is not valid for them."""
    task: "asyncio.Task[None] | None" = None

    def left_out(self, rows: Rows) -> Rows:
        """The rows for which the response is not valid. Shapes: rows and result intp (k,)."""
        awaited = np.isin(rows, self.rows)
        if self.changed:
            awaited &= ~np.isin(rows, list(self.changed))
        return rows[~awaited]


class NodeAnswers:
    """Filter results and raw scores of the rows of one snapshot.

    Shapes: codes uint16 (n,); raw int64 (n,); dirty bool (n,), by part.
    """

    __slots__ = (
        "_codes",
        "_dirty",
        "_normalization",
        "_plugin",
        "_raw",
        "ahead",
        "failed_ahead",
        "lasting",
        "reasons",
        "spoiled",
    )

    def __init__(self, plugin: str, n: int, *, lasting: bool = False) -> None:
        self.lasting = lasting
        """Whether they hold for single nodes, beyond this cycle; else all rows are asked about at once."""
        self.ahead: PrefetchedAnswer | None = None
        self.failed_ahead = False
        """The last question that no pod waited for failed, and no row changed since."""
        self.spoiled = False
        """The plugin's scores can't be used beside its verdicts: the next cycle asks for both anew."""
        self._plugin = plugin
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
    def normalization(self) -> int:
        """How the raw scores are to be mapped to 0 to 100."""
        return scheduling_pb2.NORMALIZATION_NONE if self._normalization is None else self._normalization

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

    def take(self, found: FilterScoreAnswer, rows: Rows, changed: Iterable[int] = ()) -> None:
        """Store a response about these rows, except rows that `changed` since the request.

        Raises: ProtocolError where the plugin has given too many different reasons.
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

        Raises: ProtocolError where these are too many.
        """
        if not self.reasons:
            self.reasons = reasons
        if self.reasons[: len(reasons)] == reasons:
            return codes
        before = set(self.reasons)
        known = [*self.reasons, *dict.fromkeys(each for each in reasons if each not in before)]
        if len(known) > CYCLE_REASONS:
            text = f"brings up more than {CYCLE_REASONS} different reasons in one cycle"
            raise ProtocolError(self._plugin, text)
        number = {each: i for i, each in enumerate(known, 1)}
        numbers = np.array([0, *(number[each] for each in reasons)], dtype=np.uint16)
        self.reasons = tuple(known)
        return numbers.take(codes)


def _places(rows: Rows, n: int) -> Rows | slice:
    """The rows as an index; all rows, and a single one, as a slice, which takes a tenth of the time."""
    if rows.size == n:
        return slice(None)
    return slice(rows.item(0), rows.item(0) + 1) if rows.size == 1 else rows


class Example(NamedTuple):
    """A pod, and its JSON, to request answers with for all pods of its signature."""

    pod: Pod
    data: bytes


class _CacheEntry:
    """The answers for one signature, and the journal positions up to which they are valid."""

    __slots__ = ("_position", "_static", "answers", "example", "size_bytes")

    def __init__(self, answers: NodeAnswers, example: Example | None) -> None:
        self.answers = answers
        self.example = example
        self.size_bytes = 0
        self._static = self._position = -1

    def follow(self, nodes: Snapshot, touched: RowJournal) -> NodeAnswers:
        """The answers, with the rows marked dirty that changed since the last call."""
        answers = self.answers
        changed = self._changed(nodes, touched)
        if changed is None:
            answers.forget(len(nodes))
        elif changed.size:
            answers.change(changed)
        self._static = nodes.static_generation
        self._position = touched.end
        self.size_bytes = ENTRY_BYTES + ROW_BYTES * len(nodes)
        if self.example is not None:
            self.size_bytes += len(self.example.data)
        return answers

    def _changed(self, nodes: Snapshot, touched: RowJournal) -> Rows | None:
        """The rows that changed; None where all rows may have, or the journals no longer reach back.

        Shapes: result intp (k,), not to be kept.
        """
        answers = self.answers
        if self._static != nodes.static_generation or answers.spoiled:
            return None
        if len(answers.reasons) > CYCLE_REASONS // 2:
            return None
        return touched.since(self._position)


class SidecarAnswerCache:
    """The answers of one sidecar in one profile, by signature; LRU, bounded in bytes and entries.

    A change of the plugin's cache key (`basis`) clears it.
    """

    def __init__(self, plugin: str, max_bytes: int = MAX_BYTES) -> None:
        self._plugin = plugin
        self._max_bytes = max_bytes
        self._basis: Hashable = None
        self._kept: OrderedDict[Hashable, _CacheEntry] = OrderedDict()
        self.size_bytes = 0
        """About how much memory is in use."""

    def __len__(self) -> int:
        """The number of signatures."""
        return len(self._kept)

    def rest_on(self, basis: Hashable) -> None:
        """Clear the cache if the plugin's cache key is another one."""
        if basis != self._basis:
            self._basis = basis
            self.clear()

    def clear(self) -> None:
        """Drop all entries."""
        for kept in self._kept.values():
            kept.answers.ahead = None
        self._kept.clear()
        self.size_bytes = 0

    def peek(self, signature: Hashable) -> NodeAnswers | None:
        """The signature's entry, without bringing it up to date."""
        kept = self._kept.get(signature)
        return None if kept is None else kept.answers

    def of(
        self,
        signature: Hashable,
        example: Callable[[], Example | None],
        nodes: Snapshot,
        touched: RowJournal,
    ) -> NodeAnswers:
        """The answers for that signature, with the rows dirty that changed since; all rows, if it is new."""
        kept = self._kept.get(signature)
        if kept is None:
            kept = self._kept[signature] = _CacheEntry(
                NodeAnswers(self._plugin, len(nodes), lasting=True), example()
            )
        else:
            self._kept.move_to_end(signature)
            self.size_bytes -= kept.size_bytes
        answers = kept.follow(nodes, touched)
        self.size_bytes += kept.size_bytes
        while self.size_bytes > self._max_bytes or len(self._kept) > MAX_SIGNATURES:
            _, gone = self._kept.popitem(last=False)
            gone.answers.ahead = None
            self.size_bytes -= gone.size_bytes
        return answers

    def recent(
        self, most: int, nodes: Snapshot, touched: RowJournal
    ) -> Iterator[tuple[NodeAnswers, Example | None]]:
        """What was used last, with the rows dirty that changed since, and pods to ask about."""
        for kept in list(islice(reversed(self._kept.values()), most)):
            yield kept.follow(nodes, touched), kept.example
