"""NodePorts: two pods cannot claim one host port.

Source: pkg/scheduler/framework/plugins/nodeports (Kubernetes v1.36).
"""

from collections.abc import Hashable
from typing import Any

import msgspec

from berth.framework.attempts.cycle_state import CycleState
from berth.framework.cluster_event import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
)
from berth.framework.interface import (
    Depends,
    EnqueueExtensions,
    FilterPlugin,
    PreFilterPlugin,
    PreFilterResult,
    Reason,
    ReasonCodes,
    RowForm,
)
from berth.framework.status import SKIP
from berth.objects.pods.host_ports import HostPort, HostPorts, host_ports
from berth.objects.pods.pod import Pod
from berth.objects.pods.pod_features import PodFeature
from berth.plugins.in_tree import InTreePlugin, all_pass, first_reason
from berth.plugins.queueing import expected, queue_if, unplaced
from berth.snapshot.snapshot import Snapshot


class WantedPorts(msgspec.Struct, frozen=True):
    """The host ports that the pod claims."""

    ports: tuple[HostPort, ...]


class NodePorts(InTreePlugin, PreFilterPlugin, FilterPlugin, EnqueueExtensions):
    """Turn down nodes where a wanted host port is taken."""

    depends = Depends.NODE
    concerns = frozenset({PodFeature.HOST_PORTS})
    reasons = (Reason("node(s) didn't have free ports for the requested pod ports"),)

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Snapshot) -> PreFilterResult:
        """Collect the ports; without any there is nothing to filter."""
        del nodes
        ports = host_ports(pod)
        if not ports:
            return PreFilterResult(SKIP)
        state.write(WantedPorts, WantedPorts(ports))
        return PreFilterResult()

    def filter(self, state: CycleState, pod: Pod, nodes: Snapshot) -> ReasonCodes:
        """Answer 1 where one of the ports is taken."""
        del pod
        taken = nodes.port_conflicts(state.read(WantedPorts).ports)
        return all_pass(len(nodes)) if taken is None else first_reason(taken)

    def filter_by_row(self, state: CycleState, pod: Pod, nodes: Snapshot) -> RowForm[ReasonCodes]:
        """The same for one row, from the ports that are taken there."""
        del pod
        conflicting = HostPorts(state.read(WantedPorts).ports).conflicting
        return RowForm(lambda row: int(any(map(conflicting, nodes.ports_on(row)))))

    def room(self, state: CycleState, pod: Pod, nodes: Snapshot, most: int) -> int:
        """One pod that claims these ports."""
        del state, pod, nodes
        return min(1, most)

    def sign_pod(self, pod: Pod) -> Hashable:
        """The distinct ports, in any order."""
        return frozenset(host_ports(pod))

    def events_to_register(self) -> list[ClusterEventWithHint]:
        """Pods that leave a port free, and nodes that come."""
        return [
            ClusterEventWithHint(ClusterEvent(EventResource.POD, ActionType.DELETE), after_pod_deletion),
            ClusterEventWithHint(ClusterEvent(EventResource.NODE, ActionType.ADD)),
        ]


def after_pod_deletion(pod: Pod, old: Any, new: Any) -> QueueingHint:
    """QUEUE where the deleted pod held a port that the waiting one wants."""
    del new
    deleted = expected(Pod, old)
    if unplaced(deleted):
        return QueueingHint.SKIP
    wanted = HostPorts(host_ports(pod))
    return queue_if(any(wanted.conflicting(freed) for freed in host_ports(deleted)))
