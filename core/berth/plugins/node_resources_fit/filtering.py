"""Whether a pod's request fits on nodes.

A code is a sum of bits: 1 for too many pods, then one for each resource that the pod requests, and the
highest for a request that exceeds what the node offers when it is empty. Where a pod requests more resources
than a number has bits, its codes number the sums that came up (`patterns.py`).
"""

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from berth.framework.interface import ReasonCodes
from berth.objects.pod_requests import Units
from berth.objects.resource_names import CPU, EPHEMERAL_STORAGE, MEMORY, is_extended
from berth.plugins.in_tree import all_pass
from berth.plugins.node_resources_fit.patterns import Patterns
from berth.snapshot.columns import Ints, Mask
from berth.snapshot.node_info import NodeInfo
from berth.snapshot.snapshot import Snapshot

N = TypeVar("N", bound=np.integer[Any])

TOO_MANY_PODS = "Too many pods"
FEW = 64
MOST_BITS = 62
ALWAYS_COUNTED = (CPU, MEMORY, EPHEMERAL_STORAGE)
_NOTHING = np.zeros(1, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class IgnoredResources:
    """Extended resources that this plugin does not check, by name or by the part before the slash."""

    names: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()

    def __contains__(self, name: str) -> bool:
        return is_extended(name) and (name in self.names or name.split("/", 1)[0] in self.groups)


class Fit:
    """One pod's request, asked of nodes.

    Of `delegated` resources, which devices stand behind, only nodes that offer some themselves are asked.
    """

    __slots__ = (
        "_bits",
        "_delegated",
        "_dtype",
        "_hopeless",
        "_patterns",
        "_side_by_side",
        "wanted",
    )

    def __init__(
        self,
        requests: Mapping[str, int],
        ignored: IgnoredResources = IgnoredResources(),
        delegated: AbstractSet[str] = frozenset(),
    ) -> None:
        self._delegated = delegated
        self.wanted = checked(requests, ignored)
        self._patterns = Patterns(self.wanted) if len(self.wanted) > MOST_BITS else None
        bits = 0 if self._patterns else len(self.wanted)
        self._bits = {name: 2 << i for i, name in enumerate([*self.wanted][:bits])}
        self._hopeless = 2 << bits
        self._dtype = narrowest(2 * self._hopeless - 1)
        self._side_by_side: tuple[Ints, ReasonCodes] | None = None

    def codes(self, nodes: Snapshot) -> ReasonCodes:
        """Where and why the pod does not fit.

        Shapes: result unsigned (n,), uint8 for up to six resources.
        """
        if self._patterns is not None:
            shortages = ((self._missing(nodes, name), self._beyond(nodes, name)) for name in self.wanted)
            return self._patterns.codes(nodes.pod_count >= nodes.allowed_pods, shortages)
        if len(nodes) <= FEW and not self._delegated:
            indices = [i for i in map(nodes.resource_index, self.wanted) if i is not None]
            if len(indices) == len(self.wanted):
                return self._all_at_once(nodes, indices)
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

    def _all_at_once(self, nodes: Snapshot, indices: list[int]) -> ReasonCodes:
        """The same in fewer steps, for tables in which a step costs more than its arithmetic."""
        if self._side_by_side is None:
            self._side_by_side = (
                _upright([*self.wanted.values()], np.int64),
                _upright([*self._bits.values()], self._dtype),
            )
        amounts, bits = self._side_by_side
        offered = nodes.allocatable[indices]
        missing = offered - nodes.requested[indices] < amounts
        full = nodes.pod_count >= nodes.allowed_pods
        if not (np.count_nonzero(missing) or np.count_nonzero(full)):
            return all_pass(len(nodes))
        codes: ReasonCodes = np.add.reduce(missing * bits, axis=0, dtype=self._dtype)
        codes |= full
        hopeless = missing & (offered < amounts)
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


def _upright(numbers: Sequence[int], kind: type[N]) -> NDArray[N]:
    """The numbers below each other. Shapes: result (len(numbers), 1)."""
    return np.array(numbers, dtype=kind)[:, np.newaxis]


def narrowest(highest: int) -> type[np.unsignedinteger[Any]]:
    """The smallest type of codes up to that number, which has at most `MOST_BITS` and 2 bits."""
    kinds = (np.uint8, np.uint16, np.uint32)
    return next((kind for kind in kinds if highest <= np.iinfo(kind).max), np.uint64)


def checked(requests: Mapping[str, int], ignored: IgnoredResources) -> Units:
    """The amounts that the filter looks at, what is requested and not ignored, in the order of reasons."""
    names = [name for name in ALWAYS_COUNTED if requests.get(name, 0) > 0]
    if len(names) < len(requests):
        others = sorted(requests.keys() - ALWAYS_COUNTED)
        names += [name for name in others if requests[name] and name not in ignored]
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
        for name, amount in checked(requests, IgnoredResources()).items()
    )


def _columns(nodes: Snapshot, name: str) -> tuple[Ints, Ints]:
    offered = nodes.offered(name)
    if offered is None:
        nothing = np.broadcast_to(_NOTHING, (len(nodes),))
        return nothing, nothing
    return offered, nodes.held(name)
