"""One plugin's columns of answers by its own signature of the pod, in the equivalence cache.

    signature --first pod--> new columns: every row is dirty
              --further----> the columns: rows that changed since are dirty

A change of the plugin's cache key clears them. Asking ahead reads and fills the same columns.
"""

from collections.abc import Callable, Hashable, Iterator
from typing import NamedTuple

from berth.evaluation.caching.answer_columns import MAX_REASONS, AnswerColumns
from berth.evaluation.caching.dirty_rows import ChangedRows
from berth.objects.pods.pod import Pod
from berth.snapshot.bounded_cache import BoundedCache
from berth.snapshot.columns.row_journal import RowJournal
from berth.snapshot.snapshot import Snapshot

ROW_BYTES = 12
ENTRY_BYTES = 1024
MAX_BYTES = 16 << 20
MAX_SIGNATURES = 1024


class Example(NamedTuple):
    """A pod, and its JSON, to ask with for all pods of its signature."""

    pod: Pod
    data: bytes


class _Entry:
    """The columns of one signature, and what changed since they were followed last."""

    __slots__ = ("_changed", "columns", "example")

    def __init__(self, nodes: Snapshot, touched: RowJournal, example: Example | None) -> None:
        self.columns = AnswerColumns(len(nodes), lasting=True)
        self.example = example
        self._changed = ChangedRows(nodes, (touched,))

    def follow(self, nodes: Snapshot) -> AnswerColumns:
        """The columns, with the rows marked dirty that changed since the last call."""
        columns, changed = self.columns, self._changed.take(nodes)
        if changed is None or columns.spoiled or len(columns.reasons) > MAX_REASONS // 2:
            columns.forget(len(nodes))
        elif changed.size:
            columns.change(changed)
        return columns

    @property
    def size_bytes(self) -> int:
        """About how much memory this takes."""
        written = 0 if self.example is None else len(self.example.data)
        return ENTRY_BYTES + ROW_BYTES * len(self.columns) + written


class PluginColumns:
    """The columns of one plugin in one profile, over the rows of one snapshot."""

    def __init__(self, nodes: Snapshot, max_bytes: int = MAX_BYTES) -> None:
        self._nodes = nodes
        self._cache_key: Hashable = None
        self._entries: BoundedCache[Hashable, _Entry] = BoundedCache(max_bytes, MAX_SIGNATURES)

    def __len__(self) -> int:
        """The number of signatures."""
        return len(self._entries)

    @property
    def size_bytes(self) -> int:
        """About how much memory is in use."""
        return self._entries.size_bytes

    def follow_cache_key(self, cache_key: Hashable) -> None:
        """Clear the columns if the plugin's cache key is another one."""
        if cache_key != self._cache_key:
            self._cache_key = cache_key
            _stop_waiting(self._entries.clear())

    def knows(self, signature: Hashable) -> bool:
        """Whether there are columns for that signature."""
        return signature in self._entries

    def of(
        self, signature: Hashable, touched: RowJournal, example: Callable[[], Example | None]
    ) -> AnswerColumns:
        """The columns for that signature, with the rows dirty that changed since; all rows, if it is new."""
        entry = self._entries.peek(signature)
        if entry is None:
            entry = _Entry(self._nodes, touched, example())
        columns = entry.follow(self._nodes)
        _stop_waiting(self._entries.put(signature, entry, entry.size_bytes))
        return columns

    def recent(self, count: int) -> Iterator[tuple[AnswerColumns, Example | None]]:
        """What was used last, with the rows dirty that changed since, and pods to ask with."""
        for entry in list(self._entries.newest(count)):
            yield entry.follow(self._nodes), entry.example


def _stop_waiting(gone: list[_Entry]) -> None:
    """Answers that are still on their way are not taken into columns that are gone."""
    for entry in gone:
        entry.columns.ahead = None
