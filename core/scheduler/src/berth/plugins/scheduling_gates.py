"""SchedulingGates: keep pods with scheduling gates out of the queue.

Source: pkg/scheduler/framework/plugins/schedulinggates (Kubernetes v1.36).
"""

from berth.framework.cluster_event import ActionType, ClusterEvent, ClusterEventWithHint, EventResource
from berth.framework.interface import EnqueueExtensions, PreEnqueuePlugin
from berth.framework.status import SUCCESS, Status, unresolvable
from berth.objects.pods.pod import Pod
from berth.plugins.in_tree import InTreePlugin
from berth.plugins.queueing import of_own_pod

GATES_GONE = ClusterEvent(EventResource.POD, ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)


class SchedulingGates(InTreePlugin, PreEnqueuePlugin, EnqueueExtensions):
    """Hold a pod back while it has gates."""

    def pre_enqueue(self, pod: Pod) -> Status:
        """Turn down a pod with gates, naming them in order."""
        gates = pod.spec.scheduling_gates
        if not gates:
            return SUCCESS
        return unresolvable(f"waiting for scheduling gates: [{' '.join(gate.name for gate in gates)}]")

    def events_to_register(self) -> list[ClusterEventWithHint]:
        """The pod's own last gate going."""
        return [ClusterEventWithHint(GATES_GONE, of_own_pod)]
