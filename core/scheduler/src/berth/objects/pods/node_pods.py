"""Pods that belong to the node that they run on: a DaemonSet's, and static ones.

Such a pod does not go to another node when its own is drained, and a node with no other pods is empty.
"""

from typing import Final

from berth.objects.pods.pod import Pod

MIRROR: Final = "kubernetes.io/config.mirror"
SOURCE: Final = "kubernetes.io/config.source"


def is_static(pod: Pod) -> bool:
    """Whether the kubelet runs the pod from a file of its own."""
    annotations = pod.metadata.annotations
    return MIRROR in annotations or annotations.get(SOURCE, "api") != "api"


def is_daemon(pod: Pod) -> bool:
    """Whether a DaemonSet owns the pod."""
    return any(owner.kind == "DaemonSet" for owner in pod.metadata.owner_references)


def belongs_to_node(pod: Pod) -> bool:
    """Whether the pod ends with its node, as the cluster autoscaler and `kubectl drain` see it."""
    return is_daemon(pod) or is_static(pod)
