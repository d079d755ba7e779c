"""Which waiting pods a plugin's hints cannot tell apart, so that one of them is asked for all.

A hint of this process reads the content of the waiting pod (objects/pod_content.py), what others wrote to its
status, and whether the event is about this pod itself, which the queue asks apart.
"""

from hashlib import blake2b

from berth.framework.queued_pod import QueuedPodInfo
from berth.objects.pod import Pod
from berth.objects.pod_content import content

DIGEST_BYTES = 32


def kind_of(record: QueuedPodInfo) -> tuple[bytes, frozenset[str]]:
    """The record's kind: its pod's content, and which of its rejectors left it pending."""
    if record.signature is None:
        record.signature = _signature(record.pod)
    return record.signature, frozenset(record.pending_plugins)


def _signature(pod: Pod) -> bytes:
    """A digest of the pod's content; for a pod like no other, its UID."""
    written = None if _has_status(pod) else content(pod)
    return blake2b(written, digest_size=DIGEST_BYTES).digest() if written is not None else pod.uid.encode()


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
