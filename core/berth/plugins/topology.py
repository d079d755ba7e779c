"""Sums over topology domains: the nodes that share a value of a label.

Source: spec/plugins.md 6; the domains of a key are the values of its label column.
"""

from typing import TypeAlias

import numpy as np

from berth.snapshot.columns import Ints, Mask
from berth.snapshot.snapshot import Snapshot

Domains: TypeAlias = Ints
"""(v + 1,): place 0 stands for nodes without the label, place i + 1 for the i-th value of its column."""

_NOWHERE = np.zeros(1, dtype=np.int64)


def places(nodes: Snapshot, key: str) -> Ints:
    """The place of each node in an array of the key's domains, 0 where it has no such label.

    Shapes: result int64 (n,), not to be written to.
    """
    if not nodes.label(key).index:
        return np.broadcast_to(_NOWHERE, (len(nodes),))
    return nodes.answer(("places", key), lambda table: table.label_ids(key) + 1)


def no_domains(nodes: Snapshot, key: str) -> Domains:
    """Zeros for each domain of the key."""
    return np.zeros(len(nodes.label(key).values) + 1, dtype=np.int64)


def sums(nodes: Snapshot, key: str, amounts: Ints | Mask) -> Domains:
    """The sum of the nodes' amounts in each domain; nodes without the label count nowhere.

    Shapes: amounts (n,); every amount is below 2**53, so that adding in float64 is exact.
    """
    width = len(nodes.label(key).values) + 1
    total: Domains = np.bincount(places(nodes, key), weights=amounts, minlength=width).astype(np.int64)
    total[0] = 0
    return total


def labelled(nodes: Snapshot, key: str) -> bool:
    """Whether every node has the label."""
    return bool(with_all(nodes, frozenset((key,))).all())


def with_all(nodes: Snapshot, keys: frozenset[str]) -> Mask:
    """Which nodes have all of the labels.

    Shapes: result bool (n,).
    """

    def have(table: Snapshot) -> Mask:
        mask = np.ones(len(table), dtype=bool)
        for key in keys:
            mask &= table.label_ids(key) >= 0
            if not mask.any():
                break
        return mask

    return nodes.answer(("has labels", keys), have)
