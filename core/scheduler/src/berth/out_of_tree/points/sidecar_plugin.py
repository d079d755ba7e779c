"""A sidecar as a plugin of a profile: all extension points, each group in a module of its own.

    pre_enqueue.py   PreEnqueue, EventsToRegister
    queue_sort.py    QueueSort
    filter_score.py  Filter, Score, NormalizeScore; overlays.py for nodes with simulated pods
    post_filter.py   PostFilter
    placement.py     PlacementGenerate, PlacementScore
    group_points.py  PlacementFeasible, PodGroupPostFilter
    reserve_bind.py  Reserve, Permit, PreBind, Bind, PostBind

Source: docs/protocol.md.
"""

from berth.out_of_tree.points.filter_score import FilterScorePoint
from berth.out_of_tree.points.group_points import GroupPoints
from berth.out_of_tree.points.placement import PlacementPoint
from berth.out_of_tree.points.post_filter import PostFilterPoint
from berth.out_of_tree.points.pre_enqueue import PreEnqueuePoint
from berth.out_of_tree.points.queue_sort import QueueSortPoint
from berth.out_of_tree.points.reserve_bind import ReserveBindPoint


class SidecarPlugin(
    PreEnqueuePoint,
    FilterScorePoint,
    PostFilterPoint,
    PlacementPoint,
    GroupPoints,
    ReserveBindPoint,
    QueueSortPoint,
):
    """One sidecar in one profile; it is called at the extension points that it announced."""
