"""A case for each event that a plugin registers: a pod that it rejected, and what makes the pod fit.

A case is the plugin and the event, a cluster in which that plugin rejects the waiting pod, and the one object
that comes, changes or goes.
"""

from typing import Any, NamedTuple

from msgspec.structs import replace

from berth.objects.api_object import ObjectMeta
from berth.objects.label_selector import LabelSelector
from berth.objects.pods.pod import Pod
from berth.objects.pods.pod_spec import (
    Affinity,
    PodAffinity,
    PodAffinityTerm,
    PodResourceClaim,
    SchedulingGroup,
    TopologySpreadConstraint,
)
from berth.objects.taint import Taint, Toleration
from berth.objects.volumes.storage import TopologyRequirement, TopologyTerm
from berth.objects.workloads import Namespace
from berth.testing import storage
from berth.testing.builders import ROOMY, make_node, make_pod
from tests.scenarios.pod_groups.kit import group
from tests.unit.plugins.dynamic_resources import kit as dra

GROUPS = {"GenericWorkload": True, "GangScheduling": True}
LIMITS = {"VolumeLimitScaling": True}
HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
EBS_ZONE = "topology.ebs.csi.aws.com/zone"
CSI, RESOURCE = "csi.example", "example.com/gpu"
GPU = Taint("gpu", "yes", "NoSchedule")
A, B = {"app": "a"}, {"app": "b"}


class Gone(NamedTuple):
    """An object that goes."""

    obj: Any


class Case(NamedTuple):
    """What is there, who waits, and what happens: an object that comes or changes, or is Gone."""

    plugin: str
    event: str
    given: list[Any]
    waiting: Pod
    happens: Any
    others: tuple[str, ...] = ()
    gates: dict[str, bool] = {}


def waits(**fields):
    return make_pod("waiting", scheduler_name="default-scheduler", **fields)


def on(node, name="p0", **fields):
    return make_pod(name, node_name=node, **fields)


def in_zone(name, zone=None, **fields):
    return make_node(name, labels={HOSTNAME: name} | ({ZONE: zone} if zone else {}), **fields)


N0, N1 = in_zone("n0", "a"), in_zone("n1", "b")
FULL = in_zone("n0", "a", allocatable={**ROOMY, "cpu": "1"})
TAINTED, CORDONED = in_zone("n0", "a", taints=(GPU,)), in_zone("n0", "a", unschedulable=True)
TOLERANT = waits(tolerations=(Toleration("gpu", "Exists"),))
PATIENT = waits(tolerations=(Toleration("node.kubernetes.io/unschedulable", "Exists"),))
IN_B = {"node_selector": {ZONE: "b"}}
LARGE = waits(requests={"cpu": "2"})
BIG = on("n0", requests={"cpu": "3"})
GPUS = waits(requests={RESOURCE: "1"})
BACKED = dra.make_class("gpu", extendedResourceName=RESOURCE)

OF_NODES = [
    Case("TaintToleration", "Node/Add", [TAINTED], waits(), N1),
    Case("TaintToleration", "Node/UpdateNodeTaint", [TAINTED], waits(), N0),
    Case("TaintToleration", "Pod/UpdatePodToleration", [TAINTED], waits(), TOLERANT),
    Case("NodeUnschedulable", "Node/Add", [CORDONED], waits(), N1),
    Case("NodeUnschedulable", "Node/UpdateNodeTaint", [CORDONED], waits(), N0),
    Case("NodeUnschedulable", "Pod/UpdatePodToleration", [CORDONED], waits(), PATIENT),
    Case("NodeAffinity", "Node/Add", [N0], waits(**IN_B), N1),
    Case("NodeAffinity", "Node/UpdateNodeLabel", [N0], waits(**IN_B), in_zone("n0", "b")),
    Case("NodePorts", "Node/Add", [N0, on("n0", host_ports=[80])], waits(host_ports=[80]), N1),
    Case("NodePorts", "Pod/Delete", [N0, on("n0", host_ports=[80])], waits(host_ports=[80]), Gone("p0")),
    Case("NodeResourcesFit", "Node/Add", [FULL], LARGE, N1),
    Case("NodeResourcesFit", "Node/UpdateNodeAllocatable", [FULL], LARGE, N0),
    Case("NodeResourcesFit", "Pod/Delete", [N0, BIG], LARGE, Gone("p0")),
    Case("NodeResourcesFit", "Pod/UpdatePodScaleDown", [N0, BIG], LARGE, on("n0", requests={"cpu": "1"})),
    Case("NodeResourcesFit", "DeviceClass/Add", [N0], GPUS, BACKED),
    Case("NodeResourcesFit", "DeviceClass/Update", [N0, dra.make_class("gpu")], GPUS, BACKED),
    Case("SchedulingGates", "Pod/UpdatePodSchedulingGatesEliminated", [N0], waits(gates=["g"]), waits()),
]


def declares(node, *features):
    return replace(node, status=replace(node.status, declared_features=features))


NEEDS = waits(host_network=True, host_users=False)
DECLARED = "UserNamespacesHostNetworkSupport"
OF_FEATURES = [
    Case("NodeDeclaredFeatures", "Node/Add", [N0], NEEDS, declares(N1, DECLARED)),
    Case("NodeDeclaredFeatures", "Node/UpdateNodeDeclaredFeature", [N0], NEEDS, declares(N0, DECLARED)),
    Case("NodeDeclaredFeatures", "Pod/Update", [N0], NEEDS, waits(labels=A)),
]


def term(key=HOSTNAME, **more):
    return PodAffinityTerm(LabelSelector(A), topology_key=key, **more)


def near(*terms):
    return waits(affinity=Affinity(None, PodAffinity(terms), None))


def apart(*terms):
    return waits(affinity=Affinity(None, None, PodAffinity(terms)))


def namespace(**labels):
    return Namespace(metadata=ObjectMeta(name="other", uid="o", labels=labels))


PEER, AWAY = on("n0", labels=A), on("n0", labels=A, namespace="other")
BLUE = {"namespace_selector": LabelSelector({"team": "blue"})}
OF_AFFINITY = [
    Case("InterPodAffinity", "Pod/Add", [N0], near(term()), PEER),
    Case("InterPodAffinity", "Pod/Delete", [N0, PEER], apart(term()), Gone("p0")),
    Case("InterPodAffinity", "Pod/UpdatePodLabel", [N0, PEER], apart(term()), on("n0", labels=B)),
    Case("InterPodAffinity", "Node/Add", [N0, PEER], apart(term()), N1),
    Case("InterPodAffinity", "Node/UpdateNodeLabel", [N0, in_zone("n1", "a"), PEER], apart(term(ZONE)), N1),
    Case("InterPodAffinity", "Node/Delete", [N0, in_zone("n1", "a"), PEER], apart(term(ZONE)), Gone(N0)),
    Case("InterPodAffinity", "Namespace/Add", [N0, AWAY], near(term(**BLUE)), namespace(team="blue")),
    Case(
        "InterPodAffinity",
        "Namespace/Update",
        [N0, AWAY, namespace()],
        near(term(**BLUE)),
        namespace(team="blue"),
    ),
    Case(
        "InterPodAffinity",
        "Namespace/Delete",
        [N0, AWAY, namespace(team="blue")],
        apart(term(**BLUE)),
        Gone(namespace(team="blue")),
    ),
]


def even(*, domains=None, taints="Ignore", **more):
    constraint = TopologySpreadConstraint(
        1,
        ZONE,
        "DoNotSchedule",
        LabelSelector(A),
        domains,
        node_taints_policy=taints,
        node_affinity_policy="Ignore",
    )
    return waits(labels=A, topology_spread_constraints=(constraint,), **more)


TWO, LEAST = even(domains=2), even(node_selector={ZONE: "a"})
HONEST = {"taints": "Honor", "node_selector": {ZONE: "a"}}
OTHER_TAINTED = in_zone("n1", "b", taints=(GPU,))
OF_SPREADING = [
    Case("PodTopologySpread", "Node/Add", [N0, PEER], TWO, N1),
    Case("PodTopologySpread", "Node/Delete", [N0, N1, PEER], LEAST, Gone(N1), ("NodeAffinity",)),
    Case(
        "PodTopologySpread",
        "Node/UpdateNodeLabel",
        [N0, N1, PEER],
        LEAST,
        in_zone("n1"),
        ("NodeAffinity",),
    ),
    Case(
        "PodTopologySpread",
        "Node/UpdateNodeTaint",
        [N0, N1, PEER],
        even(**HONEST),
        OTHER_TAINTED,
        ("NodeAffinity",),
    ),
    Case("PodTopologySpread", "Pod/Add", [N0, N1, PEER], LEAST, on("n1", "p1", labels=A), ("NodeAffinity",)),
    Case("PodTopologySpread", "Pod/Delete", [N0, PEER], TWO, Gone("p0")),
    Case("PodTopologySpread", "Pod/UpdatePodLabel", [N0, PEER], TWO, on("n0", labels=B)),
    Case(
        "PodTopologySpread",
        "Pod/UpdatePodToleration",
        [N0, OTHER_TAINTED, PEER],
        even(domains=2, taints="Honor"),
        even(domains=2, taints="Honor", tolerations=(Toleration("gpu", "Exists"),)),
        ("TaintToleration",),
    ),
]


def using(*claims, **fields):
    return waits(volumes=tuple(map(storage.claim_volume, claims)), **fields)


def user(*claims, node="n0"):
    return on(node, volumes=tuple(map(storage.claim_volume, claims)))


def bound(name, **fields):
    return storage.make_claim(name, volume_name=f"v-{name}", **fields)


def volume(name, **fields):
    return storage.make_volume(f"v-{name}", phase="Bound", **fields)


MINE = [bound("a"), volume("a", driver=CSI)]
YOURS = [bound("b"), volume("b", driver=CSI)]
ONE_LEFT = [N0, storage.make_csi_node("n0", {CSI: 1}), *MINE, *YOURS, user("b")]
NEEDED = storage.make_csi_driver(CSI, prevent_pod_scheduling_if_missing=True)
LACKING = [N0, *MINE, NEEDED]
ATTACHED = storage.make_attachment("x", CSI, "n0", "v-b")
OF_LIMITS = [
    Case("NodeVolumeLimits", "Node/Add", ONE_LEFT, using("a"), N1),
    Case(
        "NodeVolumeLimits",
        "CSINode/Add",
        LACKING,
        using("a"),
        storage.make_csi_node("n0", {CSI: 1}),
        gates=LIMITS,
    ),
    Case("NodeVolumeLimits", "CSINode/Update", ONE_LEFT, using("a"), storage.make_csi_node("n0", {CSI: 2})),
    Case(
        "NodeVolumeLimits",
        "CSIDriver/Update",
        LACKING,
        using("a"),
        storage.make_csi_driver(CSI),
        gates=LIMITS,
    ),
    Case("NodeVolumeLimits", "CSIDriver/Delete", LACKING, using("a"), Gone(NEEDED), gates=LIMITS),
    Case("NodeVolumeLimits", "PersistentVolumeClaim/Add", [N0, MINE[1]], using("a"), MINE[0]),
    Case("NodeVolumeLimits", "Pod/Delete", ONE_LEFT, using("a"), Gone("p0")),
    Case(
        "NodeVolumeLimits", "VolumeAttachment/Delete", [*ONE_LEFT[:-1], ATTACHED], using("a"), Gone(ATTACHED)
    ),
]
SINGLE = storage.make_claim("a", volume_name="v-a", modes=["ReadWriteOncePod"])
DISK = ({"name": "d", "gcePersistentDisk": {"pdName": "d"}},)
OF_RESTRICTIONS = [
    Case("VolumeRestrictions", "Pod/Delete", [N0, SINGLE, user("a")], using("a"), Gone("p0")),
    Case("VolumeRestrictions", "Node/Add", [N0, on("n0", volumes=DISK)], waits(volumes=DISK), N1),
    Case("VolumeRestrictions", "PersistentVolumeClaim/Add", [N0], using("a"), SINGLE),
]
ZONED = volume("a", labels={ZONE: "b"})
UNBOUND = storage.make_claim("a", storage_class="wait")
OF_ZONES = [
    Case("VolumeZone", "StorageClass/Add", [N0, UNBOUND], using("a"), storage.make_class("wait")),
    Case("VolumeZone", "Node/Add", [N0, bound("a"), ZONED], using("a"), N1),
    Case("VolumeZone", "Node/UpdateNodeLabel", [N0, bound("a"), ZONED], using("a"), in_zone("n0", "b")),
    Case("VolumeZone", "PersistentVolumeClaim/Add", [N1, ZONED], using("a"), bound("a")),
    Case(
        "VolumeZone",
        "PersistentVolumeClaim/Update",
        [
            N1,
            ZONED,
            storage.make_claim("a", storage_class="now"),
            storage.make_class("now", mode="Immediate"),
        ],
        using("a"),
        bound("a"),
    ),
    Case("VolumeZone", "PersistentVolume/Add", [N1, bound("a")], using("a"), ZONED),
    Case("VolumeZone", "PersistentVolume/Update", [N0, bound("a"), ZONED], using("a"), volume("a")),
]
WAIT = storage.make_class("wait")
MADE = storage.make_class("csi", provisioner=CSI)
ONLY_B = replace(MADE, allowed_topologies=(TopologyTerm((TopologyRequirement(ZONE, ("b",)),)),))
TO_MAKE = storage.make_claim("a", storage_class="csi")
NEAR_B = storage.make_volume("v", near={ZONE: ["b"]})
TRACKED = storage.make_csi_driver(CSI, storage_capacity=True)
LEFT = {"node_topology": LabelSelector({ZONE: "a"})}
EBS_NODE = make_node("n0", labels={EBS_ZONE: "a"})
EBS_VOLUME = volume("a", near={ZONE: ["a"]}, aws_elastic_block_store={"volumeID": "vol-1"})
MIGRATED = storage.make_csi_node("n0", {}, migrated="kubernetes.io/aws-ebs")
OF_BINDING = [
    Case("VolumeBinding", "StorageClass/Add", [N0, TO_MAKE], using("a"), MADE),
    Case("VolumeBinding", "StorageClass/Update", [N0, TO_MAKE, ONLY_B], using("a"), MADE),
    Case("VolumeBinding", "PersistentVolumeClaim/Add", [N0, MADE], using("a"), TO_MAKE),
    Case(
        "VolumeBinding",
        "PersistentVolumeClaim/Update",
        [
            N0,
            volume("a"),
            storage.make_claim("a", storage_class="now"),
            storage.make_class("now", mode="Immediate"),
        ],
        using("a"),
        bound("a"),
    ),
    Case("VolumeBinding", "PersistentVolume/Add", [N1, WAIT, UNBOUND], using("a"), NEAR_B),
    Case(
        "VolumeBinding",
        "PersistentVolume/Update",
        [
            N1,
            WAIT,
            UNBOUND,
            storage.make_volume(
                "v", near={ZONE: ["b"]}, phase="Released", kept_for=storage.make_claim("other")
            ),
        ],
        using("a"),
        NEAR_B,
    ),
    Case("VolumeBinding", "Node/Add", [N0, WAIT, UNBOUND, NEAR_B], using("a"), N1),
    Case(
        "VolumeBinding", "Node/UpdateNodeLabel", [N0, WAIT, UNBOUND, NEAR_B], using("a"), in_zone("n0", "b")
    ),
    Case("VolumeBinding", "CSINode/Add", [EBS_NODE, bound("a"), EBS_VOLUME], using("a"), MIGRATED),
    Case(
        "VolumeBinding",
        "CSINode/Update",
        [EBS_NODE, bound("a"), EBS_VOLUME, storage.make_csi_node("n0", {})],
        using("a"),
        MIGRATED,
    ),
    Case(
        "VolumeBinding",
        "CSIDriver/Update",
        [N0, MADE, TO_MAKE, TRACKED],
        using("a"),
        storage.make_csi_driver(CSI),
    ),
    Case("VolumeBinding", "CSIDriver/Delete", [N0, MADE, TO_MAKE, TRACKED], using("a"), Gone(TRACKED)),
    Case(
        "VolumeBinding",
        "CSIStorageCapacity/Add",
        [N0, MADE, TO_MAKE, TRACKED],
        using("a"),
        storage.make_capacity("left", "csi", "4Gi", **LEFT),
    ),
    Case(
        "VolumeBinding",
        "CSIStorageCapacity/Update",
        [N0, MADE, TO_MAKE, TRACKED, storage.make_capacity("left", "csi", "1Mi", **LEFT)],
        using("a"),
        storage.make_capacity("left", "csi", "4Gi", **LEFT),
    ),
]


def claiming(*names):
    return waits(resource_claims=tuple(PodResourceClaim(f"e{i}", name) for i, name in enumerate(names)))


GENERATED = waits(resource_claims=(PodResourceClaim("e0", resource_claim_template_name="t"),))
NAMED = replace(
    GENERATED,
    status=replace(GENERATED.status, resource_claim_statuses=({"name": "e0", "resourceClaimName": "c0"},)),
)
CLASS, CLAIM = dra.make_class(), dra.make_claim("c0")
EVERY = dra.make_claim("c0", [dra.request(allocationMode="All")])
DEVICES = dra.make_slice("s", [dra.device("d")])
HELD = dra.allocated("held", ("s", "d"))
IN_ZONE_B = {"nodeSelectorTerms": [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["b"]}]}]}
PARTIAL = dra.make_slice("t", [dra.device("d")], slices=2)
NONE = [{"cel": {"expression": "false"}}]
FIRST = dra.make_class("a-gpu", extendedResourceName=RESOURCE, selectors=NONE)
PLUGGED = in_zone("n0", "a", allocatable={**ROOMY, RESOURCE: "1"})
OF_DEVICES = [
    Case(
        "DynamicResources",
        "Node/Add",
        [N0, CLASS, CLAIM, dra.make_slice("s", [dra.device("d")], node="n1")],
        claiming("c0"),
        N1,
    ),
    Case(
        "DynamicResources",
        "Node/UpdateNodeLabel",
        [N0, CLASS, CLAIM, dra.make_slice("s", [dra.device("d")], nodeSelector=IN_ZONE_B)],
        claiming("c0"),
        in_zone("n0", "b"),
    ),
    Case("DynamicResources", "Node/UpdateNodeAllocatable", [N0, BACKED], GPUS, PLUGGED),
    Case("DynamicResources", "ResourceClaim/Add", [N0, CLASS, DEVICES], claiming("c0"), CLAIM),
    Case(
        "DynamicResources",
        "ResourceClaim/Update",
        [N0, CLASS, DEVICES, CLAIM, HELD],
        claiming("c0"),
        dra.make_claim("held"),
    ),
    Case(
        "DynamicResources",
        "ResourceClaim/Delete",
        [N0, CLASS, DEVICES, CLAIM, HELD],
        claiming("c0"),
        Gone(HELD),
    ),
    Case(
        "DynamicResources",
        "Pod/UpdatePodGeneratedResourceClaim",
        [N0, CLASS, DEVICES, dra.make_claim("c0", owner=GENERATED.uid)],
        GENERATED,
        NAMED,
    ),
    Case("DynamicResources", "DeviceClass/Add", [N0, DEVICES, CLAIM], claiming("c0"), CLASS),
    Case(
        "DynamicResources",
        "DeviceClass/Update",
        [N0, DEVICES, CLAIM, dra.make_class(selectors=NONE)],
        claiming("c0"),
        CLASS,
    ),
    Case("DynamicResources", "DeviceClass/Delete", [N0, DEVICES, BACKED, FIRST], GPUS, Gone(FIRST)),
    Case("DynamicResources", "ResourceSlice/Add", [N0, CLASS, CLAIM], claiming("c0"), DEVICES),
    Case(
        "DynamicResources",
        "ResourceSlice/Update",
        [N0, CLASS, CLAIM, dra.make_slice("s", [])],
        claiming("c0"),
        DEVICES,
    ),
    Case(
        "DynamicResources",
        "ResourceSlice/Delete",
        [N0, CLASS, EVERY, DEVICES, PARTIAL],
        claiming("c0"),
        Gone(PARTIAL),
    ),
]
MEMBER = {"scheduling_group": SchedulingGroup("g"), "scheduler_name": "default-scheduler"}
SECOND = make_pod("second", **MEMBER)
OF_GROUPS = [
    Case(
        "GangScheduling",
        "Pod/Add",
        [N0, group("g", 2)],
        waits(scheduling_group=SchedulingGroup("g")),
        SECOND,
        gates=GROUPS,
    ),
    Case(
        "GangScheduling",
        "PodGroup/Add",
        [N0, SECOND],
        waits(scheduling_group=SchedulingGroup("g")),
        group("g", 2),
        gates=GROUPS,
    ),
]
CASES = [
    *OF_NODES,
    *OF_FEATURES,
    *OF_AFFINITY,
    *OF_SPREADING,
    *OF_LIMITS,
    *OF_RESTRICTIONS,
    *OF_ZONES,
    *OF_BINDING,
    *OF_DEVICES,
    *OF_GROUPS,
]
