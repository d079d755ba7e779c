"""A few rows of the whole snapshot as a table whose columns are cut out as they are read.

For questions about single rows: most plugins read two or three columns, and cutting out all of them would
take longer than the answer.
"""

from collections.abc import Callable, Mapping
from typing import Any

from berth.snapshot.columns.growing import Rows
from berth.snapshot.snapshot import Snapshot


class RowView(Snapshot):
    """Those rows, in that order; everything but the columns is the whole snapshot's."""

    def __init__(self, whole: Snapshot, rows: Rows) -> None:
        self.part_of = whole
        self.rows = self.picked = rows

    def __len__(self) -> int:
        return int(self.picked.size)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        cut = _CUT.get(name)
        value = getattr(self.whole, name) if cut is None else cut(self.whole, self.picked)
        setattr(self, name, value)
        return value


def _along_rows(name: str) -> Callable[[Snapshot, Rows], Any]:
    return lambda whole, rows: getattr(whole, name)[rows]


def _across_rows(name: str) -> Callable[[Snapshot, Rows], Any]:
    return lambda whole, rows: getattr(whole, name)[:, rows]


def _each(name: str) -> Callable[[Snapshot, Rows], Any]:
    return lambda whole, rows: [getattr(whole, name)[row] for row in rows.tolist()]


def _numbered(whole: Snapshot, rows: Rows) -> dict[str, int]:
    return {whole.names[row]: i for i, row in enumerate(rows.tolist())}


_CUT: Mapping[str, Callable[[Snapshot, Rows], Any]] = {
    **{name: _each(name) for name in ("names", "nodes", "pods")},
    **{name: _along_rows(name) for name in ("pod_count", "allowed_pods", "unschedulable")},
    **{name: _across_rows(name) for name in ("allocatable", "requested", "non_zero_requested")},
    "row_of": _numbered,
}
