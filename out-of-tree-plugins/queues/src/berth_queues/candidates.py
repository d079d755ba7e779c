"""On which nodes evictions may make room, by why the scheduler's Filter plugins turned them down."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from enum import Enum, auto
from typing import Self

from berth_queues.admission import is_refusal
from berth_sdk import Code, Node, Nodes, Reason, Verdicts

_OF_RESOURCES = (
    "Insufficient ",
    "Too many pods",
    # Of gpu-share, whose shares are requests of a resource, too.
    "node(s) had no GPU with enough left for the share",
    "node(s) had too few unused GPUs",
)
_OF_DEVICES = "cannot allocate all claims"
"""Of DynamicResources: final for kube-scheduler's preemption, which leaves claims as they are."""


class _Lack(Enum):
    NOTHING = auto()
    DEVICES = auto()
    OTHER = auto()


@dataclass(frozen=True, slots=True)
class Candidates:
    """The nodes, and the names of those that have no devices left for the pod's claims."""

    nodes: Sequence[Node]
    without_devices: AbstractSet[str] = frozenset()

    @classmethod
    def of(cls, nodes: Nodes, verdicts: Verdicts) -> Self:
        """Return those turned down for a quota, or for resources or devices that pods use."""
        lacks = [_Lack.NOTHING, *map(_lack, verdicts.reasons)]
        there = [
            (node, lack)
            for node, code in zip(nodes, verdicts.codes.tolist(), strict=True)
            if (lack := lacks[code]) is not _Lack.OTHER
        ]
        without = frozenset(node.name for node, lack in there if lack is _Lack.DEVICES)
        return cls([node for node, _ in there], without)


def _lack(reason: Reason) -> _Lack:
    if reason.text == _OF_DEVICES:
        return _Lack.DEVICES
    of_resources = all(part.startswith(_OF_RESOURCES) for part in reason.text.split("; "))
    helps = is_refusal(reason.text) or (reason.code is Code.UNSCHEDULABLE and of_resources)
    return _Lack.NOTHING if helps else _Lack.OTHER
