"""Codes for pods that request more resources than a number has bits.

Each combination of reasons that comes up on some node has a number of its own, given out at its first sight.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from berth.framework.interface import ReasonCodes
from berth.snapshot.columns.growing import Mask

BYTE = 8


class Patterns:
    """The combinations of reasons that came up for one pod.

    The first two bits stand for too many pods and for a request that exceeds what the empty node offers, the
    others for the resources.
    """

    __slots__ = ("_names", "_numbers", "_patterns")

    def __init__(self, names: Iterable[str]) -> None:
        self._names: Sequence[str] = tuple(names)
        nothing = bytes((len(self._names) + 1) // BYTE + 1)
        self._numbers: dict[bytes, int] = {nothing: 0}
        self._patterns: list[bytes] = []

    def codes(self, full: Mask, shortages: Iterable[tuple[Mask, Mask]]) -> ReasonCodes:
        """The number of each node's combination, 0 where there is no reason.

        Shapes: full and both masks of each resource bool (n,); result uint32 (n,). Cost: a bit for each
            resource and node, a step in Python for each resource and for each node.
        """
        bits = np.zeros(((len(self._names) + 1) // BYTE + 1, full.size), dtype=np.uint8)
        bits[0] = full
        for i, (missing, beyond) in enumerate(shortages, 2):
            bits[i // BYTE] |= missing.astype(np.uint8) << i % BYTE
            bits[0] |= (missing & beyond).astype(np.uint8) << 1
        numbers = (self._number(pattern.tobytes()) for pattern in np.ascontiguousarray(bits.T))
        codes: ReasonCodes = np.fromiter(numbers, dtype=np.uint32, count=full.size)
        return codes

    def pattern(self, code: int) -> tuple[bool, list[str], bool]:
        """Whether there are too many pods, what falls short, and whether no removal of pods helps."""
        packed = np.frombuffer(self._patterns[code - 1], dtype=np.uint8)
        full, hopeless, *short = np.unpackbits(packed, bitorder="little").tolist()
        return (
            bool(full),
            [name for name, is_short in zip(self._names, short, strict=False) if is_short],
            bool(hopeless),
        )

    def _number(self, pattern: bytes) -> int:
        known = self._numbers.get(pattern)
        if known is None:
            self._patterns.append(pattern)
            known = self._numbers[pattern] = len(self._patterns)
        return known
