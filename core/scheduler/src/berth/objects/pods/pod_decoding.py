"""Pods from the API server's JSON: what is a pod's own is decoded, for the rest its template is looked up.

Most pods are written like another one. Of those, the bytes that make the template are hashed instead of
decoded; the first pod of a template is decoded in full.
"""

from datetime import datetime
from hashlib import sha256
from threading import Lock
from typing import Any
from weakref import ref

import msgspec

from berth.objects.api_object import ApiObject, Int64, ObjectMeta, ShortText
from berth.objects.decode import decoder, from_document
from berth.objects.pods.pod import NO_STATUS, Pod, PodCondition, PodObject, PodStatus
from berth.objects.pods.pod_requests import resized
from berth.objects.pods.pod_spec import PodSpec
from berth.objects.pods.pod_template import TOKEN_VOLUME, PodTemplate, interned
from berth.objects.shared_texts import SharedTexts

NOTHING = msgspec.Raw()

PodSpecBytes: Any = msgspec.defstruct(
    "PodSpecBytes",
    [("node_name", ShortText, "")]
    + [(name, msgspec.Raw, NOTHING) for name in PodSpec.__struct_fields__ if name != "node_name"],
    rename="camel",
    frozen=True,
    gc=False,
)
"""The spec, each field but the node's name as it is written."""


class _OwnMeta(ApiObject, frozen=True):
    name: ShortText = ""
    namespace: ShortText = ""
    uid: ShortText = ""
    resource_version: ShortText = ""
    generation: Int64 = 0
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    labels: msgspec.Raw = NOTHING
    annotations: msgspec.Raw = NOTHING
    owner_references: msgspec.Raw = NOTHING


class _OwnPod(ApiObject, frozen=True):
    metadata: _OwnMeta = _OwnMeta()
    spec: PodSpecBytes = PodSpecBytes()
    status: msgspec.Raw = NOTHING


class _PlacedStatus(PodStatus, frozen=True):
    """The status of a pod on a node; of its conditions three fields do."""

    conditions: tuple["_PlacedCondition", ...] = ()  # type: ignore[assignment]


class _PlacedCondition(ApiObject, frozen=True):
    type: str = ""
    status: str = ""
    reason: str = ""


_decode_own = msgspec.json.Decoder(_OwnPod).decode
_decode_whole = decoder(PodObject, "Pod")
_decode_status = msgspec.json.Decoder(PodStatus).decode
_decode_placed_status = msgspec.json.Decoder(_PlacedStatus).decode
_decode_labels = msgspec.json.Decoder(dict[str, str]).decode

# The volume of the pod's token and its mounts bear a name of chance, which nothing reads.
_TOKEN = f'"{TOKEN_VOLUME}-'.encode()
_CHANCE = 5
_NAMED = b'{"name":'
_TOKEN_FIELDS = (
    b',"projected":',
    b',"readOnly":true,"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}',
)

MAX_KNOWN = 8192
"""How many ways to write templates are remembered; pods may differ in bytes that nothing reads."""
LARGEST_SHARED_BYTES = 1024
"""Annotations up to this size are shared by pods of a template."""
NO_ANNOTATIONS: dict[str, str] = {}
ASKED_OF_PLACED_PODS = frozenset({"DisruptionTarget", "PodResizePending"})
"""Conditions that matter on a node: that the pod leaves for another one, and that its resize fails."""

PHASES = ("Pending", "Running", "Succeeded", "Failed", "Unknown")
_OF_PHASE = {phase: PodStatus(phase) for phase in PHASES}

_known: dict[bytes, "ref[PodTemplate]"] = {}
_remembering = Lock()
_node_name = SharedTexts()


def decode_pod(data: bytes | msgspec.Raw) -> Pod:
    """The pod of that JSON.

    Raises: UndecodableObjectError.
    """
    try:
        own = _decode_own(data)
        template = _template(own, data)
        return _placed(own, template) if own.spec.node_name else _waiting(own, template)
    except msgspec.MsgspecError:
        return _as_written(_decode_whole(data))


def pod_from_document(document: Any) -> Pod:
    """The pod of a parsed JSON or YAML document.

    Raises: UndecodableObjectError.
    """
    return _as_written(from_document(document, PodObject, "Pod"))


def _as_written(pod: PodObject) -> Pod:
    return Pod.of(pod.metadata, pod.spec, pod.status)


def _waiting(own: _OwnPod, template: PodTemplate) -> Pod:
    status = _decode_status(own.status) if own.status != NOTHING else NO_STATUS
    return Pod(metadata=_metadata(own.metadata, template), template=template, status=status)


def _placed(own: _OwnPod, template: PodTemplate) -> Pod:
    """The pod with what is still asked of it on a node: there are many of these, and they stay."""
    status = NO_STATUS if own.status == NOTHING else _decode_placed_status(own.status)
    return Pod(
        metadata=_metadata(own.metadata, template),
        template=template,
        node_name=_node_name(own.spec.node_name),
        status=_as_asked(status, template.spec),
        start_time=status.start_time,
    )


def _as_asked(status: PodStatus, spec: PodSpec) -> PodStatus:
    """The status without what only waiting pods are asked for, and without sizes that the spec says, too.

    Nearly all placed pods have nothing left but their phase, and share the status of that phase.
    """
    of_phase = _OF_PHASE.get(status.phase, NO_STATUS)
    asked = [each for each in status.conditions if each.type in ASKED_OF_PLACED_PODS]
    own = PodStatus(
        of_phase.phase or status.phase,
        tuple([PodCondition(each.type, each.status, each.reason) for each in asked]) if asked else (),
        status.nominated_node_name,
        None,
        resized(status.container_statuses, spec.containers),
        resized(status.init_container_statuses, spec.init_containers),
        status.resources,
        status.allocated_resources,
        status.resource_claim_statuses,
        status.extended_resource_claim_status,
    )
    return of_phase if own == of_phase else own


def _metadata(meta: _OwnMeta, template: PodTemplate) -> ObjectMeta:
    return ObjectMeta(
        meta.name,
        template.namespace,
        meta.uid,
        meta.resource_version,
        meta.generation,
        template.labels,
        _annotations(meta.annotations, template),
        meta.creation_timestamp,
        meta.deletion_timestamp,
        template.owner_references,
    )


def _annotations(written: msgspec.Raw, template: PodTemplate) -> dict[str, str]:
    """The annotations, one object for pods that are annotated like the last one of their template."""
    if written == NOTHING:
        return NO_ANNOTATIONS
    last, text = template.last_annotations, bytes(written)
    if last is not None and last[0] == text:
        return last[1]
    annotations = _decode_labels(text)
    if len(text) <= LARGEST_SHARED_BYTES:
        template.last_annotations = text, annotations
    return annotations


def _template(own: _OwnPod, data: bytes | msgspec.Raw) -> PodTemplate:
    """The pod's template, found by the bytes that it is made of."""
    digest = _digest(own)
    reference = _known.get(digest)
    template = reference() if reference is not None else None
    if template is None:
        whole = _decode_whole(data)
        meta = whole.metadata
        template = interned(meta.namespace, meta.labels, meta.owner_references, whole.spec)
        _remember(digest, template)
    return template


def _digest(own: _OwnPod) -> bytes:
    meta = own.metadata
    _, *spec = msgspec.structs.astuple(own.spec)
    # No byte 0 is in JSON: it parts the fields, each of which has its place.
    written = b"\0".join((meta.namespace.encode(), meta.labels, meta.owner_references, *spec))
    start = written.find(_TOKEN)
    if start >= 0:
        written = _without_chance(written, written[start : start + len(_TOKEN) + _CHANCE + 1])
    # A third of the time where no provider for security is looked for.
    return sha256(written, usedforsecurity=False).digest()


def _without_chance(written: bytes, name: bytes) -> bytes:
    """The bytes without the name (in its quotes) of the token's volume, if they have it nowhere else.

    Quotes within strings are escaped, so the name is never a part of one; a mount is known by having these
    three fields and no other.
    """
    before, *after = written.split(name)
    for each in after:
        if not (before.endswith(_NAMED) and each.startswith(_TOKEN_FIELDS)):
            return written
        before = each
    return written.replace(name, b"") if name[len(_TOKEN) : -1].isalnum() else written


def _remember(digest: bytes, template: PodTemplate) -> None:
    # Pods may be decoded in several threads.
    with _remembering:
        _known.pop(digest, None)
        if len(_known) >= MAX_KNOWN:
            del _known[next(iter(_known))]
        _known[digest] = ref(template)
