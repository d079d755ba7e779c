"""Tables and amounts as text for a person."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

Cells = Mapping[str, str]
"""A row's cells by the heads of their columns."""

BYTES: Final = frozenset({"memory", "ephemeral-storage"})
MILLI: Final = 1000
UNITS: Final = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
STEP: Final = 1024


def side_by_side(variants: Sequence[tuple[str, Cells]]) -> Iterator[str]:
    """A row for each variant, with the columns that differ between them; then what is the same in all."""
    rows = [row for _, row in variants]
    heads = list(dict.fromkeys(head for row in rows for head in row))
    cells = {head: [row.get(head, "") for row in rows] for head in heads}
    same = [head for head in heads if len(rows) > 1 and len(set(cells[head])) == 1]
    shown = [head for head in heads if head not in same]
    if shown:
        width = max(len(name) for name, _ in variants) + 2
        wide = {head: max(len(head), *map(len, cells[head])) + 3 for head in shown}
        yield f"{'variant':<{width}}" + "".join(f"{head:>{wide[head]}}" for head in shown)
        for number, (name, _) in enumerate(variants):
            values = "".join(f"{cells[head][number]:>{wide[head]}}" for head in shown)
            yield f"{name:<{width}}{values}"
    if same:
        yield "the same in all: " + ", ".join(f"{head} {cells[head][0]}" for head in same)


def amount(name: str, value: int) -> str:
    """An amount of a resource as Kubernetes spells it, in the largest unit that leaves digits to read."""
    if name == "cpu":
        return f"{value / MILLI:g}" if value % MILLI == 0 else f"{value}m"
    if name not in BYTES:
        return str(value)
    unit = 0
    scaled = float(value)
    while scaled >= STEP * 10 and unit < len(UNITS) - 1:
        scaled /= STEP
        unit += 1
    return f"{scaled:.0f}{UNITS[unit]}"
