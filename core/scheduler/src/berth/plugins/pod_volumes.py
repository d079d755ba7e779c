"""What the volume plugins share: upstream's texts, hints about claims, the signature of volumes."""

from collections.abc import Hashable
from functools import partial
from typing import Any

import msgspec

from berth.framework.cluster_event import ConcernedPods, QueueingHint
from berth.objects.api_object import ObjectMeta
from berth.objects.pods.pod import Pod
from berth.objects.pods.pod_template import PodTemplate
from berth.objects.pods.pod_volumes import (
    claim_names,
    claim_use,
    claim_uses,
    has_disks,
    lasting_sources,
    uses_claim,
)
from berth.objects.volumes.csi_migration import migration_of
from berth.objects.volumes.storage import PersistentVolumeClaim
from berth.plugins.queueing import NarrowHint, expected, queue_if


def claim_not_found(name: str) -> str:
    """What upstream's lister says of a claim that is not there."""
    return f'persistentvolumeclaim "{name}" not found'


def volumes_signature(pod: Pod) -> Hashable:
    """The pod's volumes but for those made of config maps and secrets, and whose claims they name.

    Worked out once for all plugins and pods of a template, unless claims bear the pods' names.
    """
    template = pod.template
    return _signature(pod) if template.has_ephemeral_claims else template.derived(_signature_of_template)


def _signature_of_template(template: PodTemplate) -> Hashable:
    metadata = ObjectMeta(
        namespace=template.namespace, labels=template.labels, owner_references=template.owner_references
    )
    return _signature(Pod(metadata=metadata, template=template))


def _signature(pod: Pod) -> Hashable:
    sources = lasting_sources(pod)
    if not sources:
        return ()
    claims = tuple(sorted(set(claim_uses(pod))))
    return claims, tuple(sorted(msgspec.json.encode(source, order="sorted") for source in sources))


def volumes_cache_key(pod: Pod) -> Hashable | None:
    """Nothing for pods that no volume ties to anything; for others claims, volumes and classes count, too."""
    tied = has_disks(pod) or any(claim_use(pod, v) or migration_of(v) for v in pod.spec.volumes)
    return None if tied else ()


def concerned_by_claim(old: Any, new: Any) -> ConcernedPods:
    """Pods that name the claim, and the pod that it was made for: it is of no use to others."""
    del old
    claim = expected(PersistentVolumeClaim, new)
    owner = next((each for each in claim.metadata.owner_references if each.controller), None)
    key = "" if owner is None else f"{claim.namespace}/{owner.name}"
    return ConcernedPods(key, partial(_name_claim, claim))


def _name_claim(claim: PersistentVolumeClaim, template: PodTemplate) -> bool:
    return template.namespace == claim.namespace and claim.name in template.derived(claim_names)


def after_named_claim(pod: Pod, old: Any, new: Any) -> QueueingHint:
    """QUEUE where one of the pod's volumes names the claim itself."""
    del old
    claim = expected(PersistentVolumeClaim, new)
    return queue_if(_name_claim(claim, pod.template))


def after_used_claim(pod: Pod, old: Any, new: Any) -> QueueingHint:
    """QUEUE where one of the pod's volumes uses the claim, be it one made for the pod."""
    del old
    claim = expected(PersistentVolumeClaim, new)
    return queue_if(claim.namespace == pod.namespace and uses_claim(pod, claim.name))


NAMED_CLAIM = NarrowHint(after_named_claim, concerned_by_claim)
USED_CLAIM = NarrowHint(after_used_claim, concerned_by_claim)
