# ruff: noqa: ARG002 - plugins take the arguments of the points that they extend, whether they look or not

"""The table of pending pods: what a cluster looks like, why its pod `p` is pending, and what would help."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from berth.framework.interface import FilterPlugin
from berth.framework.status import Code, Status, unschedulable
from berth.objects.api_object import ObjectMeta
from berth.objects.label_selector import LabelSelector, Requirement
from berth.objects.node_selector import NodeAffinity, NodeSelector, NodeSelectorTerm
from berth.objects.pod_groups import GangPolicy, PodGroup, PodGroupSpec, SchedulingPolicy
from berth.objects.pods.pod_requests import fit_requests
from berth.objects.pods.pod_spec import (
    Affinity,
    Container,
    PodAffinity,
    PodAffinityTerm,
    PodResourceClaim,
    Resources,
    SchedulingGroup,
    TopologySpreadConstraint,
)
from berth.objects.taint import Taint, Toleration
from berth.testing.builders import make_pod
from berth.testing.storage import claim_volume, make_claim, make_class, make_csi_node, make_volume
from tests.explain.asking import Refuses
from tests.fakes import Permits, PreBinds, Reserves
from tests.scenarios.kit.plugins import Doorkeeper, Gate, Named
from tests.unit.plugins.dynamic_resources.kit import allocated, device, make_slice
from tests.unit.plugins.dynamic_resources.kit import make_claim as device_claim
from tests.unit.plugins.dynamic_resources.kit import make_class as device_class

DEFAULT = (
    "SchedulingGates",
    "NodeUnschedulable",
    "NodeName",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "VolumeRestrictions",
    "NodeVolumeLimits",
    "VolumeBinding",
    "VolumeZone",
    "PodTopologySpread",
    "InterPodAffinity",
    "DefaultPreemption",
)
HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
WEB = {"app": "web"}
GANGS = {"GenericWorkload": True, "GangScheduling": True}


class Slow(PreBinds):
    """A PreBind plugin that never comes to an end."""

    async def pre_bind(self, state, pod, node_name):
        await asyncio.Event().wait()


@dataclass(frozen=True)
class Case:
    """`says` stands in the cause, `by` turns the largest group of nodes down, `helps` are the proposals."""

    id: str
    build: Callable[[Any], None]
    says: str
    by: str = ""
    helps: tuple[str, ...] = ()
    state: str = "Unschedulable"
    options: dict[str, Any] = field(default_factory=dict)
    plugins: Callable[[], tuple[Any, ...]] = tuple


def on(*nodes, placed=(), others=(), **pod):
    """A cluster of these nodes (keywords of `add_node`), pods on them, other objects, and the pod."""

    def build(cluster):
        for i, node in enumerate(nodes):
            name = f"n{i}"
            labels = {HOST: name, **node.get("labels", {})}
            cluster.add_node(name, **{**node, "labels": labels})
        for i, other in enumerate(placed):
            cluster.add_pod(f"o{i}", **other)
        for other in others:
            cluster.add(other)
        cluster.add_pod("p", **pod)

    return build


def container(name="c", limits=None, **requests):
    amounts = {key.replace("_", "-"): value for key, value in requests.items()}
    return Container(name, "app:1", Resources(requests=amounts, limits=limits))


def gpus(count):
    return {"allocatable": {"cpu": "4", "memory": "16Gi", "pods": "10", "example.com/gpu": count}}


def gpu_pod(count):
    amounts = {"example.com/gpu": count}
    return {"containers": [Container("c", "app:1", Resources(requests=amounts, limits=amounts))]}


def tainted(*taints):
    return {"taints": taints}


def requires(*terms):
    """A required node affinity of these terms, each a tuple of requirements."""
    selector = NodeSelector(tuple(NodeSelectorTerm(term) for term in terms))
    return Affinity(NodeAffinity(selector))


def named(*names):
    """A required node affinity of a term for each of these names."""
    terms = (NodeSelectorTerm(match_fields=(Requirement("metadata.name", "In", (name,)),)) for name in names)
    return Affinity(NodeAffinity(NodeSelector(tuple(terms))))


def has(key, *values):
    return Requirement(key, "In", values)


def near(*keys, labels=None):
    terms = tuple(PodAffinityTerm(LabelSelector(labels or WEB), topology_key=key) for key in keys)
    return PodAffinity(terms)


def spread(key, skew=1):
    return TopologySpreadConstraint(skew, key, "DoNotSchedule", LabelSelector(WEB))


GPU = Taint("gpu", "a100", "NoSchedule")
SPOT = Taint("spot", "", "NoExecute")
DOWN = Taint("node.kubernetes.io/not-ready", "", "NoSchedule")
ZONE_A, ZONE_B = {"labels": {ZONE: "a"}}, {"labels": {ZONE: "b"}}
FULL = {"cpu": "4", "node_name": "n0"}
TWO_TERMS = Affinity(pod_anti_affinity=near(HOST, ZONE))


RESOURCES = [
    Case("cpu of no node", on({}, {}, cpu="8"), "Insufficient cpu", "NodeResourcesFit", ("Requests",)),
    Case(
        "cpu taken",
        on({}, placed=[{"cpu": "3", "node_name": "n0"}], cpu="2"),
        "Insufficient cpu",
        "NodeResourcesFit",
        ("Requests", "NewNode", "Priority"),
    ),
    Case("memory", on({}, {}, memory="20Gi"), "Insufficient memory", "NodeResourcesFit", ("Requests",)),
    Case(
        "storage of a node",
        on(
            {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "9", "ephemeral-storage": "10Gi"}},
            containers=[container(ephemeral_storage="20Gi")],
        ),
        "Insufficient ephemeral-storage",
        "NodeResourcesFit",
        ("Requests",),
    ),
    Case(
        "number of pods",
        on({"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "1"}}, placed=[{"node_name": "n0"}]),
        "Too many pods",
        "NodeResourcesFit",
        ("NewNode", "Priority"),
    ),
    Case(
        "a device that no node has",
        on({}, **gpu_pod("1")),
        "Insufficient example.com/gpu",
        "NodeResourcesFit",
    ),
    Case(
        "more devices than any node has",
        on(gpus("2"), gpus("4"), **gpu_pod("8")),
        "Insufficient example.com/gpu",
        "NodeResourcesFit",
        ("Requests",),
    ),
    Case(
        "cpu and memory at once",
        on({}, cpu="8", memory="20Gi"),
        "Insufficient cpu, Insufficient memory",
        "NodeResourcesFit",
        ("Requests",),
    ),
    Case(
        "two containers",
        on({}, containers=[container("a", cpu="3"), container("b", cpu="2")]),
        "Insufficient cpu",
        "NodeResourcesFit",
        ("Requests",),
    ),
    Case(
        "an init container",
        on({}, containers=[container(cpu="1")], init_containers=(container("i", cpu="6"),)),
        "Insufficient cpu",
        "NodeResourcesFit",
        ("Requests",),
    ),
    Case(
        "requests of the whole pod",
        on({}, containers=[container()], resources=Resources(requests={"cpu": "6"})),
        "Insufficient cpu",
        "NodeResourcesFit",
        ("Requests",),
    ),
    Case(
        "an overhead that is too much by itself",
        on({}, cpu="1", overhead={"cpu": "6"}),
        "Insufficient cpu",
        "NodeResourcesFit",
    ),
    Case(
        "pods of more priority in the way",
        on({}, placed=[{**FULL, "priority": 10}], cpu="4"),
        "Insufficient cpu",
        "NodeResourcesFit",
        ("NewNode", "Priority"),
    ),
    Case(
        "may not preempt",
        on({}, placed=[{**FULL, "priority": 10}], cpu="4", priority=50, preemption_policy="Never"),
        "Insufficient cpu",
        "NodeResourcesFit",
        ("NewNode", "Priority"),
    ),
]

TAINTS = [
    Case("a taint", on(tainted(GPU), tainted(GPU)), "untolerated taint", "TaintToleration", ("Toleration",)),
    Case("a taint without value", on(tainted(SPOT)), "untolerated taint", "TaintToleration", ("Toleration",)),
    Case("two taints", on(tainted(GPU, SPOT)), "untolerated taint", "TaintToleration", ("Toleration",)),
    Case(
        "a taint each",
        on(tainted(GPU), tainted(SPOT)),
        "untolerated taint",
        "TaintToleration",
        ("Toleration", "Toleration"),
    ),
    Case("a node that is not ready", on(tainted(DOWN)), "untolerated taint", "TaintToleration"),
    Case(
        "another value tolerated",
        on(tainted(GPU), tolerations=(Toleration("gpu", "Equal", "h100", "NoSchedule"),)),
        "untolerated taint",
        "TaintToleration",
        ("Toleration",),
    ),
    Case(
        "cordoned", on({"unschedulable": True}), "unschedulable", "NodeUnschedulable", ("Uncordon", "NewNode")
    ),
    Case(
        "two cordoned",
        on({"unschedulable": True}, {"unschedulable": True}),
        "unschedulable",
        "NodeUnschedulable",
        ("Uncordon", "Uncordon", "NewNode"),
    ),
]

AFFINITY = "node affinity/selector"
SELECTION = [
    Case(
        "nodeSelector",
        on({}, {}, node_selector={"disk": "ssd"}),
        AFFINITY,
        "NodeAffinity",
        ("NodeSelector", "NodeLabel", "NodeLabel"),
    ),
    Case(
        "nodeSelector with one key of two",
        on(ZONE_A, node_selector={ZONE: "a", "disk": "ssd"}),
        AFFINITY,
        "NodeAffinity",
        ("NodeSelector", "NodeLabel"),
    ),
    Case(
        "nodeSelector with both keys",
        on({}, node_selector={ZONE: "a", "disk": "ssd"}),
        AFFINITY,
        "NodeAffinity",
        ("NodeSelector", "NodeLabel"),
    ),
    Case(
        "required affinity",
        on({}, affinity=requires((has("disk", "ssd"),))),
        AFFINITY,
        "NodeAffinity",
        ("NodeAffinity",),
    ),
    Case(
        "one expression of two",
        on(ZONE_A, affinity=requires((has(ZONE, "a"), has("disk", "ssd")))),
        AFFINITY,
        "NodeAffinity",
        ("NodeAffinity", "NodeAffinity"),
    ),
    Case(
        "two terms",
        on({}, affinity=requires((has(ZONE, "a"),), (has("disk", "ssd"),))),
        AFFINITY,
        "NodeAffinity",
        ("NodeAffinity",),
    ),
    Case(
        "a selector and an affinity",
        on({}, node_selector={"disk": "ssd"}, affinity=requires((has(ZONE, "a"),))),
        AFFINITY,
        "NodeAffinity",
    ),
    Case(
        "a node by name that has no room",
        on({}, {}, {}, placed=[FULL], cpu="2", affinity=named("n0")),
        "2 of 3 nodes: node(s) didn't satisfy plugin(s) [NodeAffinity] (NodeAffinity); 1 other",
        "NodeAffinity",
        ("NodeAffinity", "Priority"),
    ),
    Case(
        "two terms that name nodes without room",
        on({}, {}, {}, placed=[FULL, {**FULL, "node_name": "n1"}], cpu="2", affinity=named("n0", "n1")),
        "2 of 3 nodes: Insufficient cpu (NodeResourcesFit); 1 other",
        "NodeResourcesFit",
        ("NodeAffinity", "Priority"),
    ),
    Case(
        "names that no node has",
        on({}, {}, affinity=named("gone")),
        "didn't satisfy",
        "NodeAffinity",
        ("NodeAffinity",),
    ),
]

SPREADING = [
    Case(
        "host port",
        on({}, placed=[{"host_ports": [80], "node_name": "n0"}], host_ports=[80]),
        "free ports",
        "NodePorts",
        ("HostPort", "NewNode", "Priority"),
    ),
    Case(
        "spreading",
        on(
            ZONE_A,
            {**ZONE_B, "cpu": "1"},
            placed=[{"labels": WEB, "node_name": "n0"}],
            labels=WEB,
            cpu="2",
            topology_spread_constraints=(spread(ZONE),),
        ),
        "1 of 2 nodes: Insufficient cpu (NodeResourcesFit); 1 other",
        "NodeResourcesFit",
        ("Requests", "TopologySpread", "Priority"),
    ),
    Case(
        "spreading over a label that no node has",
        on({}, {}, labels=WEB, topology_spread_constraints=(spread("rack"),)),
        "topology spread constraints (missing required label)",
        "PodTopologySpread",
        ("TopologySpread",),
    ),
    Case(
        "two spreading constraints",
        on({}, labels=WEB, topology_spread_constraints=(spread("rack"), spread("row"))),
        "topology spread constraints",
        "PodTopologySpread",
        ("TopologySpread",),
    ),
    Case(
        "anti-affinity",
        on(
            {},
            placed=[{"labels": WEB, "node_name": "n0"}],
            labels=WEB,
            affinity=Affinity(pod_anti_affinity=near(HOST)),
        ),
        "anti-affinity rules",
        "InterPodAffinity",
        ("PodAntiAffinity", "NewNode", "Priority"),
    ),
    Case(
        "two anti-affinity terms",
        on(ZONE_A, placed=[{"labels": WEB, "node_name": "n0"}], labels=WEB, affinity=TWO_TERMS),
        "anti-affinity rules",
        "InterPodAffinity",
        ("PodAntiAffinity", "Priority"),
    ),
    Case(
        "affinity to pods that are not there",
        on({}, affinity=Affinity(pod_affinity=near(HOST))),
        "pod affinity rules",
        "InterPodAffinity",
        ("PodAffinity",),
    ),
    Case(
        "anti-affinity of a pod there",
        on(
            {},
            placed=[{"node_name": "n0", "affinity": Affinity(pod_anti_affinity=near(HOST))}],
            labels=WEB,
        ),
        "existing pods anti-affinity rules",
        "InterPodAffinity",
        ("NewNode", "Priority"),
    ),
]

COMBINED = [
    Case(
        "a taint and cpu",
        on(tainted(GPU), cpu="8"),
        "untolerated taint",
        "TaintToleration",
        ("Several",),
    ),
    Case(
        "a taint, a selector and memory",
        on(tainted(GPU), memory="20Gi", node_selector={"disk": "ssd"}),
        "untolerated taint",
        "TaintToleration",
        ("Several",),
    ),
    Case(
        "a selector and a host port",
        on(
            {},
            placed=[{"host_ports": [80], "node_name": "n0"}],
            host_ports=[80],
            node_selector={"disk": "ssd"},
        ),
        AFFINITY,
        "NodeAffinity",
        ("Several",),
    ),
    Case(
        "cpu here, a taint there",
        on({}, {}, tainted(GPU), placed=[FULL, {**FULL, "node_name": "n1"}], cpu="2"),
        "2 of 3 nodes: Insufficient cpu",
        "NodeResourcesFit",
        ("Toleration", "NewNode", "Priority"),
    ),
    Case(
        "cordoned here, a selector there",
        on({"unschedulable": True}, {}, {}, node_selector={"disk": "ssd"}),
        f"2 of 3 nodes: node(s) didn't match Pod's {AFFINITY}",
        "NodeAffinity",
        ("NodeSelector", "NodeLabel", "NodeLabel"),
    ),
    Case(
        "a taint, a cordon and cpu, a node each",
        on(tainted(GPU), {"unschedulable": True}, {}, placed=[{**FULL, "node_name": "n2"}], cpu="2"),
        "1 of 3 nodes",
        "",
        ("Toleration", "Uncordon", "NewNode", "Priority"),
    ),
    Case(
        "spreading and a taint",
        on(
            ZONE_A,
            {**ZONE_B, **tainted(GPU)},
            placed=[{"labels": WEB, "node_name": "n0"}],
            labels=WEB,
            topology_spread_constraints=(spread(ZONE),),
        ),
        "1 of 2 nodes",
        "",
        ("TopologySpread", "Toleration", "Priority"),
    ),
]


NAMED = PodResourceClaim("d", "d")
DEVICE_TEMPLATE = "template"


def kind_is(kind):
    """A selector of devices of that kind."""
    return {"cel": {"expression": f"device.attributes['gpu.example'].kind == '{kind}'"}}


def with_devices(names, *, claims, classes=None, entry=NAMED):
    """A node with these devices of the kind `small`, and the pod with claim `d`; classes are of a kind."""
    kinds = {"gpu": "small"} if classes is None else classes
    devices = [device(name, attributes={"kind": {"string": "small"}}) for name in names]
    return on(
        {},
        others=[
            *(device_class(name, selectors=[kind_is(kind)]) for name, kind in kinds.items()),
            make_slice("s", devices, node="n0", pool="pool"),
            *claims,
        ],
        resource_claims=(entry,),
    )


def of_template(build):
    """The same; the pod's claim was made from a template, and the pod says which it is."""

    def built(cluster):
        build(cluster)
        cluster.change_pod(
            "p", status={"resource_claim_statuses": ({"name": "d", "resourceClaimName": "p-d-x"},)}
        )

    return built


SLOW = make_class("slow", mode="Immediate")
FAR = make_volume("v", near={ZONE: ["b"]}, kept_for=make_claim("c", volume_name="v"))
TEMPLATE = {
    "accessModes": ["ReadWriteOnce"],
    "resources": {"requests": {"storage": "1Gi"}},
    "storageClassName": "wait",
}
VOLUMES = [
    Case(
        "no such claim",
        on({}, volumes=(claim_volume("c"),)),
        'persistentvolumeclaim "c" not found',
        "VolumeRestrictions",
    ),
    Case(
        "a claim that is not bound yet",
        on({}, others=[SLOW, make_claim("c", storage_class="slow")], volumes=(claim_volume("c"),)),
        "PersistentVolumeClaim c waits for a volume of StorageClass slow, which has no provisioner",
        "VolumeBinding",
    ),
    Case(
        "no such class of the claim",
        on({}, others=[make_class(), make_claim("c", storage_class="gone")], volumes=(claim_volume("c"),)),
        "StorageClass gone of PersistentVolumeClaim c does not exist",
        "VolumeBinding",
    ),
    Case(
        "a claim without volume and class",
        on({}, others=[make_claim("c", storage_class="")], volumes=(claim_volume("c"),)),
        "PersistentVolumeClaim c has neither a volume nor a StorageClass",
        "VolumeBinding",
    ),
    Case(
        "the claim's volume does not exist",
        on({}, others=[make_class(), make_claim("c", volume_name="gone")], volumes=(claim_volume("c"),)),
        "PersistentVolume gone of PersistentVolumeClaim c does not exist",
        "VolumeZone",
    ),
    Case(
        "the claim waits for a driver that no node has",
        on(
            {},
            others=[make_class(provisioner="d.example"), make_claim("c")],
            volumes=(claim_volume("c"),),
        ),
        "The volume of PersistentVolumeClaim c is to be made by d.example, which no node's CSINode has",
        state="InPreBind",
    ),
    Case(
        "no volume for the claim",
        on({}, others=[make_class(), make_claim("c")], volumes=(claim_volume("c"),)),
        "didn't find available persistent volumes to bind",
        "VolumeBinding",
    ),
    Case(
        "the volume is in another zone",
        on(
            ZONE_A, others=[make_class(), make_claim("c", volume_name="v"), FAR], volumes=(claim_volume("c"),)
        ),
        "PersistentVolume's node affinity",
        "VolumeBinding",
        ("NewNode",),
    ),
    Case(
        "the volume's own labels name another zone",
        on(
            ZONE_A,
            others=[
                make_class(),
                make_claim("c", volume_name="v"),
                make_volume("v", labels={ZONE: "b__c"}, kept_for=make_claim("c", volume_name="v")),
            ],
            volumes=(claim_volume("c"),),
        ),
        "no available volume zone",
        "VolumeZone",
        ("NewNode",),
    ),
    Case(
        "the claim is in use by one pod",
        on(
            {},
            others=[
                make_class(),
                make_claim("c", volume_name="v", modes=("ReadWriteOncePod",)),
                make_volume("v", modes=("ReadWriteOncePod",)),
            ],
            placed=[{"node_name": "n0", "volumes": (claim_volume("c"),)}],
            volumes=(claim_volume("c"),),
        ),
        "ReadWriteOncePod access mode already in-use",
        "VolumeRestrictions",
        ("Priority",),
    ),
    Case(
        "no more volumes on the node",
        on(
            {},
            others=[
                make_class(),
                make_claim("c", volume_name="v"),
                make_volume("v", driver="d.example"),
                make_csi_node("n0", {"d.example": 0}),
            ],
            volumes=(claim_volume("c"),),
        ),
        "exceed max volume count",
        "NodeVolumeLimits",
        ("NewNode",),
    ),
    Case(
        "a class that provisions nothing, beside one that does",
        on(
            {},
            others=[make_class(), make_class("fast", provisioner="d.example"), make_claim("c")],
            volumes=(claim_volume("c"),),
        ),
        "didn't find available persistent volumes to bind",
        "VolumeBinding",
        ("StorageClass",),
    ),
    Case(
        "the free volumes are of another class",
        on(
            {},
            others=[
                make_class(),
                make_class("local"),
                make_claim("c"),
                make_volume("v", storage_class="local"),
            ],
            volumes=(claim_volume("c"),),
        ),
        "didn't find available persistent volumes to bind",
        "VolumeBinding",
        ("StorageClass",),
    ),
    Case(
        "the claim of an ephemeral volume is of a class that provisions nothing",
        on(
            {},
            others=[
                make_class(),
                make_class("fast", provisioner="d.example"),
                make_claim("p-data", owner=make_pod("p")),
            ],
            volumes=({"name": "data", "ephemeral": {"volumeClaimTemplate": {"spec": TEMPLATE}}},),
        ),
        "didn't find available persistent volumes to bind",
        "VolumeBinding",
        ("StorageClass",),
    ),
    Case(
        "a class that binds at once is not proposed",
        on({}, others=[make_class(), SLOW, make_claim("c")], volumes=(claim_volume("c"),)),
        "didn't find available persistent volumes to bind",
        "VolumeBinding",
    ),
]

DEVICES = [
    Case(
        "no such claim of devices",
        on({}, resource_claims=(PodResourceClaim("d", "claim"),)),
        "DynamicResources keeps the pod out of the queue",
        state="NotQueued",
    ),
    Case(
        "all devices are taken",
        with_devices(["d0"], claims=[allocated("other", ("pool", "d0")), device_claim("d")]),
        "cannot allocate all claims",
        "DynamicResources",
        ("NewNode",),
    ),
    Case(
        "devices of another class",
        with_devices(["d0"], claims=[device_claim("d")], classes={"gpu": "big", "small": "small"}),
        "cannot allocate all claims",
        "DynamicResources",
        ("DeviceClass",),
    ),
    Case(
        "devices of another class, claimed by a template",
        of_template(
            with_devices(
                ["d0"],
                claims=[device_claim("p-d-x", owner=make_pod("p").uid)],
                classes={"gpu": "big", "small": "small"},
                entry=PodResourceClaim("d", resource_claim_template_name=DEVICE_TEMPLATE),
            )
        ),
        "cannot allocate all claims",
        "DynamicResources",
        ("DeviceClass",),
    ),
    Case(
        "no such class of devices",
        with_devices(["d0"], claims=[device_claim("d")], classes={"small": "small"}),
        "DeviceClass gpu of ResourceClaim d does not exist",
        "DynamicResources",
        ("DeviceClass",),
    ),
]


class Budget(Named, FilterPlugin):
    """A quota that has some CPU left, and says how much."""

    def __init__(self):
        super().__init__("Budget")
        self.milli_cpu = 1500

    def filter(self, state, pod, nodes):
        return np.full(len(nodes), fit_requests(pod)["cpu"] > self.milli_cpu, np.uint8)

    def filter_status(self, state, code):
        return unschedulable(f"over the quota of team: at most {self.milli_cpu}m of cpu").from_plugin(
            self.name
        )


QUOTAS = [
    Case(
        "over a quota",
        on({}, {}, cpu="2"),
        "over the quota of team: at most 1500m of cpu (Budget)",
        "Budget",
        ("Requests", "Quota"),
        plugins=lambda: (Budget(),),
    ),
    Case(
        "over a quota, and no node has the room",
        on({}, placed=[FULL], cpu="2"),
        "Insufficient cpu",
        "NodeResourcesFit",
        plugins=lambda: (Budget(),),
    ),
]


def gang(count):
    metadata = ObjectMeta(name="g", namespace="default", uid="g")
    return PodGroup(
        metadata=metadata, spec=PodGroupSpec(scheduling_policy=SchedulingPolicy(gang=GangPolicy(count)))
    )


MEMBER = {"scheduling_group": SchedulingGroup("g")}
HELD = [
    Case("a gate", on({}, gates=["billing"]), "scheduling gates: billing", state="Gated"),
    Case("two gates", on({}, gates=["billing", "data"]), "scheduling gates: billing, data", state="Gated"),
    Case(
        "a gate of a plugin",
        on({}),
        "Door keeps the pod out of the queue: Door is shut",
        state="NotQueued",
        plugins=lambda: (Gate("Door", "p"),),
    ),
    Case(
        "a gang without its group",
        on({}, **MEMBER),
        'GangScheduling keeps the pod out of the queue: waiting for pods\'s pod group "g"',
        state="NotQueued",
        options={"gates": GANGS},
    ),
    Case(
        "a gang with too few pods",
        on({}, others=[gang(3)], **MEMBER),
        "waiting for minCount pods from a gang to appear",
        state="NotQueued",
        options={"gates": GANGS},
    ),
    Case(
        "waits at Permit",
        on({}),
        "waits at Permit for Quorum (three more)",
        state="WaitingAtPermit",
        plugins=lambda: (Permits("Quorum", Status(Code.WAIT, ("three more",)), 60.0),),
    ),
    Case(
        "waits in PreBind",
        on({}),
        "waits in PreBind for Attach",
        state="InPreBind",
        plugins=lambda: (Slow("Attach"),),
    ),
    Case(
        "a wrong profile",
        on({}, scheduler_name="another"),
        'names the scheduler "another"',
        state="NotOurs",
    ),
    Case(
        "a plugin of one's own",
        on({}, {}),
        "The pod fits on no node: Quota is shut (Quota)",
        "Quota",
        plugins=lambda: (Doorkeeper("Quota"),),
    ),
    Case(
        "Reserve turns it down",
        on({}),
        "its last attempt failed because of Ledger",
        plugins=lambda: (Reserves("Ledger", unschedulable("no entry")),),
    ),
]

EXTENDERS = [
    Case(
        "an extender",
        on({}, {}),
        "The pod fits on no node: over quota (extender http://quota)",
        "extender http://quota",
        options={"extenders": [Refuses()]},
    ),
    Case(
        "an extender without a reason",
        on({}),
        "without a reason",
        "extender http://quota",
        ("NewNode",),
        options={"extenders": [Refuses(nodes={"n0": ""})]},
    ),
    Case(
        "an extender that fails",
        on({}),
        "extender http://quota: boom",
        state="BackingOff",
        options={"extenders": [Refuses(error=ConnectionError("boom"))]},
    ),
    Case(
        "an extender and cpu",
        on({}, {}, {}, placed=[FULL], cpu="2"),
        "2 of 3 nodes: over quota (extender http://quota)",
        "extender http://quota",
        options={"extenders": [Refuses()]},
    ),
    Case(
        "the second of two extenders",
        on({}, {}),
        "1 of 2 nodes: a (extender http://a); 1 other",
        "",
        ("NewNode",),
        options={"extenders": [Refuses("http://a", {"n0": "a"}), Refuses("http://b", {"n1": "b"})]},
    ),
]


CASES = [
    *RESOURCES,
    *TAINTS,
    *SELECTION,
    *SPREADING,
    *COMBINED,
    *VOLUMES,
    *DEVICES,
    *QUOTAS,
    *HELD,
    *EXTENDERS,
]
