"""A mixed-integer program, as a solver takes it: columns with costs and bounds, rows with coefficients."""

from collections.abc import Sequence

import msgspec

INFINITY = float("inf")

Term = tuple[int, float]
"""A column and its coefficient."""


class Program(msgspec.Struct):
    """Maximises the sum of worth times value."""

    worth: list[float] = msgspec.field(default_factory=list)
    lower: list[float] = msgspec.field(default_factory=list)
    upper: list[float] = msgspec.field(default_factory=list)
    whole: list[bool] = msgspec.field(default_factory=list)
    """Which columns take whole numbers alone."""
    row_lower: list[float] = msgspec.field(default_factory=list)
    row_upper: list[float] = msgspec.field(default_factory=list)
    starts: list[int] = msgspec.field(default_factory=list)
    columns: list[int] = msgspec.field(default_factory=list)
    coefficients: list[float] = msgspec.field(default_factory=list)

    def column(self, worth: float, upper: float, *, lower: float = 0.0, whole: bool = True) -> int:
        """Add a column; its number."""
        self.worth.append(worth)
        self.lower.append(lower)
        self.upper.append(upper)
        self.whole.append(whole)
        return len(self.worth) - 1

    def row(self, terms: Sequence[Term], *, lower: float = -INFINITY, upper: float = INFINITY) -> None:
        """Keep the sum of the terms between the bounds."""
        self.row_lower.append(lower)
        self.row_upper.append(upper)
        self.starts.append(len(self.columns))
        for column, coefficient in terms:
            self.columns.append(column)
            self.coefficients.append(coefficient)
