"""Strict CSV: a header that must match, values that must parse, and one error that says where.

The openb files and the condensed table are both read through here: a caller gets every row or an error.
"""

import csv
import io
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from berth.demo.dataset.errors import BrokenLineError, UnreadableSourceError, shown

# No figure of a cluster comes near, and a million GiB in bytes still fits a signed 64-bit integer.
MOST = 1_000_000_000
REMEDY = "correct the line, or take the file anew from its source"


class CsvColumn(NamedTuple):
    """One column: its name in the header, what it takes in words, and how its text becomes a value."""

    name: str
    expected: str
    parse: Callable[[str], Any]


class Row(msgspec.Struct, frozen=True):
    """The parsed values of one line, by column name."""

    file: str
    line: int
    columns: Sequence[CsvColumn]
    values: dict[str, Any]

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def broken(self, name: str, found: str, expected: str) -> BrokenLineError:
        """Give the error for a value that parses but contradicts the rest of its line or file."""
        index = [column.name for column in self.columns].index(name)
        return _broken((self.file, self.line), index, self.columns[index], found, expected)


def whole(name: str, least: int = 0, most: int = MOST) -> CsvColumn:
    """Take a whole number in plain ASCII digits, within bounds."""

    def parse(text: str) -> int:
        # int() alone would take "1_000", " 1 ", "+1" and digits of other scripts.
        if not re.fullmatch(r"[0-9]{1,12}", text) or not least <= int(text) <= most:
            raise ValueError(text)
        return int(text)

    return CsvColumn(name, f"a whole number from {least} to {most}", parse)


def optional_whole(name: str) -> CsvColumn:
    """Take a whole number, or nothing."""
    number = whole(name)
    return CsvColumn(
        name, f"{number.expected}, or nothing", lambda text: number.parse(text) if text else None
    )


def matching(name: str, pattern: str, expected: str) -> CsvColumn:
    """Take text that a pattern matches from end to end."""

    def parse(text: str) -> str:
        if not re.fullmatch(pattern, text, re.ASCII):
            raise ValueError(text)
        return text

    return CsvColumn(name, expected, parse)


def read_file(path: Path) -> bytes:
    """Read a file whole.

    Raises:
        UnreadableSourceError: it is missing or may not be read.
    """
    try:
        return path.read_bytes()
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise UnreadableSourceError(f"{path}: {reason}; give a path that exists and can be read") from None


def read_rows(file: str, data: bytes, columns: Sequence[CsvColumn]) -> list[Row]:
    """Parse every line of a CSV file.

    Raises:
        BrokenLineError: the first thing wrong with it.
    """
    lines = _records(file, _decoded(file, data))
    header = [column.name for column in columns]
    line, names = next(lines, (1, []))
    if names != header:
        found = shown(",".join(names)) if names else "no header"
        raise BrokenLineError(file, line, "header", found, f"the first line must read {','.join(header)}")
    rows = [_row(file, number, fields, columns) for number, fields in lines]
    if not rows:
        raise BrokenLineError(file, line + 1, "first row", "the end of the file", REMEDY)
    return rows


def _decoded(file: str, data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        found = f"byte 0x{data[error.start]:02x}"
        raise BrokenLineError(file, line, "text", found, "save the file as UTF-8") from None


def _records(file: str, text: str) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    line = 1
    try:
        for fields in reader:
            yield line, fields
            line = reader.line_num + 1
    except csv.Error as error:
        raise BrokenLineError(file, line, "text", f"no CSV ({error})", REMEDY) from None


def _row(file: str, line: int, fields: list[str], columns: Sequence[CsvColumn]) -> Row:
    if len(fields) != len(columns):
        where = f"column {min(len(fields), len(columns)) + 1}"
        found = f"{len(fields)} values, expected {len(columns)}"
        raise BrokenLineError(file, line, where, found, REMEDY)
    values = {}
    for index, (column, text) in enumerate(zip(columns, fields, strict=True)):
        try:
            values[column.name] = column.parse(text)
        except ValueError:
            raise _broken((file, line), index, column, shown(text), column.expected) from None
    return Row(file, line, columns, values)


def _broken(at: tuple[str, int], index: int, column: CsvColumn, found: str, expected: str) -> BrokenLineError:
    where = f"column {index + 1} ({column.name})"
    return BrokenLineError(*at, where, f"{found}, expected {expected}", REMEDY)
