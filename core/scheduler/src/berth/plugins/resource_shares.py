"""Columns that the resource scores divide by, in the type in which the division is exact.

NumPy divides float64 about six times faster than int64, and for the quotients of these scores the outcome is
the same. Let x and y be integers with y >= 1 and 0 <= x <= 100 y, and k the least integer above x/y where
that is no integer itself. Then k <= 100, and x/y lies at least 1/y below k. Rounding to float64 reaches k
only where the distance is at most half the spacing of the numbers just below k, which is at most k * 2**-53.
But 1/y is more than 100 * 2**-53 for every y below 2**46, since 100 * 2**46 < 2**53; x and y are then exact,
too. So the floor of the float quotient is the integer quotient. Columns with a larger amount stay int64.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from berth.objects.quantity import MAX_INT64
from berth.snapshot.columns.growing import Ints, Mask, Rows
from berth.snapshot.snapshot import Snapshot

EXACT_BELOW = 2**46
PERCENT = 100
# Beyond this, a hundredfold is more than 64 bits hold; kube-scheduler's product wraps around.
_LARGEST_TIMES_PERCENT = MAX_INT64 // PERCENT
_SHIFT = 7

Floats = NDArray[np.float64]
Numbers = NDArray[Any]
"""float64 or int64 (n,)."""


class Offer(NamedTuple):
    """What nodes have of a resource; `divisor` is the same with 1 in place of 0.

    Shapes: both float64 or int64 (n,).
    """

    amount: Numbers
    divisor: Numbers


class Offers(NamedTuple):
    """What nodes have of several resources, so that one step of arithmetic does for all of them.

    `present` says which nodes have any of a resource, None where all have; `exact`, whether float quotients
    of all of them are.
    Shapes: divisors float64 (r, n), with 1 in place of 0; present bool (n,).
    """

    divisors: Floats
    present: tuple[Mask | None, ...]
    exact: bool

    @property
    def nbytes(self) -> int:
        """How many bytes the columns take."""
        return self.divisors.nbytes + sum(mask.nbytes for mask in self.present if mask is not None)

    def on(self, rows: slice | Rows) -> "Offers":
        """The same of some rows."""
        present = tuple(None if mask is None else mask[rows] for mask in self.present)
        divisors = self.divisors[:, rows] if isinstance(rows, slice) else self.divisors.take(rows, axis=1)
        return Offers(divisors, present, self.exact)


def offers(nodes: Snapshot, names: tuple[str, ...]) -> Offers:
    """The nodes' allocatable amounts of resources each of which some node offers."""
    every = nodes.fact(("offers", names), lambda table: _side_by_side(table, names))
    return every if nodes is nodes.whole else every.on(nodes.rows)


def _side_by_side(nodes: Snapshot, names: tuple[str, ...]) -> Offers:
    each = [offer(nodes, name) for name in names]
    masks = [one.amount != 0 for one in each]
    return Offers(
        np.array([one.divisor for one in each], dtype=np.float64),
        tuple(None if mask.all() else mask for mask in masks),
        all(one.amount.dtype.kind == "f" for one in each),
    )


def offer(nodes: Snapshot, name: str) -> Offer:
    """The nodes' allocatable amounts of a resource, which some node offers."""
    return Offer(
        nodes.answer(("allocatable", name), lambda table: _exact(offered_amounts(table, name))),
        nodes.answer(("divisor", name), lambda table: _exact(np.maximum(offered_amounts(table, name), 1))),
    )


def offered_amounts(nodes: Snapshot, name: str) -> Ints:
    """What nodes offer of a resource, of which some node offers any. Shapes: result int64 (n,)."""
    offered = nodes.offered(name)
    assert offered is not None, "only resources that some node offers are divided by"
    return offered


def _exact(column: Ints) -> Numbers:
    small = not column.size or int(column.max()) < EXACT_BELOW
    return column.astype(np.float64) if small else column.copy()


def considered(nodes: Snapshot, weights: tuple[tuple[str, int], ...]) -> NDArray[np.float64]:
    """The sum, for each node, of the weights of the resources that it has any of; 1 where it has none.

    Shapes: result float64 (n,).
    """
    return nodes.answer(("considered", weights), lambda table: _weight_sums(table, weights))


def _weight_sums(nodes: Snapshot, weights: tuple[tuple[str, int], ...]) -> NDArray[np.float64]:
    parts = [
        weight * (offered != 0) for name, weight in weights if (offered := nodes.offered(name)) is not None
    ]
    sums: NDArray[np.float64] = np.maximum(np.sum(parts, axis=0), 1).astype(np.float64)
    return sums


def with_pod(held: Ints, request: int, offered: Offer, scratch: Floats) -> Numbers:
    """What nodes hold with the pod, in the type of the offer; it ends where 64 bits do.

    Shapes: scratch float64 (n,), taken for floats; result (n,), the caller's to change.
    """
    if offered.amount.dtype.kind == "i":
        return np.minimum(held, MAX_INT64 - request) + request
    return np.add(held, request, out=scratch, dtype=np.float64)


def percents(parts: Numbers, offered: Offer) -> Numbers:
    """Whole percents of what nodes have, rounded down, in place; parts are not negative and not above that.

    Amounts whose hundredfold 64 bits do not hold are looked at without their last bits.
    """
    divisors = offered.divisor
    if parts.dtype.kind == "i":
        shift = np.where(divisors > _LARGEST_TIMES_PERCENT, _SHIFT, 0)
        np.right_shift(parts, shift, out=parts)
        divisors = np.right_shift(divisors, shift)
    parts *= PERCENT
    return floor_divided(parts, divisors)


def percent(part: int, whole: int) -> int:
    """The same for one node: of a positive `whole`, to which the part is cut."""
    if part <= 0:
        return 0
    part = min(part, whole)
    if whole > _LARGEST_TIMES_PERCENT:
        part, whole = part >> _SHIFT, whole >> _SHIFT
    return part * PERCENT // whole


def each_once(of_row: Callable[[int], int], columns: Sequence[list[int]], n: int) -> list[int]:
    """The values of n rows, worked out once for all rows with equal values in these columns."""
    keys: Sequence[tuple[int, ...]] = list(zip(*columns, strict=True)) if columns else [()] * n
    one_row = {key: row for row, key in enumerate(keys)}
    value = {key: of_row(row) for key, row in one_row.items()}
    return [value[key] for key in keys]


def floor_divided(numerators: Numbers, divisors: Numbers) -> Numbers:
    """The quotients rounded down, in place; both as `offer` gives them."""
    if numerators.dtype.kind == "i":
        return np.floor_divide(numerators, divisors, out=numerators)
    np.divide(numerators, divisors, out=numerators)
    return np.floor(numerators, out=numerators)
