"""What one update of the snapshot changed, for the copies of it that sidecars keep."""

import msgspec

from berth.objects.node import Node
from berth.snapshot.pod_info import PodInfo


class SnapshotStep(msgspec.Struct, frozen=True):
    """The changes that lead to `generation`, to be followed in the order of the fields.

    Each dropped node's row is filled with the last row at that moment; nodes that are new are appended in
    order. A pod that changed is removed and added. Pods may name nodes that have no row.
    """

    generation: int
    dropped: tuple[str, ...]
    nodes: tuple[Node, ...]
    pods: tuple[tuple[int, PodInfo], ...]
    """(1, pod) for a pod that came to a node, (-1, pod) for one that left."""
