"""All nodes of a generation, as a function that answers for them sees them."""

import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import overload

import numpy as np
from numpy.typing import NDArray

from berth_sdk.errors import ContractError
from berth_sdk.objects import Node
from berth_sdk.outcomes import Reason, Verdicts
from berth_sdk.packing import numbered
from berth_sdk.state import Mirror, ObjectKey, PlacedPod


class Nodes(Sequence[Node]):
    """All nodes of the generation that a call is about, by index.

    The answer to the call has an entry for each node, or, where the host listed its candidates, for each of
    the indices `listed`. Of the entries those in `wanted` matter to the host; None means all.
    Shapes: listed integers (m,), ascending; wanted bool (n,), or (m,) if there is a list.
    """

    __slots__ = ("_candidates", "listed", "mirror", "wanted")

    def __init__(
        self,
        mirror: Mirror,
        wanted: NDArray[np.bool_] | None = None,
        listed: NDArray[np.integer] | None = None,
    ) -> None:
        self.mirror, self.wanted, self.listed = mirror, wanted, listed
        self._candidates = wanted if listed is None else None

    def __len__(self) -> int:
        return len(self.mirror.nodes)

    @overload
    def __getitem__(self, index: int) -> Node: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Node]: ...
    def __getitem__(self, index: int | slice) -> Node | Sequence[Node]:
        return self.mirror.nodes[index]

    @property
    def candidates(self) -> NDArray[np.bool_] | None:
        """The nodes that matter to the caller; None means all.

        Shapes: bool (n,).
        """
        # Made when it is first looked at: a function that is asked node by node needs no vector over all.
        if self._candidates is None and self.listed is not None:
            self._candidates = np.zeros(len(self), np.bool_)
            self._candidates[self._indices(self.listed)] = True
        return self._candidates

    def asked(self) -> Iterable[tuple[int, Node]]:
        """Yield the candidates with their indices: often fewer than all nodes.

        A vector has an entry for each node all the same: make it with `verdicts` or `scores`, or write the
        entry at the index.
        """
        if self.listed is None:
            return self.entries()
        indices = self._indices(self.listed).tolist()
        return zip(indices, map(self.mirror.nodes.__getitem__, indices), strict=True)

    def is_asked(self, index: int) -> bool:
        """Return whether the answer for that node matters."""
        return self.candidates is None or bool(self.candidates[index])

    def verdicts(self, reject: Callable[[int, Node], Reason | str | None]) -> Verdicts:
        """Return the answer of `filter_nodes`: why a node is turned down, None where it passes."""
        codes, table = np.zeros(len(self), np.uint8), dict[Reason, int]()
        for index, node in self.asked():
            if (reason := reject(index, node)) is not None:
                codes[index] = numbered(table, reason)
        return Verdicts(codes, tuple(table))

    def scores(self, score: Callable[[int, Node], int]) -> NDArray[np.int64]:
        """Return the answer of `score_nodes`: the score of each node that is asked about.

        Shapes: result int64 (n,). Raises: ContractError: one of them is no integer of 64 bits.
        """
        points = np.zeros(len(self), np.int64)
        for index, node in self.asked():
            answer = score(index, node)
            try:
                points[index] = operator.index(answer)
            except (TypeError, OverflowError):
                raise ContractError(f"a score is an integer of 64 bits, not {answer!r}") from None
        return points

    def entries(self) -> Iterable[tuple[int, Node]]:
        """Yield the candidates with the numbers of their entries in the answer."""
        nodes, listed, wanted = self.mirror.nodes, self.listed, self.wanted
        if listed is None and wanted is None:
            return enumerate(nodes)
        numbers = range(self.entry_count) if wanted is None else np.flatnonzero(wanted).tolist()
        indices = numbers if listed is None else self._indices(listed).tolist()
        # A map over the list's own method: a generator would cost each node another Python frame.
        return zip(numbers, map(nodes.__getitem__, indices), strict=True)

    @property
    def entry_count(self) -> int:
        """The length of the answer's vectors."""
        return len(self.mirror.nodes) if self.listed is None else len(self.listed)

    @property
    def wanted_count(self) -> int:
        """How many candidates there are."""
        if self.wanted is not None:
            return int(np.count_nonzero(self.wanted))
        return len(self.mirror.nodes if self.listed is None else self.listed)

    @property
    def all_ruled_out(self) -> bool:
        """Whether candidates were given, and none of them is left."""
        given = self.wanted is not None or self.listed is not None
        return given and not self.wanted_count

    def those(self, wanted: NDArray[np.bool_]) -> "Nodes":
        """Return the same nodes with the candidates that are in this mask too.

        Shapes: wanted as the answer's vectors.
        """
        both = wanted if self.wanted is None else wanted & self.wanted
        return Nodes(self.mirror, both, self.listed)

    def kept(self) -> "Nodes":
        """Return the same nodes at the same indices for good; the pods on them go on changing."""
        mirror = replace(self.mirror, nodes=list(self.mirror.nodes))
        return Nodes(mirror, self.wanted, self.listed)

    def _indices(self, listed: NDArray[np.integer]) -> NDArray[np.integer]:
        return listed if self.wanted is None else listed[self.wanted]

    def pods_on(self, node_name: str) -> Mapping[str, PlacedPod]:
        """Return the pods that count on a node, by UID."""
        return MappingProxyType(self.mirror.on_node.get(node_name, {}))

    @property
    def objects(self) -> Mapping[ObjectKey, bytes]:
        """Return the watched objects as JSON."""
        return MappingProxyType(self.mirror.objects)
