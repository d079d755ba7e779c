"""The messages of `kubectl drain` about the pods on the drained nodes.

Without the flags that these messages name it evicts nothing; a simulated drain has them. What a budget
refuses is tried again until it is allowed; in a simulation that is at once.

Source: staging/src/k8s.io/kubectl/pkg/drain/filters.go (Kubernetes v1.36),
    pkg/registry/core/pod/storage/eviction.go (the same).
"""

from collections.abc import Iterator
from typing import Final

from berth.objects.node import Node
from berth.objects.pods.node_pods import is_daemon, is_static
from berth.objects.pods.pod import Pod
from berth.objects.workloads import PodDisruptionBudget
from berth.simulation.cluster.disruption_budgets import Budgets
from berth.simulation.reading.inputs import ClusterInput

DAEMONS: Final = "DaemonSet-managed Pods (use --ignore-daemonsets to ignore)"
LOCAL_STORAGE: Final = "Pods with local storage (use --delete-emptydir-data to override)"
NO_CONTROLLER: Final = "Pods that declare no controller (use --force to override)"
OVER_BUDGET: Final = "Cannot evict pod as it would violate the pod's disruption budget."
SEVERAL_BUDGETS: Final = (
    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
)


def drain_messages(before: ClusterInput, then: ClusterInput) -> dict[str, list[str]]:
    """The pods of each message, where nodes of `before` are drained in `then`; no message without a pod.

    Cost: O(pods), and each budget of a namespace once for pods that are alike.
    """
    budgets = Budgets(before.of(PodDisruptionBudget).values())
    found: dict[str, list[str]] = {}
    for pod in _leaving(before, then):
        for message in _messages(pod, budgets):
            found.setdefault(message, []).append(pod.key)
    return found


def _leaving(before: ClusterInput, then: ClusterInput) -> Iterator[Pod]:
    """The pods that were on a node which is there and cordoned, and are not any more."""
    nodes, pods = then.of(Node), then.of(Pod)
    for key, pod in before.of(Pod).items():
        node, now = nodes.get(pod.node_name), pods.get(key)
        if node is not None and node.spec.unschedulable and (now is None or now.node_name != pod.node_name):
            yield pod


def _messages(pod: Pod, budgets: Budgets) -> Iterator[str]:
    if is_daemon(pod):
        yield DAEMONS
        return
    if is_static(pod):
        return
    if any("emptyDir" in volume for volume in pod.spec.volumes):
        yield LOCAL_STORAGE
    if not any(owner.controller for owner in pod.metadata.owner_references):
        yield NO_CONTROLLER
    if len(budgets.of(pod)) > 1:
        yield SEVERAL_BUDGETS
    elif budgets.why_not([pod]):
        yield OVER_BUDGET
    else:
        budgets.take(pod)
