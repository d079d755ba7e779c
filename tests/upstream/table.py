"""Reading the table, and what may be wrong with it."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from berth.config.releases.gate_history import HISTORY
from berth.config.releases.release import RELEASES, shown
from berth.config.releases.rules import Rules

ROOT = Path(__file__).parents[2]
TABLE = Path(__file__).with_name("changes.tsv")
STATES = frozenset({"followed", "no effect here", "accepted only", "open"})
_NUMBER = re.compile(r"(KEP-|#)[0-9]+")
_COLUMNS = 5


class Row(NamedTuple):
    """A change of upstream's, and what it is here."""

    line: int
    release: str
    number: str
    subject: str
    state: str
    evidence: str


def read_table(path: Path = TABLE) -> list[Row]:
    """Give the rows; a line that is no row has empty columns."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [
        Row(number, *(line.split("\t") + [""] * _COLUMNS)[:_COLUMNS])
        for number, line in enumerate(lines, 1)
        if line and not line.startswith("#\t")
    ]


def problems(rows: Sequence[Row], root: Path = ROOT) -> list[str]:
    """Give what is wrong, a line each: of single rows first, then changes without a row."""
    found = [f"{TABLE.name}:{row.line}: {text}" for row in rows for text in _wrong(row, root)]
    return [*found, *_missing(rows)]


def _wrong(row: Row, root: Path) -> Iterator[str]:
    if row.release not in {shown(release) for release in RELEASES}:
        yield f"release {row.release!r} is none that is followed"
    if not _NUMBER.fullmatch(row.number):
        yield f"number {row.number!r} is neither KEP-N nor #N"
    if not row.subject:
        yield "no subject: name the gate, the rule or the fix"
    if row.state not in STATES:
        yield f"state {row.state!r} is none of {', '.join(sorted(STATES))}"
    file, _, name = row.evidence.partition("::")
    if not (row.evidence and (root / file).is_file()):
        yield f"no such test or page: {row.evidence or '(none)'}"
    elif name and f"def {name}(" not in (root / file).read_text(encoding="utf-8"):
        yield f"no test {name} in {file}"
    elif not name and not file.startswith("docs/"):
        yield f"{file} is no page: name the test in it"


def _missing(rows: Sequence[Row]) -> Iterator[str]:
    """Gates that a followed release brought, and rules, without a row."""
    named = {row.subject for row in rows}
    oldest = RELEASES[0]
    new = [gate for gate, history in HISTORY.items() if _first(history) > oldest]
    rules = [field.name for field in msgspec.structs.fields(Rules) if field.name != "release"]
    for subject in (*new, *rules):
        if subject not in named:
            yield f"{TABLE.name}: no row for {subject}"


def _first(history: str) -> tuple[int, ...]:
    return tuple(map(int, re.split(r"[ /]", history)[0].split(".")))
