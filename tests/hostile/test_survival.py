"""Beside any object that the API server lets through, another user's pod is bound and the process goes on."""

import json
from contextlib import suppress

import pytest

from tests.hostile.arena import API_VERSIONS, RESOURCES, node, pod
from tests.hostile.cases.devices import DRIVER, claim, device, device_class, resource_slice
from tests.unit.scheduler_at_work import eventually, scheduling

LONG = "9" * 5_000
"""An amount that the API server keeps as it is written."""
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def thing(kind, name, **fields):
    """An object of that kind, as the API server has it."""
    namespaced = kind not in RESOURCES or RESOURCES[kind].namespaced
    metadata = {
        "name": name,
        **({"namespace": "default"} if namespaced else {}),
        **fields.pop("metadata", {}),
    }
    version = API_VERSIONS.get(kind) or fields.pop("apiVersion")
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **fields}


def a_node(name, **status):
    """A node that says this of itself."""
    document = node(900)
    document["metadata"]["name"] = name
    document["status"].update(status)
    return document


def asks(cpu, name="hostile", **fields):
    """A pod that is placed and requests so much."""
    return pod(name, nodeName="node-0", container={"resources": {"requests": {"cpu": cpu}}}, **fields)


def volume_claim(storage="1", **spec):
    amounts = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage}}}
    return thing("PersistentVolumeClaim", "c", spec={**amounts, "storageClassName": "late", **spec})


def with_volume():
    return pod("hostile", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}])


def device_claim(*expressions, **exactly):
    made = claim("c", *(expressions or ("true",)))
    made["spec"]["devices"]["requests"][0]["exactly"].update(exactly)
    return thing("ResourceClaim", "c", spec=made["spec"])


def with_device():
    return pod("hostile", resourceClaims=[{"name": "c", "resourceClaimName": "c"}])


LATE = thing("StorageClass", "late", provisioner="x.example.com", volumeBindingMode="WaitForFirstConsumer")
DEVICES = (device_class(), resource_slice("node-0", [device(i) for i in range(4)], nodeName="node-0"))
MOST = str(2**63 - 1)

WRITTEN = {
    "a pod of 5,000 digits": [asks(LONG)],
    "a pod of 4,300 digits behind the point": [asks("0." + "1" * 4_400)],
    "pods of 64 bits each": [asks(MOST, "a"), asks(MOST, "b"), asks(f"{MOST}m", "c")],
    "a container's status of 5,000 digits": [
        asks(
            "1",
            status={"containerStatuses": [{"name": "main", "resources": {"requests": {"cpu": LONG}}}]},
        )
    ],
    "a node of 5,000 digits": [a_node("n", allocatable={"cpu": LONG, "pods": "9"})],
    "a node of 64 bits": [a_node("n", allocatable={"cpu": MOST, "pods": MOST, "memory": f"{MOST}E"})],
    "images of odd sizes": [
        a_node(
            "n",
            images=[
                {"names": ["a" * 100_000] * 5, "sizeBytes": -5},
                {"names": None, "sizeBytes": 2**63 - 1},
                {"names": ["app:1"], "sizeBytes": 2**63 - 1},
            ],
        )
    ],
    "5,000 taints": [
        {**a_node("n"), "spec": {"taints": [{"key": f"k{i}", "effect": "NoSchedule"} for i in range(5_000)]}}
    ],
    "5,000 declared features": [a_node("n", declaredFeatures=["a"] * 5_000)],
    "a region without a zone": [
        {**a_node("n"), "metadata": {"name": "n", "labels": {"topology.kubernetes.io/region": ""}}}
    ],
    "a volume claim of 5,000 digits": [LATE, volume_claim(LONG), with_volume()],
    "a volume claim with a selector that does not parse": [
        LATE,
        volume_claim(selector={"matchExpressions": [{"key": "a", "operator": "Wrong"}]}),
        with_volume(),
    ],
    "a volume claim whose volume has a line break": [LATE, volume_claim(volumeName="x\ny"), with_volume()],
    "drivers with limits below nought": [
        thing(
            "CSINode",
            "node-0",
            spec={"drivers": [{"name": "x", "nodeID": "a", "allocatable": {"count": -5}}]},
        )
    ],
    "a slice of 5,000 digits": [
        *DEVICES,
        resource_slice("s", [{"name": "d", "capacity": {"memory": {"value": LONG}}}], nodeName="node-1"),
    ],
    "counters below nought": [
        *DEVICES,
        resource_slice(
            "s",
            [{"name": "d", "consumesCounters": [{"counterSet": "a", "counters": {"m": {"value": "-9"}}}]}],
            nodeName="node-1",
            sharedCounters=[{"name": "b", "counters": {"m": {"value": "-1"}}}],
        ),
    ],
    "a slice whose selector does not parse": [
        *DEVICES,
        resource_slice(
            "s",
            [device(1)],
            nodeSelector={
                "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["x"]}]}]
            },
        ),
        device_claim(),
        with_device(),
    ],
    "an expression of 2,000 negations": [*DEVICES, device_claim("!" * 2_000 + "true"), with_device()],
    "an expression of 300 parentheses": [
        *DEVICES,
        device_claim("(" * 300 + "true" + ")" * 300),
        with_device(),
    ],
    "more devices than there are numbers": [*DEVICES, device_claim(count=2**62), with_device()],
    "a capacity request of 5,000 digits": [
        *DEVICES,
        device_claim(capacity={"requests": {"memory": LONG}}),
        with_device(),
    ],
    "an allocation of devices that are not there": [
        *DEVICES,
        {
            **device_claim(),
            "status": {
                "allocation": {
                    "devices": {
                        "results": [{"request": "z", "driver": "n", "pool": "x", "device": "y"}] * 32
                    },
                    "nodeSelector": {"nodeSelectorTerms": []},
                },
                "reservedFor": [{"resource": "pods", "name": "x", "uid": f"u{i}"} for i in range(256)],
            },
        },
        with_device(),
    ],
    "a nomination to a node that is not there": [pod("hostile", status={"nominatedNodeName": "no-such"})],
    "a node that is not there": [pod("hostile", nodeName="no-such")],
    "a start in the year 10000": [
        pod("hostile", nodeName="node-0", status={"startTime": "10000-01-01T00:00:00Z"})
    ],
    "a start in the year 0": [
        pod("hostile", nodeName="node-0", status={"startTime": "0000-01-01T00:00:00Z"})
    ],
    "a skew and domains of 31 bits": [
        pod(
            "hostile",
            topologySpreadConstraints=[
                {
                    "maxSkew": 2**31 - 1,
                    "minDomains": 2**31 - 1,
                    "topologyKey": "kubernetes.io/hostname",
                    "whenUnsatisfiable": "DoNotSchedule",
                    "labelSelector": {},
                }
            ],
        )
    ],
    "a bound of 5,000 digits": [
        pod(
            "hostile",
            affinity={
                "nodeAffinity": {
                    REQUIRED: {
                        "nodeSelectorTerms": [
                            {"matchExpressions": [{"key": "a", "operator": "Gt", "values": [LONG]}]}
                        ]
                    }
                }
            },
        )
    ],
    "a host address that is none": [
        pod("hostile", container={"ports": [{"containerPort": 80, "hostPort": 80, "hostIP": "x" * 1_000}]})
    ],
    "priorities at both ends": [pod("a", priority=2**31 - 1), pod("b", priority=-(2**31))],
    "5,000 owners": [
        thing(
            "Pod",
            "hostile",
            spec=pod("x")["spec"],
            metadata={
                "ownerReferences": [
                    {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"n{i}", "uid": f"u{i}"}
                    for i in range(5_000)
                ]
            },
        )
    ],
    "volumes with fields of other types": [
        pod(
            "hostile",
            volumes=[
                {"name": "a", "gcePersistentDisk": {"pdName": 5, "readOnly": "x"}},
                {"name": "b", "rbd": {"monitors": None}},
                {"name": "c", "ephemeral": {}},
            ],
        )
    ],
    "volumes of old plugins": [
        pod(
            "hostile",
            nodeName="node-0",
            volumes=[
                {"name": "a", "awsElasticBlockStore": {"volumeID": "\x01\n"}},
                {"name": "b", "azureDisk": {"diskName": "x"}},
                {"name": "c", "portworxVolume": {}},
                {"name": "d", "cinder": {}},
            ],
        )
    ],
    "300 services with selectors of many labels": [
        thing(
            "Service", f"s{i}", spec={"selector": {f"k{j}": "x" for j in range(20)}, "ports": [{"port": 80}]}
        )
        for i in range(300)
    ],
    "a budget whose selector does not parse": [
        thing(
            "PodDisruptionBudget",
            "b",
            spec={
                "minAvailable": 1,
                "selector": {"matchExpressions": [{"key": "a", "operator": "Wrong", "values": ["b"]}]},
            },
        )
    ],
    "a namespace of 2,000 labels": [
        thing("Namespace", "x", metadata={"labels": {f"l{i}": "x" * 60 for i in range(2_000)}}),
        pod(
            "hostile",
            affinity={
                "podAntiAffinity": {
                    REQUIRED: [
                        {
                            "topologyKey": "kubernetes.io/hostname",
                            "namespaceSelector": {},
                            "labelSelector": {"matchLabels": {"a": "b"}},
                        }
                    ]
                }
            },
        ),
    ],
    "a scheduler's name with a line break": [pod("hostile", schedulerName="x\ny" * 1_000)],
    "an image with a line break": [pod("hostile", container={"image": "x\ny"})],
}


@pytest.mark.parametrize("documents", WRITTEN.values(), ids=WRITTEN)
async def test_another_users_pod_is_bound(tmp_path, documents):
    async with scheduling(tmp_path / "kubeconfig", *(node(i) for i in range(3))) as (sandbox, core):
        sandbox.load(ready(documents))
        sandbox.load(ready([pod("ordinary")]))
        await bound(core, "ordinary")


@pytest.mark.parametrize(
    "said",
    [
        {
            "devices": [{"name": "d", "capacity": {"memory": {"value": LONG}}}],
            "sharedCounters": [{"name": "b", "counters": {"m": {"value": "1"}}}],
        },
        {
            "devices": [
                {
                    "name": "d",
                    "consumesCounters": [{"counterSet": "b", "counters": {"m": {"value": "1"}}}],
                }
            ],
            "sharedCounters": [{"name": "b", "counters": {"m": {"value": LONG}}}],
        },
    ],
)
async def test_one_slice_of_a_driver_does_not_stop_the_pods_that_use_others(tmp_path, said):
    hostile = resource_slice("s", [device(1)], nodeName="node-1")
    hostile["spec"] |= said
    ordinary = pod("ordinary", resourceClaims=[{"name": "c", "resourceClaimName": "c"}])
    there = (*(node(i) for i in range(3)), *DEVICES, hostile)
    async with scheduling(tmp_path / "kubeconfig", *there) as (sandbox, core):
        sandbox.load(ready([device_claim(f'device.driver == "{DRIVER}"'), ordinary]))
        await bound(core, "ordinary")


def ready(documents):
    """The objects, each pod of the default profile unless it names another."""
    for document in json.loads(json.dumps(documents)):
        if document["kind"] == "Pod":
            document["spec"].setdefault("schedulerName", "default-scheduler")
        yield document


async def bound(core, name):
    """Wait until the pod is on a node, or waits for one, or the process has ended."""
    found = {}

    def settled():
        placed = core.cache.find_pod("default", name)
        record = core.queue.record("default", name)
        found["on"] = placed.node_name if placed else ""
        return (
            found["on"]
            or core.queue.closed
            or (record is not None and record.attempts > 0 and not core.queue.ready())
        )

    with suppress(TimeoutError):
        await eventually(settled)
    assert found["on"], f"{name} was not bound"
