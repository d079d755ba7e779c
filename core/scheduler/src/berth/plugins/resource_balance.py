"""How equally the resources of nodes are used, for all nodes at once and for single ones.

Source: pkg/scheduler/framework/plugins/noderesources/balanced_allocation.go (Kubernetes v1.36).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from berth.framework.interface import MAX_NODE_SCORE
from berth.plugins.device_offers import Amounts
from berth.plugins.resource_shares import Offers, each_once, offers
from berth.snapshot.columns.growing import ByRow, Mask, Rows
from berth.snapshot.snapshot import Snapshot

Floats = NDArray[np.float64]
Balances = NDArray[np.int32]
PAIR = 2
HALF = MAX_NODE_SCORE // 2


class BalanceTerm(NamedTuple):
    """What a row offers of one resource, what pods hold of it, and how much more is to be in use."""

    offered: ByRow
    held: ByRow
    more: int


def balances(names: tuple[str, ...], amounts: Sequence[int], nodes: Snapshot) -> Balances:
    """100 for equal used fractions, less the more they deviate, with so much more of each resource in use.

    Some node offers each of the resources. Shapes: result int32 (n,), the caller's to change.
    """
    if len(names) < PAIR:
        return np.full(len(nodes), MAX_NODE_SCORE, dtype=np.int32)
    fractions = nodes.scratch(len(names))
    np.add(_used(names, nodes), _upright(amounts), out=fractions)
    return _of_used(fractions, offers(nodes, names))


def balances_of_rows(
    names: tuple[str, ...], amounts: Sequence[int], nodes: Snapshot
) -> Callable[[Rows], Balances] | None:
    """The same as a function of some rows of the whole snapshot; None for fewer resources than two."""
    if len(names) < PAIR:
        return None
    offered, more = offers(nodes, names), _upright(amounts)

    def balances(rows: Rows) -> Balances:
        fractions = _used(names, nodes).take(rows, axis=1)
        fractions += more
        return _of_used(fractions, offered.on(rows))

    return balances


def _upright(amounts: Sequence[int]) -> Floats:
    return np.array(amounts, dtype=np.float64)[:, np.newaxis]


def _used(names: tuple[str, ...], nodes: Snapshot) -> Floats:
    """What pods hold of each resource, not to be written to. Shapes: result float64 (r, n)."""
    return nodes.of_rows(("used", names), partial(_held, names), partial(_held_on_row, names))


def _held(names: tuple[str, ...], nodes: Snapshot) -> Floats:
    return np.array([nodes.held(name) for name in names], dtype=np.float64)


def _held_on_row(names: tuple[str, ...], nodes: Snapshot) -> Callable[[int], list[int]]:
    columns = [nodes.held_on_rows(name) for name in names]
    return lambda row: [held[row] for held in columns]


def _of_used(fractions: Floats, offered: Offers) -> Balances:
    """Balances by what is used of each resource, which is changed. Shapes: fractions float64 (r, k)."""
    np.divide(fractions, offered.divisors, out=fractions)
    # Looking for the highest takes half the time of cutting off what is above 1.
    if fractions.max(initial=0.0) > 1.0:
        np.minimum(fractions, 1.0, out=fractions)
    masks = offered.present
    twice = _of_pair(fractions, masks) if len(masks) == PAIR else 2.0 * _of_many(fractions, masks)
    # Halves and doubles are exact in float64, so this rounds as (1 - deviation) * 100 does.
    np.subtract(2.0, twice, out=twice)
    twice *= HALF
    return twice.astype(np.int32)


def balance_of_row(names: Sequence[str], amounts: Sequence[int], nodes: Snapshot) -> Callable[[int], int]:
    """The same as a function of a row of the whole snapshot."""
    return _of_row(
        [
            BalanceTerm(offered.data, nodes.held_on_rows(name), more)
            for name, more in zip(names, amounts, strict=True)
            if (offered := nodes.offered(name)) is not None
        ]
    )


def balances_with_devices(
    names: Sequence[str], amounts: Sequence[int], nodes: Snapshot, devices: Mapping[str, Amounts]
) -> Balances:
    """The balances where devices stand behind some resources: these have other amounts than the snapshot's.

    Shapes: result int32 (n,), the caller's to change.
    """
    parts: list[BalanceTerm] = []
    columns: list[list[int]] = []
    for name, more in zip(names, amounts, strict=True):
        offered = devices[name].offered if name in devices else nodes.offered(name)
        if offered is not None:
            held = devices[name].used if name in devices else nodes.held(name)
            columns += [offered.tolist(), held.tolist()]
            parts.append(BalanceTerm(columns[-2], columns[-1], more))
    return np.array(each_once(_of_row(parts), columns, len(nodes)), dtype=np.int32)


def _of_row(parts: Sequence[BalanceTerm]) -> Callable[[int], int]:
    def balance(row: int) -> int:
        fractions = []
        for offered, held, more in parts:
            there = offered[row]
            if there:
                fractions.append(min((float(held[row]) + more) / there, 1.0))
        return _balance(fractions)

    return balance


def _balance(fractions: Sequence[float]) -> int:
    """The balance of one node, by the used fractions of the resources that it has."""
    count = len(fractions)
    if count < PAIR:
        return MAX_NODE_SCORE
    if count == PAIR:
        return int((2.0 - abs(fractions[0] - fractions[1])) * HALF)
    # One sum after the other: `sum` of floats may round otherwise.
    total = squares = 0.0
    for fraction in fractions:
        total += fraction
    mean = total / count
    for fraction in fractions:
        squares += (fraction - mean) * (fraction - mean)
    return int((2.0 - 2.0 * math.sqrt(squares / count)) * HALF)


def _of_pair(fractions: Floats, masks: Sequence[Mask | None]) -> Floats:
    """Twice the deviation of two, which is their distance; 0 on nodes that have only one of them."""
    first, second = fractions
    distance: Floats = np.subtract(first, second, out=first)
    np.abs(distance, out=distance)
    for mask in masks:
        if mask is not None:
            distance *= mask
    return distance


def _of_many(fractions: Floats, masks: Sequence[Mask | None]) -> Floats:
    """The standard deviation over the resources that each node has.

    Sums run in the order of the resources, one at a time, as upstream's do, for the same rounding.
    """
    n = fractions.shape[1]
    there = [np.ones(n, dtype=bool) if mask is None else mask for mask in masks]
    count = np.sum(there, axis=0)
    total, squares = np.zeros(n), np.zeros(n)
    for fraction, mask in zip(fractions, there, strict=True):
        total += fraction * mask
    mean = total / np.maximum(count, 1)
    for fraction, mask in zip(fractions, there, strict=True):
        squares += (fraction - mean) * (fraction - mean) * mask
    deviation = np.sqrt(squares / np.maximum(count, 1))
    high = np.max([np.where(m, f, 0.0) for f, m in zip(fractions, there, strict=True)], axis=0)
    low = np.min([np.where(m, f, 1.0) for f, m in zip(fractions, there, strict=True)], axis=0)
    return np.where(count > PAIR, deviation, np.where(count == PAIR, (high - low) / PAIR, 0.0))
