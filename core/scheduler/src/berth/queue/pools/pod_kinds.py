"""Which waiting pods a plugin's hints cannot tell apart, so that one of them is asked for all.

A hint of this process reads what the waiting pod's template has (objects/pods/pod_template.py), what others
wrote to its status, and whether the event is about this pod itself, which the queue asks apart.
"""

from berth.framework.queueing.queued_pod import QueuedGroupInfo, QueuedPodInfo
from berth.objects.pods.pod import Pod
from berth.objects.pods.pod_template import PodTemplate


def kind_of(record: QueuedPodInfo) -> tuple[PodTemplate | str, frozenset[str]]:
    """The record's kind: its pod's template, and which of its rejectors left it pending.

    A pod like no other has its UID in place of the template, and a group of pods its key.
    """
    if isinstance(record, QueuedGroupInfo):
        return record.key, frozenset()
    return like(record.pod), frozenset(record.pending_plugins)


def like(pod: Pod) -> PodTemplate | str:
    """What pods have in common that no plugin of this process distinguishes: a template, or one pod's UID."""
    like_others = not (pod.template.has_ephemeral_claims or _has_status(pod))
    return pod.template if like_others else pod.uid


def _has_status(pod: Pod) -> bool:
    """Whether the status holds more than a pod has that never ran: claims made for it, or its containers."""
    status = pod.status
    return bool(
        status.container_statuses
        or status.init_container_statuses
        or status.resources is not None
        or status.allocated_resources is not None
        or status.resource_claim_statuses
        or status.extended_resource_claim_status is not None
    )
