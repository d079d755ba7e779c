"""Whether a pod's request fits on nodes.

A code is a sum of bits: 1 for too many pods, then one for each resource that the pod requests, and the
highest for a request that exceeds what the node offers when it is empty. Where a pod requests more resources
than a number has bits, its codes number the sums that came up (`patterns.py`).
"""

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Any, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from berth.framework.interface import ReasonCodes
from berth.objects.pods.pod_requests import Units
from berth.objects.resource_names import CPU, EPHEMERAL_STORAGE, MEMORY, is_extended
from berth.plugins.in_tree import all_pass
from berth.plugins.node_resources_fit.patterns import Patterns
from berth.snapshot.columns.growing import Ints, Mask, Rows
from berth.snapshot.node_info import NodeInfo
from berth.snapshot.snapshot import Snapshot

N = TypeVar("N", bound=np.integer[Any])

TOO_MANY_PODS = "Too many pods"
MAX_BITS = 62
ALWAYS_COUNTED = (CPU, MEMORY, EPHEMERAL_STORAGE)
CODE_TYPES = tuple((int(np.iinfo(kind).max), kind) for kind in (np.uint8, np.uint16, np.uint32))
_NOTHING = np.zeros(1, dtype=np.int64)


class IgnoredResources(msgspec.Struct, frozen=True):
    """Extended resources that this plugin does not check, by name or by the part before the slash."""

    names: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()

    def __contains__(self, name: str) -> bool:
        return is_extended(name) and (name in self.names or name.split("/", 1)[0] in self.groups)


NOTHING_IGNORED = IgnoredResources()


class FitRequest:
    """One pod's request, asked of nodes.

    Of `delegated` resources, which devices stand behind, only nodes that offer some themselves are asked.
    """

    __slots__ = (
        "_bits",
        "_delegated",
        "_dtype",
        "_hopeless",
        "_least",
        "_marks",
        "_patterns",
        "wanted",
    )

    def __init__(
        self,
        requests: Mapping[str, int],
        ignored: IgnoredResources = NOTHING_IGNORED,
        delegated: AbstractSet[str] = frozenset(),
    ) -> None:
        self._delegated = delegated
        self.wanted = checked(requests, ignored)
        self._patterns = Patterns(self.wanted) if len(self.wanted) > MAX_BITS else None
        bits = 0 if self._patterns else len(self.wanted)
        self._bits = {name: 2 << i for i, name in enumerate([*self.wanted][:bits])}
        self._hopeless = 2 << bits
        self._dtype = narrowest(2 * self._hopeless - 1)
        # What there has to be room for, and the bit of each: one pod, and each resource.
        self._least = _upright([1, *self.wanted.values()], np.int64)
        self._marks = _upright([1, *self._bits.values()], self._dtype)

    def codes(self, nodes: Snapshot) -> ReasonCodes:
        """Where and why the pod does not fit.

        Shapes: result unsigned (n,), uint8 for up to six resources.
        """
        if self._patterns is not None:
            shortages = ((self._missing(nodes, name), self._beyond(nodes, name)) for name in self.wanted)
            return self._patterns.codes(nodes.pod_count >= nodes.allowed_pods, shortages)
        indices = self._places(nodes)
        if indices is not None:
            return self._codes_of(self._room(nodes, indices), nodes.allocatable, indices)
        codes = self._marked(None, nodes.pod_count >= nodes.allowed_pods, 1)
        for name, bit in self._bits.items():
            missing = self._missing(nodes, name)
            marked = self._marked(codes, missing, bit)
            if marked is not codes:
                codes = self._marked(marked, missing & self._beyond(nodes, name), self._hopeless)
        return all_pass(len(nodes)) if codes is None else codes

    def code_of_row(self, nodes: Snapshot) -> Callable[[int], int] | None:
        """A function from a row of the whole snapshot to its code; None where a code is more than bits."""
        if self._patterns is not None or self._delegated:
            return None
        pods, allowed, hopeless = nodes.pod_count.data, nodes.allowed_pods.data, self._hopeless
        wanted = [
            (_columns(nodes, name)[0].data, nodes.held_on_rows(name), amount, self._bits[name])
            for name, amount in self.wanted.items()
        ]

        def code(row: int) -> int:
            found = 1 if pods[row] >= allowed[row] else 0
            for offered, held, amount, bit in wanted:
                there = offered[row]
                if there - held[row] < amount:
                    found |= bit | hopeless if there < amount else bit
            return found

        return code

    def codes_of_rows(self, nodes: Snapshot) -> Callable[[Rows], ReasonCodes] | None:
        """The same as a function of rows of the whole snapshot; None where there is none."""
        indices = self._places(nodes)
        if indices is None:
            return None

        def codes(rows: Rows) -> ReasonCodes:
            room = self._room(nodes, indices).take(rows, axis=1)
            return self._codes_of(room, nodes.allocatable, indices, rows)

        return codes

    def room(self, nodes: Snapshot, most: int) -> Ints | None:
        """How many such pods each node has room for, at most so many; None where devices serve some of it.

        Shapes: result int64 (n,).
        """
        if self._delegated:
            return None
        room: Ints = np.minimum(nodes.allowed_pods - nodes.pod_count, most)
        for name, amount in self.wanted.items():
            offered, used = _columns(nodes, name)
            np.minimum(room, (offered - used) // amount, out=room)
        return room

    def _missing(self, nodes: Snapshot, name: str) -> Mask:
        """Where there is too little of a resource. Shapes: result bool (n,)."""
        offered, used = _columns(nodes, name)
        missing: Mask = offered - used < self.wanted[name]
        if name in self._delegated:
            missing &= offered > 0
        return missing

    def _beyond(self, nodes: Snapshot, name: str) -> Mask:
        """Where the empty node offers too little of a resource. Shapes: result bool (n,)."""
        offered = nodes.offered(name)
        beyond: Mask = np.ones(len(nodes), dtype=bool) if offered is None else offered < self.wanted[name]
        return beyond

    def _places(self, nodes: Snapshot) -> list[int] | None:
        """Where the requested resources are in the columns; None unless all are, and no devices count."""
        if self._delegated or self._patterns is not None:
            return None
        indices = [i for i in map(nodes.resource_index, self.wanted) if i is not None]
        return indices if len(indices) == len(self.wanted) else None

    def _room(self, nodes: Snapshot, indices: list[int]) -> Ints:
        """How many pods more there is room for, and how much of each resource. Shapes: int64 (r + 1, n)."""
        key = TOO_MANY_PODS, *self.wanted
        return nodes.of_rows(key, partial(_room, indices), partial(_room_on_row, indices))

    def _codes_of(
        self, room: Ints, allocatable: Ints, indices: list[int], rows: Rows | None = None
    ) -> ReasonCodes:
        """Codes of nodes that have so much room.

        Shapes: room int64 (r + 1, k); rows intp (k,), those of allocatable that it is about, None for all.
        """
        short = room < self._least
        if not np.count_nonzero(short):
            return all_pass(room.shape[1]) if rows is None else np.zeros(rows.size, dtype=np.uint8)
        codes: ReasonCodes = np.add.reduce(short * self._marks, axis=0, dtype=self._dtype)
        offered = allocatable[indices] if rows is None else allocatable[indices].take(rows, axis=1)
        hopeless = short[1:] & (offered < self._least[1:])
        if np.count_nonzero(hopeless):
            codes |= np.logical_or.reduce(hopeless, axis=0) * self._dtype(self._hopeless)
        return codes

    def _marked(self, codes: ReasonCodes | None, where: Mask, bit: int) -> ReasonCodes | None:
        if not np.count_nonzero(where):
            return codes
        marks: ReasonCodes = where * self._dtype(bit)
        return marks if codes is None else codes | marks

    def reasons(self, code: int) -> tuple[tuple[str, ...], bool]:
        """The texts that a code stands for, and whether no removal of pods helps."""
        if self._patterns is not None:
            full, short, hopeless = self._patterns.pattern(code)
            reasons = (TOO_MANY_PODS,) if full else ()
            return (*reasons, *map(insufficient, short)), hopeless
        texts = [TOO_MANY_PODS] if code & 1 else []
        texts += [insufficient(name) for name, bit in self._bits.items() if code & bit]
        return tuple(texts), bool(code & self._hopeless)


def _room(indices: Sequence[int], nodes: Snapshot) -> Ints:
    room = np.empty((len(indices) + 1, len(nodes)), dtype=np.int64)
    np.subtract(nodes.allowed_pods, nodes.pod_count, out=room[0])
    for i, part in zip(indices, room[1:], strict=True):
        np.subtract(nodes.allocatable[i], nodes.requested[i], out=part)
    return room


def _room_on_row(indices: Sequence[int], nodes: Snapshot) -> Callable[[int], list[int]]:
    pairs = [(nodes.allowed_pods.data, nodes.pod_count.data)]
    pairs += [(nodes.allocatable[i].data, nodes.requested[i].data) for i in indices]
    return lambda row: [offered[row] - held[row] for offered, held in pairs]


def _upright(numbers: Sequence[int], kind: type[N]) -> NDArray[N]:
    """The numbers below each other. Shapes: result (len(numbers), 1)."""
    return np.array(numbers, dtype=kind)[:, np.newaxis]


def narrowest(highest: int) -> type[np.unsignedinteger[Any]]:
    """The smallest type of codes up to that number, which has at most `MAX_BITS` and 2 bits."""
    return next((kind for most, kind in CODE_TYPES if highest <= most), np.uint64)


def checked(requests: Mapping[str, int], ignored: IgnoredResources) -> Units:
    """The amounts that the filter looks at, what is requested and not ignored, in the order of reasons."""
    names = [name for name in ALWAYS_COUNTED if requests.get(name, 0) > 0]
    if len(names) < len(requests):
        asked = [name for name, amount in requests.items() if amount and name not in ALWAYS_COUNTED]
        names += sorted([name for name in asked if name not in ignored])
    return {name: requests[name] for name in names}


def insufficient(name: str) -> str:
    """The reason for too little of a resource."""
    return f"Insufficient {name}"


def fits_when_empty(
    requests: Mapping[str, int], node: NodeInfo, delegated: AbstractSet[str] = frozenset()
) -> bool:
    """Whether the pod would fit if it were the node's only one, nothing being ignored."""
    offers = node.allocatable
    return node.allowed_pods >= 1 and all(
        offers.get(name, 0) >= amount or (name in delegated and offers.get(name, 0) <= 0)
        for name, amount in checked(requests, NOTHING_IGNORED).items()
    )


def _columns(nodes: Snapshot, name: str) -> tuple[Ints, Ints]:
    offered = nodes.offered(name)
    if offered is None:
        nothing = np.broadcast_to(_NOTHING, (len(nodes),))
        return nothing, nothing
    return offered, nodes.held(name)
