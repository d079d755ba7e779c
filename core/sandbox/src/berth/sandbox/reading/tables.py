"""The columns kubectl prints, computed by the server as a real one does.

Source: pkg/printers/internalversion/printers.go, apimachinery/pkg/util/duration (v1.36).
"""

import calendar
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import msgspec

from berth.sandbox.store import Json

NONE: Final = "<none>"
UNKNOWN: Final = "<unknown>"
Cell = Callable[[Json, float], Any]


class PrinterColumn(msgspec.Struct, frozen=True):
    """One column: its title, how to fill it, and from which width on it is shown (1: only `-o wide`)."""

    name: str
    cell: Cell
    wide: bool = False
    kind: str = "string"


@dataclass(frozen=True)
class Table:
    """The columns of one kind."""

    columns: tuple[PrinterColumn, ...]

    @cached_property
    def definitions(self) -> list[Json]:
        """Give the column definitions as the Table object has them."""
        return [
            {
                "name": column.name,
                "type": column.kind,
                "format": "name" if column.name == "Name" else "",
                "description": "",
                "priority": int(column.wide),
            }
            for column in self.columns
        ]

    def cells(self, document: Json, now: float) -> list[Any]:
        """Give one object's row."""
        return [column.cell(document, now) for column in self.columns]


def at(document: Any, path: str, default: Any = None) -> Any:
    """Give the value at a dotted path, or the default."""
    for part in path.split("."):
        document = document.get(part) if isinstance(document, dict) else None
    return default if document is None else document


def path_cell(path: str, default: Any = NONE) -> Cell:
    """Make a cell that shows the value at a path."""
    return lambda document, _now: _shown(at(document, path), default)


def _shown(value: Any, default: Any) -> Any:
    if value is None or value == "":
        return default
    return str(value).lower() if isinstance(value, bool) else value


def since(stamp: Any, now: float) -> str:
    """Say how long ago a timestamp was, in kubectl's short form."""
    if not stamp:
        return UNKNOWN
    seconds = calendar.timegm(time.strptime(str(stamp)[:19], "%Y-%m-%dT%H:%M:%S"))
    return human_duration(now - seconds)


# From how many seconds on: the units shown, coarse then fine (0: coarse alone).
_STEPS: Final = (
    (8 * 365 * 86400, (("y", 365 * 86400),)),
    (2 * 365 * 86400, (("y", 365 * 86400), ("d", 86400))),
    (8 * 86400, (("d", 86400),)),
    (2 * 86400, (("d", 86400), ("h", 3600))),
    (8 * 3600, (("h", 3600),)),
    (3 * 3600, (("h", 3600), ("m", 60))),
    (10 * 60, (("m", 60),)),
    (2 * 60, (("m", 60), ("s", 1))),
    (0, (("s", 1),)),
)


def human_duration(seconds: float) -> str:
    """Write a duration as duration.HumanDuration does: 45s, 3m20s, 5h, 2d3h."""
    left = max(0, int(seconds))
    units = next(units for least, units in _STEPS if left >= least)
    text = ""
    for name, size in units:
        count, left = divmod(left, size)
        if count or not text:
            text += f"{count}{name}"
    return text


def age_cell(document: Json, now: float) -> str:
    """Show the object's age."""
    return since(at(document, "metadata.creationTimestamp"), now)


NAME: Final = PrinterColumn("Name", path_cell("metadata.name"))
AGE: Final = PrinterColumn("Age", age_cell)


def table(*columns: PrinterColumn) -> Table:
    """Make a table whose first column is the name."""
    return Table((NAME, *columns))


def column(
    name: str, path: str, default: Any = NONE, *, wide: bool = False, kind: str = "string"
) -> PrinterColumn:
    """Make a column that shows the value at a path."""
    return PrinterColumn(name, path_cell(path, default), wide=wide, kind=kind)
