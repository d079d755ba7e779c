"""What pods of one workload have in common: all that a plugin may read of a pod but its name and its status.

Called by: the signatures of equal pods, and the queue, whose plugins are asked once for pods that wait alike.
"""

import msgspec

from berth.objects.pod import Pod
from berth.objects.pod_volumes import claim_use, lasting_sources

encode = msgspec.json.Encoder().encode


def content(pod: Pod) -> bytes | None:
    """The pod's content, written the same for equal pods; None where its name is a part of it."""
    metadata, spec = pod.metadata, pod.spec
    volumes: list[object] = []
    if spec.volumes:
        if any(use is not None and use.ephemeral for use in (claim_use(pod, v) for v in spec.volumes)):
            return None
        volumes = list(lasting_sources(pod))
        spec = msgspec.structs.replace(spec, volumes=())
    return encode(
        (metadata.namespace, metadata.labels, metadata.annotations, metadata.owner_references, spec, volumes)
    )
