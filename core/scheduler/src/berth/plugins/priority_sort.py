"""PrioritySort: higher priority first, then first come, first served.

Source: pkg/scheduler/framework/plugins/queuesort (Kubernetes v1.36).
"""

from berth.framework.interface import QueueSortPlugin
from berth.framework.queueing.queued_pod import QueuedPodInfo
from berth.plugins.in_tree import InTreePlugin


def priority_order(info: QueuedPodInfo) -> tuple[int, float]:
    """The order of PrioritySort as a value."""
    return -info.priority, info.timestamp


class PrioritySort(InTreePlugin, QueueSortPlugin):
    """Order pods by priority, equal ones by the time at which they were queued last."""

    def less(self, a: QueuedPodInfo, b: QueuedPodInfo) -> bool:
        """Whether `a` goes before `b`."""
        if a.priority != b.priority:
            return a.priority > b.priority
        return a.timestamp < b.timestamp

    def sort_key(self, info: QueuedPodInfo) -> tuple[int, float]:
        """The same order as a value, which the queue compares without calling back."""
        return priority_order(info)
