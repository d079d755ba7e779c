"""QueueSort of a sidecar: pods are ordered by its keys, and by PrioritySort where keys are equal.

Keys are stored in the queue, so that comparing two pods takes no call; they are requested and changed
asynchronously (`sort_key_asker.py`).

Source: docs/protocol.md "Queue order".
"""

from collections.abc import Awaitable
from typing import Any

from berth.evaluation.caching.plugin_columns import PluginColumns
from berth.framework.handle import Handle
from berth.framework.interface import KeyedQueueSortPlugin
from berth.framework.queueing.queued_pod import QueuedPodInfo, SortKey
from berth.objects.pods.pod import Pod
from berth.out_of_tree.calls import Caller
from berth.out_of_tree.points.asking_ahead import LookAhead
from berth.out_of_tree.points.sidecar_point import SidecarPoint
from berth.out_of_tree.queueing.sort_key_asker import SortKeyAsker
from berth.plugins.priority_sort import priority_order


class QueueSortPoint(SidecarPoint, KeyedQueueSortPlugin):
    """QueueSort."""

    def __init__(self, caller: Caller, handle: Handle, look_ahead: LookAhead, cached: PluginColumns) -> None:
        super().__init__(caller, handle, look_ahead, cached)
        self.keys = SortKeyAsker(lambda: self.caller)

    def less(self, a: QueuedPodInfo, b: QueuedPodInfo) -> bool:
        """Whether `a` goes before `b`."""
        return self.sort_key(a) < self.sort_key(b)

    def sort_key(self, info: QueuedPodInfo) -> tuple[Any, ...]:
        """The plugin's key, and the order among pods of an equal key."""
        return info.sort_key, *priority_order(info)

    def key_of(self, pod: Pod) -> Awaitable[SortKey]:
        """The pod's key, requested together with those of other pods; NO_KEY where that takes too long."""
        return self.keys.key_of(pod)

    def left(self, uid: str) -> None:
        """The pod left the queue."""
        self.keys.left(uid)
