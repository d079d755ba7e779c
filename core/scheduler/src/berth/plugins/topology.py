"""Topology domains: the nodes that share a value of a label, and sums over them.

Domains of a key have numbers, their places in arrays: place 0 stands for nodes without the label. Mostly a
place is that of the value in the key's label column. Where every node is a domain of its own, as with host
names, row i has place i + 1: what holds for domains is then what holds for rows, and nothing has to be added
up or spread out.

Source: pkg/scheduler/framework/plugins/{podtopologyspread,interpodaffinity} (Kubernetes v1.36).
"""

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from berth.snapshot.affinity_terms import HeldTerms
from berth.snapshot.columns.growing import Ints, Mask
from berth.snapshot.placed.placed_pods import PodQuery
from berth.snapshot.placed.pod_counts import Division
from berth.snapshot.snapshot import Snapshot

Domains: TypeAlias = Ints
"""(v + 1,): place 0 stands for nodes without the label."""

S = TypeVar("S", bound=np.generic)

_NOWHERE = np.zeros(1, dtype=np.int64)


class Topology:
    """The domains of one key over the whole snapshot.

    `apart` says that each node is a domain of its own, `labelled` that each node is in one.
    Shapes: places int64 (n,), not to be written to.
    """

    __slots__ = ("apart", "division", "labelled", "nbytes", "places", "width")

    def __init__(self, whole: Snapshot, key: str) -> None:
        column, n = whole.label(key), len(whole)
        self.places: Ints
        # As many values as nodes: each node has one, and no other node the same.
        self.apart = len(column.index) == n
        self.width = n + 1 if self.apart else len(column.values) + 1
        if self.apart:
            self.places = np.arange(1, n + 1)
        elif column.index:
            self.places = whole.label_ids(key) + 1
        else:
            self.places = np.broadcast_to(_NOWHERE, (n,))
        self.labelled = self.apart or bool(np.all(self.places))
        self.division = Division(key, self.places, _with_nodes(self.places, self.width), self.apart)
        self.nbytes = self.division.nbytes if column.index else self.division.known.nbytes


def _with_nodes(places_of_nodes: Ints, width: int) -> Mask:
    known = np.zeros(width, dtype=bool)
    known[places_of_nodes] = True
    known[0] = False
    return known


def topology(nodes: Snapshot, key: str) -> Topology:
    """The key's domains, worked out once while nodes stay as they are."""
    return nodes.fact(("topology", key), lambda whole: Topology(whole, key))


def places(nodes: Snapshot, key: str) -> Ints:
    """The place of each node in an array of the key's domains, 0 where it has no such label.

    Shapes: result int64 (n,), not to be written to.
    """
    return topology(nodes, key).places[nodes.rows]


def no_domains(nodes: Snapshot, key: str) -> Domains:
    """Zeros for each domain of the key."""
    return np.zeros(topology(nodes, key).width, dtype=np.int64)


def division(nodes: Snapshot, key: str, name: Hashable, counting: Callable[[Snapshot], Mask]) -> Division:
    """The key's domains of the nodes that count; `name` is all that these depend on besides the nodes.

    Shapes: counting gives bool (n,) for the whole snapshot.
    """

    def divide(whole: Snapshot) -> Division:
        every, mask = topology(whole, key), counting(whole)
        if mask.all():
            return every.division
        where = every.places * mask
        return Division((key, name), where, _with_nodes(where, every.width), every.apart)

    return nodes.fact(("division", key, name), divide)


def count_in(nodes: Snapshot, key: str, question: PodQuery, of: Division | None = None) -> Domains:
    """How many placed pods in each domain meet the question, the caller's; 0 in place 0.

    `of` is a division of the key's nodes, all of them where it is left out.
    """
    return _copied(nodes.count_in(question, topology(nodes, key).division if of is None else of))


def count_in_each(nodes: Snapshot, keys: Iterable[str], question: PodQuery) -> dict[str, Domains]:
    """The same for all nodes by several keys, asked once, however large the question is."""
    by_key = {key: topology(nodes, key).division for key in keys}
    sums = nodes.placed.count_in_each(question, by_key.values())
    return {key: _copied(of_key) for key, of_key in zip(by_key, sums, strict=True)}


def holders_in(nodes: Snapshot, key: str, weights: Mapping[HeldTerms, int]) -> tuple[Domains, Domains]:
    """How many placed pods in each domain hold one of these, and the sums of what they count."""
    return nodes.placed.terms.in_domains(weights, topology(nodes, key).division)


def _copied(sums: Domains) -> Domains:
    domains = sums.copy()
    domains[0] = 0
    return domains


def on_nodes(nodes: Snapshot, key: str, values: NDArray[S]) -> NDArray[S]:
    """What each node's domain has. Shapes: values (v + 1,); result (n,), perhaps a part of them."""
    every = topology(nodes, key)
    if nodes is nodes.whole:
        return values[1:] if every.apart else values.take(every.places)
    return values.take(every.places[nodes.rows])


def labelled(nodes: Snapshot, key: str) -> bool:
    """Whether every node of the whole snapshot has the label."""
    return topology(nodes, key).labelled


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
