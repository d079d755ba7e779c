"""Topology domains: the nodes that share a value of a label, and sums over them.

Domains of a key have numbers, their places in arrays: place 0 stands for nodes without the label. Mostly a
place is that of the value in the key's label column. Where every node is a domain of its own, as with host
names, row i has place i + 1: what holds for domains is then what holds for rows, and nothing has to be added
up or spread out.

Source: spec/plugins.md 6.
"""

from collections.abc import Hashable
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from berth.snapshot.affinity_terms import HeldTerm
from berth.snapshot.columns import Ints, Mask
from berth.snapshot.placed_pods import Division, Question
from berth.snapshot.snapshot import Snapshot

Domains: TypeAlias = Ints
"""(v + 1,): place 0 stands for nodes without the label."""

S = TypeVar("S", bound=np.generic)

_NOWHERE = np.zeros(1, dtype=np.int64)


def apart(nodes: Snapshot, key: str) -> bool:
    """Whether each node of the whole snapshot has a value of its own."""
    return len(nodes.label(key).index) == len(nodes.whole)


def places(nodes: Snapshot, key: str) -> Ints:
    """The place of each node in an array of the key's domains, 0 where it has no such label.

    Shapes: result int64 (n,), not to be written to.
    """
    if not nodes.label(key).index:
        return np.broadcast_to(_NOWHERE, (len(nodes),))
    return nodes.answer(("places", key), lambda table: _numbered(table, key))


def _numbered(nodes: Snapshot, key: str) -> Ints:
    return np.arange(1, len(nodes) + 1) if apart(nodes, key) else nodes.label_ids(key) + 1


def width(nodes: Snapshot, key: str) -> int:
    """How many places there are for domains of the key, that of nodes without the label included."""
    return len(nodes.whole if apart(nodes, key) else nodes.label(key).values) + 1


def no_domains(nodes: Snapshot, key: str) -> Domains:
    """Zeros for each domain of the key."""
    return np.zeros(width(nodes, key), dtype=np.int64)


def division(nodes: Snapshot, key: str, counting: Mask | None = None, name: Hashable = None) -> Division:
    """The key's domains of the nodes that count, all where `counting` is None; `name` is that mask's.

    Shapes: counting bool (n,) of the whole snapshot.
    """
    where = places(nodes.whole, key)
    if counting is None or counting.all():
        return Division(key, where, width(nodes, key))
    where = nodes.fact(("division", key, name), lambda _: where * counting)
    return Division((key, name), where, width(nodes, key))


def count_in(nodes: Snapshot, key: str, question: Question, of: Division) -> Domains:
    """How many placed pods in each domain of the key meet the question; none in place 0. The caller's."""
    if apart(nodes, key):
        return _row_by_row(nodes.whole.count(question), of)
    return _copied(nodes.count_in(question, of))


def holders_in(nodes: Snapshot, key: str, held: HeldTerm) -> Domains:
    """How many placed pods in each domain of the key hold the term; none in place 0. The caller's."""
    of = division(nodes, key)
    if apart(nodes, key):
        return _row_by_row(nodes.whole.holders(held), of)
    return _copied(nodes.holders_in(held, of))


def _row_by_row(counts: Ints, of: Division) -> Domains:
    domains = np.empty(counts.size + 1, dtype=np.int64)
    domains[0] = 0
    if isinstance(of.key, str):
        domains[1:] = counts
    else:
        np.multiply(counts, of.domain_of > 0, out=domains[1:])
    return domains


def _copied(sums: Domains) -> Domains:
    domains = sums.copy()
    domains[0] = 0
    return domains


def with_nodes(nodes: Snapshot, of: Division) -> Mask:
    """Which domains have a node that counts. Shapes: result bool (width,), not to be written to."""

    def have(_: Snapshot) -> Mask:
        known = np.zeros(of.width, dtype=bool)
        known[of.domain_of] = True
        known[0] = False
        return known

    return nodes.fact(("with nodes", of.key), have)


def on_nodes(nodes: Snapshot, key: str, values: NDArray[S]) -> NDArray[S]:
    """What each node's domain has. Shapes: values (v + 1,); result (n,), not to be written to."""
    if nodes is nodes.whole and apart(nodes, key):
        return values[1:]
    return values.take(places(nodes, key))


def labelled(nodes: Snapshot, key: str) -> bool:
    """Whether every node has the label."""
    return apart(nodes, key) or bool(with_all(nodes, frozenset((key,))).all())


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
