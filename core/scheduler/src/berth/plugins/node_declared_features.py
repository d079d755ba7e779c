"""NodeDeclaredFeatures: some pods need a kubelet that says it can run them.

Source: pkg/scheduler/framework/plugins/nodedeclaredfeatures, component-helpers nodedeclaredfeatures
(Kubernetes v1.36).
"""

from collections.abc import Hashable
from typing import Any

import msgspec
import numpy as np

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
)
from berth.framework.status import SKIP, Code
from berth.objects.node import Node
from berth.objects.pods.pod import Pod
from berth.objects.pods.pod_features import PodFeature
from berth.plugins.in_tree import InTreePlugin, first_reason
from berth.plugins.queueing import expected, is_own, maybe, queue_if
from berth.snapshot.snapshot import Snapshot

RESTART_ALL_CONTAINERS = "RestartAllContainersOnContainerExits"
USER_NAMESPACES_HOST_NETWORK = "UserNamespacesHostNetworkSupport"

NODE_EVENTS = ClusterEvent(EventResource.NODE, ActionType.ADD | ActionType.UPDATE_NODE_DECLARED_FEATURE)


class RequiredFeatures(msgspec.Struct, frozen=True):
    """What a node has to declare."""

    names: frozenset[str]


class NodeDeclaredFeatures(InTreePlugin, PreFilterPlugin, FilterPlugin, EnqueueExtensions):
    """Turn down nodes that do not declare every feature that the pod needs."""

    depends = Depends.OBJECT
    concerns = frozenset({PodFeature.KUBELET})
    reasons = (Reason("node(s) didn't match Pod's required features", Code.UNSCHEDULABLE_AND_UNRESOLVABLE),)

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Snapshot) -> PreFilterResult:
        """Skip a pod that needs nothing."""
        del nodes
        names = required_features(pod)
        if not names:
            return PreFilterResult(SKIP)
        state.write(RequiredFeatures, RequiredFeatures(names))
        return PreFilterResult()

    def filter(self, state: CycleState, pod: Pod, nodes: Snapshot) -> ReasonCodes:
        """Answer 1 where a feature is not declared."""
        del pod
        lacking = np.zeros(len(nodes), dtype=bool)
        for name in state.read(RequiredFeatures).names:
            declared = nodes.declares(name)
            lacking |= True if declared is None else ~declared
        return first_reason(lacking)

    def sign_pod(self, pod: Pod) -> Hashable:
        """The features that the pod needs."""
        return required_features(pod)

    def events_to_register(self) -> list[ClusterEventWithHint]:
        """Nodes that come or declare something else, and a change of the pod itself."""
        return [
            ClusterEventWithHint(NODE_EVENTS, after_node_change),
            ClusterEventWithHint(ClusterEvent(EventResource.POD, ActionType.UPDATE), after_pod_update),
        ]


def required_features(pod: Pod) -> frozenset[str]:
    """The features without which the pod cannot run, as its spec shows."""
    spec, needed = pod.spec, set()
    rules = (rule for c in (*spec.containers, *spec.init_containers) for rule in c.restart_policy_rules)
    if any(rule.action == "RestartAllContainers" for rule in rules):
        needed.add(RESTART_ALL_CONTAINERS)
    if spec.host_network and spec.host_users is False:
        needed.add(USER_NAMESPACES_HOST_NETWORK)
    return frozenset(needed)


def after_node_change(pod: Pod, old: Any, new: Any) -> QueueingHint:
    """QUEUE for a new node, and where the list of features differs, whatever the pod needs."""
    del pod
    before, node = maybe(Node, old), expected(Node, new)
    return queue_if(before is None or before.status.declared_features != node.status.declared_features)


def after_pod_update(pod: Pod, old: Any, new: Any) -> QueueingHint:
    """QUEUE where the waiting pod itself now needs other features."""
    before, after = maybe(Pod, old), expected(Pod, new)
    if before is None or not is_own(pod, after):
        return QueueingHint.SKIP
    return queue_if(required_features(before) != required_features(after))
