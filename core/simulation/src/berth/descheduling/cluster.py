"""The cluster that descheduling works on: the scheduler's view, the strategies' view, and evicted pods.

Pods' annotations for simulations say nothing here: anyone who may write a pod could make it end in a plan.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from berth.client.transport import Transport
from berth.config.descheduling.policy import Policy
from berth.descheduling.load.live import read_loads
from berth.descheduling.load.load import Loads
from berth.descheduling.load.recorded import KINDS as METRICS_KINDS
from berth.descheduling.load.recorded import recorded_loads
from berth.descheduling.pod_facts import PodFacts, facts_of
from berth.objects.decode import UndecodableObjectError
from berth.objects.node import Node
from berth.objects.pods.pod import Pod
from berth.objects.pods.pod_decoding import pod_from_document
from berth.simulation.errors import InputError
from berth.simulation.reading.inputs import FINISHED, ClusterInput, read_cluster
from berth.simulation.reading.kinds import KINDS
from berth.simulation.reading.listing import list_kind
from berth.simulation.reading.timeline import PREFIX

FAILED: Final = "Failed"


@dataclass(slots=True)
class ClusterObjects:
    """The objects, the facts of pods by key, the pods that ended, by key, and the load by metrics."""

    objects: ClusterInput = field(default_factory=ClusterInput)
    facts: dict[str, PodFacts] = field(default_factory=dict)
    ended: dict[str, Pod] = field(default_factory=dict)
    loads: Loads = field(default_factory=dict)


def read_files(paths: Sequence[str | Path], policy: Policy) -> ClusterObjects:
    """The cluster of files, as `berth simulate` takes them. Raises: InputError."""
    cluster = ClusterObjects()
    metrics: list[dict[str, Any]] = []

    def seen(document: dict[str, Any]) -> None:
        if document.get("kind") in METRICS_KINDS:
            metrics.append(document)
        if document.get("kind") == "Pod" and document.get("apiVersion") == "v1":
            _note(cluster, document)

    cluster.objects = read_cluster(paths, seen=seen)
    cluster.loads = recorded_loads(metrics, policy)
    _forget_times(cluster.objects)
    return cluster


async def read_live(transport: Transport, policy: Policy, now: datetime) -> ClusterObjects:
    """The cluster behind an API server, and the load that the policy goes by.

    Raises: InputError; NotSentError where the server cannot be reached.
    """
    cluster = ClusterObjects()
    for kind in KINDS:
        # Of pods the finished ones are wanted, too.
        async for obj, written in list_kind(transport, msgspec.structs.replace(kind, field_selector="")):
            if isinstance(obj, Pod):
                cluster.facts[obj.key] = facts_of(written)
                if obj.status.phase in FINISHED:
                    cluster.ended[obj.key] = obj
                    continue
            cluster.objects.of(kind.type)[obj.key] = obj
    cluster.loads = await read_loads(transport, policy, now)
    _forget_times(cluster.objects)
    return cluster


def _note(cluster: ClusterObjects, document: dict[str, Any]) -> None:
    metadata = document.get("metadata") or {}
    key = f"{metadata.get('namespace') or 'default'}/{metadata.get('name') or ''}"
    try:
        cluster.facts[key] = facts_of(msgspec.json.encode({"status": document.get("status") or {}}))
        if cluster.facts[key].phase in FINISHED:
            pod = pod_from_document(document)
            namespace, uid = pod.namespace or "default", pod.uid or key
            named = msgspec.structs.replace(pod.metadata, namespace=namespace, uid=uid)
            cluster.ended[key] = msgspec.structs.replace(pod, metadata=named)
    except UndecodableObjectError as error:
        raise InputError(f"Pod {key}: {error}; correct the field") from None


def _forget_times(objects: ClusterInput) -> None:
    kinds: Iterable[type[Pod | Node]] = (Pod, Node)
    for kind in kinds:
        held = objects.of(kind)
        for key, obj in held.items():
            if any(name.startswith(PREFIX) for name in obj.metadata.annotations):
                held[key] = _without_times(obj)


def _without_times(obj: Pod | Node) -> Pod | Node:
    kept = {name: text for name, text in obj.metadata.annotations.items() if not name.startswith(PREFIX)}
    return msgspec.structs.replace(obj, metadata=msgspec.structs.replace(obj.metadata, annotations=kept))
