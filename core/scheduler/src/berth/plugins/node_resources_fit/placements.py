"""How full a part of the cluster would be with a pod group.

Source: pkg/scheduler/framework/plugins/noderesources/fit.go ScorePlacement (Kubernetes v1.36).
"""

from collections.abc import Mapping

from berth.framework.interface import MAX_NODE_SCORE
from berth.plugins.node_resources_fit.scoring import counts, usage
from berth.snapshot.columns.growing import Rows
from berth.snapshot.snapshot import Snapshot


def placement_score(
    nodes: Snapshot, rows: Rows, requests: Mapping[str, int], weights: tuple[tuple[str, int], ...]
) -> int:
    """The weighted mean over resources of what is used in percent, the placement taken as one big node.

    Shapes: rows intp (k,), of the snapshot.
    """
    total = weight_sum = 0
    for name, weight in weights:
        everywhere = nodes.offered(name) if counts(name, requests) else None
        if everywhere is None:
            continue
        offered = everywhere[rows]
        there = offered != 0
        capacity = int(offered[there].sum())
        if not capacity:
            continue
        used = int(usage(nodes, name)[rows][there].sum()) + requests.get(name, 0)
        total += weight * (min(used, capacity) * MAX_NODE_SCORE // capacity)
        weight_sum += weight
    return total // weight_sum if weight_sum else 0
