"""Which objects the scheduler watches, and which handler each of their changes goes to.

Source: pkg/scheduler/eventhandlers.go addAllEventHandlers; scheduler.go NewInformerFactory (Kubernetes
v1.36).
"""

import logging
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from berth.cache.errors import CacheCorruptedError
from berth.client import resources
from berth.client.resources import Resource
from berth.client.transport import Transport
from berth.client.watching.quarantined_objects import Report, ignore
from berth.client.watching.reflector import Reflector
from berth.client.watching.watch import WatchSource
from berth.framework.cluster_event import EventResource
from berth.framework.mirrors.group_trees import TREES_GATE
from berth.framework.mirrors.listers import Listers, Store
from berth.objects.api_object import TypedObject
from berth.objects.decode import decoder
from berth.objects.devices.devices import DeviceClass, DeviceTaintRule, ResourceSlice
from berth.objects.devices.resource_claims import ResourceClaim
from berth.objects.node_decoding import decode_node
from berth.objects.pod_groups import CompositePodGroup, PodGroup
from berth.objects.pods.pod_decoding import decode_pod
from berth.objects.volumes.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)
from berth.objects.workloads import (
    Namespace,
    PodDisruptionBudget,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)
from berth.out_of_tree.cluster_state.raw_objects import KeptObjects
from berth.out_of_tree.queueing.requeue_events import REQUEUE_EVENT_SUFFIX
from berth.recordings.core.recorded_scheduler import RecordedScheduler
from berth.scheduler.scheduler import Scheduler
from berth.scheduler.watching.needed_kinds import is_needed
from berth.scheduler.watching.server_kinds import EVERY_KIND, ServerKinds, consequences

log = logging.getLogger(__name__)

DEVICE_TAINT_RULES = "DRADeviceTaintRules"
LIVE_PODS = "status.phase!=Succeeded,status.phase!=Failed"

KNOWN: frozenset[str] = frozenset(EventResource)
FATAL = (CacheCorruptedError,)
"""Cache and watch contradict each other: only a new process knows better."""


class Watched(msgspec.Struct, frozen=True):
    """A kind that is looked up: what it decodes to, the store that keeps it, and its name in events."""

    resource: Resource
    kind: type[TypedObject]
    store: Callable[[Listers], Store[Any]]
    events: str = ""
    gate: str = ""
    """The feature without which the kind is not read."""


LOOKED_UP = (
    Watched(resources.NAMESPACES, Namespace, lambda listers: listers.namespaces, EventResource.NAMESPACE),
    Watched(resources.SERVICES, Service, lambda listers: listers.services),
    Watched(
        resources.REPLICATION_CONTROLLERS,
        ReplicationController,
        lambda listers: listers.replication_controllers,
    ),
    Watched(resources.REPLICA_SETS, ReplicaSet, lambda listers: listers.replica_sets),
    Watched(resources.STATEFUL_SETS, StatefulSet, lambda listers: listers.stateful_sets),
    Watched(
        resources.POD_DISRUPTION_BUDGETS,
        PodDisruptionBudget,
        lambda listers: listers.pod_disruption_budgets,
    ),
    Watched(
        resources.PERSISTENT_VOLUMES,
        PersistentVolume,
        lambda listers: listers.persistent_volumes,
        EventResource.PERSISTENT_VOLUME,
    ),
    Watched(
        resources.PERSISTENT_VOLUME_CLAIMS,
        PersistentVolumeClaim,
        lambda listers: listers.persistent_volume_claims,
        EventResource.PERSISTENT_VOLUME_CLAIM,
    ),
    Watched(
        resources.STORAGE_CLASSES,
        StorageClass,
        lambda listers: listers.storage_classes,
        EventResource.STORAGE_CLASS,
    ),
    Watched(resources.CSI_NODES, CSINode, lambda listers: listers.csi_nodes, EventResource.CSI_NODE),
    Watched(resources.CSI_DRIVERS, CSIDriver, lambda listers: listers.csi_drivers, EventResource.CSI_DRIVER),
    Watched(
        resources.CSI_STORAGE_CAPACITIES,
        CSIStorageCapacity,
        lambda listers: listers.csi_storage_capacities,
        EventResource.CSI_STORAGE_CAPACITY,
    ),
    Watched(
        resources.VOLUME_ATTACHMENTS,
        VolumeAttachment,
        lambda listers: listers.volume_attachments,
        EventResource.VOLUME_ATTACHMENT,
    ),
    Watched(
        resources.RESOURCE_CLAIMS,
        ResourceClaim,
        lambda listers: listers.resource_claims,
        EventResource.RESOURCE_CLAIM,
    ),
    Watched(
        resources.RESOURCE_SLICES,
        ResourceSlice,
        lambda listers: listers.resource_slices,
        EventResource.RESOURCE_SLICE,
    ),
    Watched(
        resources.DEVICE_CLASSES,
        DeviceClass,
        lambda listers: listers.device_classes,
        EventResource.DEVICE_CLASS,
    ),
    Watched(
        resources.POD_GROUPS,
        PodGroup,
        lambda listers: listers.pod_groups,
        EventResource.POD_GROUP,
        gate="GenericWorkload",
    ),
    Watched(
        resources.COMPOSITE_POD_GROUPS,
        CompositePodGroup,
        lambda listers: listers.composite_pod_groups,
        EventResource.COMPOSITE_POD_GROUP,
        gate=TREES_GATE,
    ),
)

_GATES = {each.resource: each.gate for each in LOOKED_UP} | {resources.DEVICE_TAINT_RULES: DEVICE_TAINT_RULES}
"""Every kind beside nodes and pods, and the feature without which it is not read."""


def reflectors(
    transport: Transport,
    scheduler: Scheduler | RecordedScheduler,
    kept: KeptObjects,
    *,
    groups: frozenset[str],
    server: ServerKinds = EVERY_KIND,
    report: Report = ignore,
) -> Iterator[Reflector[Any]]:
    """A reflector for everything the scheduler has to know; nodes come first, kinds that plugins name last.

    `groups` are those of needed_kinds that plugins ask about. Kinds that the server lacks are left out.
    The bytes of nodes and pods are kept where `kept` says so. Objects that are set aside are reported.
    """
    read_node, nodes = kept.nodes.decoding(decode_node), kept.nodes.following(scheduler.node_handler)
    read_pod, pods = kept.pods.decoding(decode_pod), kept.pods.following(scheduler.pod_handler)
    # Of these two there are many.
    every, live = WatchSource(resources.NODES), WatchSource(resources.PODS, field_selector=LIVE_PODS)
    yield Reflector(transport, every, read_node, nodes, whole=True, fatal=FATAL, report=report)
    yield Reflector(transport, live, read_pod, pods, whole=True, fatal=FATAL, report=report)
    kinds = _kinds(scheduler, groups, server.absent)
    for watched in LOOKED_UP:
        if watched.resource not in kinds:
            continue
        handler = scheduler.resource_handler(watched.events, watched.store(scheduler.listers))
        decode: Callable[[bytes], Any] = decoder(watched.kind)
        yield Reflector(
            transport, WatchSource(server.served(watched.resource)), decode, handler, report=report
        )
    if resources.DEVICE_TAINT_RULES in kinds:
        rules = WatchSource(server.served(resources.DEVICE_TAINT_RULES))
        handler = scheduler.device_taint_rule_handler
        yield Reflector(transport, rules, decoder(DeviceTaintRule), handler, report=report)
    yield from _of_other_kinds(transport, scheduler, report)


def _kinds(
    scheduler: Scheduler | RecordedScheduler, groups: frozenset[str], absent: frozenset[Resource]
) -> frozenset[Resource]:
    """The kinds that are asked about and served; the log has a line on those that are not served."""
    asked = frozenset(
        kind
        for kind, gate in _GATES.items()
        if (not gate or scheduler.feature_enabled(gate)) and is_needed(kind, groups)
    )
    if asked & absent:
        log.warning("The API server does not serve kinds=%s", consequences(asked & absent))
    return asked - absent


def _of_other_kinds(
    transport: Transport, scheduler: Scheduler | RecordedScheduler, report: Report
) -> Iterator[Reflector[Any]]:
    """A reflector for each kind beside the known ones that a plugin waits for, as plural.version.group."""
    decode: Callable[[bytes], TypedObject] = decoder(TypedObject)
    for name in scheduler.wanted:
        if name not in KNOWN and not name.endswith(REQUEUE_EVENT_SUFFIX):
            plural, version, group = name.split(".", 2)
            handler = scheduler.resource_handler(name, scheduler.listers.store(plural))
            resource = Resource(group, version, plural, namespaced=True)
            yield Reflector(transport, WatchSource(resource), decode, handler, report=report)
