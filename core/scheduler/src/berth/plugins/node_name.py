"""NodeName: a pod that names its node fits nowhere else.

Source: pkg/scheduler/framework/plugins/nodename (Kubernetes v1.36).
"""

from collections.abc import Hashable

import numpy as np

from berth.framework.attempts.cycle_state import CycleState
from berth.framework.cluster_event import ActionType, ClusterEvent, ClusterEventWithHint, EventResource
from berth.framework.interface import Depends, EnqueueExtensions, FilterPlugin, Reason, ReasonCodes
from berth.framework.status import Code
from berth.objects.pods.pod import Pod
from berth.plugins.in_tree import InTreePlugin, all_pass
from berth.snapshot.snapshot import Snapshot


class NodeName(InTreePlugin, FilterPlugin, EnqueueExtensions):
    """Turn down every node but the one the pod names, if it names one."""

    depends = Depends.OBJECT
    reasons = (Reason("node(s) didn't match the requested node name", Code.UNSCHEDULABLE_AND_UNRESOLVABLE),)

    def filter(self, state: CycleState, pod: Pod, nodes: Snapshot) -> ReasonCodes:
        """Answer 1 for every other node."""
        del state
        if not pod.node_name:
            return all_pass(len(nodes))
        codes = np.ones(len(nodes), dtype=np.uint8)
        row = nodes.row_of.get(pod.node_name)
        if row is not None:
            codes[row] = 0
        return codes

    def sign_pod(self, pod: Pod) -> Hashable:
        """The node's name."""
        return pod.node_name

    def events_to_register(self) -> list[ClusterEventWithHint]:
        """Any node that comes."""
        return [ClusterEventWithHint(ClusterEvent(EventResource.NODE, ActionType.ADD))]
