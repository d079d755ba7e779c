"""Core 1.4, 1.5 and 11.1: what changed in a pod or a node."""

import msgspec
import pytest
from msgspec.structs import replace

from berth.framework.queueing.object_events import node_events, pod_events
from berth.objects.node import Node, NodeCondition
from berth.objects.pods.pod import ContainerStatus, Pod, PodCondition
from berth.objects.pods.pod_spec import Container, Resources
from berth.objects.taint import Taint, Toleration
from berth.testing.builders import make_node, make_pod


def labels_of(events):
    return [event.label for event in events]


def with_status(pod: Pod, **fields) -> Pod:
    return replace(pod, status=replace(pod.status, **fields))


def changed(node: Node, part: str, **fields) -> Node:
    return replace(node, **{part: replace(getattr(node, part), **fields)})


POD = make_pod(requests={"cpu": "500m", "memory": "1Gi"}, gates=["a", "b"], tolerations=(Toleration("t"),))


def pod_with(**fields):
    return make_pod(
        **{
            "requests": {"cpu": "500m", "memory": "1Gi"},
            "gates": ["a", "b"],
            "tolerations": (Toleration("t"),),
            **fields,
        }
    )


@pytest.mark.parametrize(
    ("new", "changes"),
    [
        pytest.param(POD, ["Update"], id="nothing"),
        pytest.param(pod_with(labels={"a": "b"}), ["UpdatePodLabel"], id="1: labels"),
        pytest.param(
            pod_with(requests={"cpu": "400m", "memory": "1Gi"}), ["UpdatePodScaleDown"], id="2: less"
        ),
        pytest.param(pod_with(requests={"cpu": "500m"}), ["UpdatePodScaleDown"], id="2: one request gone"),
        pytest.param(pod_with(requests={"cpu": "600m", "memory": "1Gi"}), ["Update"], id="2: more"),
        pytest.param(pod_with(requests={"cpu": "0.5", "memory": "1024Mi"}), ["Update"], id="2: same amounts"),
        pytest.param(pod_with(gates=["b"]), ["Update"], id="3: a gate of two"),
        pytest.param(pod_with(gates=[]), ["UpdatePodSchedulingGatesEliminated"], id="3: all gates"),
        pytest.param(pod_with(tolerations=()), ["UpdatePodToleration"], id="4: number of tolerations"),
        pytest.param(pod_with(tolerations=(Toleration("u"),)), ["Update"], id="4: same number"),
        pytest.param(
            with_status(POD, resource_claim_statuses=({"name": "c", "resourceClaimName": "x"},)),
            ["UpdatePodGeneratedResourceClaim"],
            id="5: claim statuses",
        ),
        pytest.param(
            with_status(POD, extended_resource_claim_status={"resourceClaimName": "x"}),
            ["UpdatePodGeneratedResourceClaim"],
            id="5: extended resource claim",
        ),
        pytest.param(with_status(POD, phase="Running"), ["Update"], id="status only"),
        pytest.param(
            pod_with(labels={"a": "b"}, requests={"cpu": "400m"}, gates=[], tolerations=()),
            [
                "UpdatePodLabel",
                "UpdatePodScaleDown",
                "UpdatePodSchedulingGatesEliminated",
                "UpdatePodToleration",
            ],
            id="all, in order",
        ),
    ],
)
@pytest.mark.parametrize(("node", "prefix"), [("", "UnschedulablePod"), ("n1", "AssignedPod")])
def test_pod_events(new, changes, node, prefix):
    """1.4: each detector gives its event, in order; without any there is one general update."""
    assert [prefix + change for change in changes] == labels_of(pod_events(POD, new.placed_on(node)))


def test_the_new_pod_says_what_kind_it_is():
    """1.4: a pod that just got its node is an assigned one."""
    assert labels_of(pod_events(POD, POD.placed_on("n1"))) == ["AssignedPodUpdate"]


def resized(spec, actual, *conditions):
    pod = make_pod(containers=[Container("c", resources=Resources(requests={"cpu": spec}))], node_name="n1")
    status = ContainerStatus("c", Resources(requests={"cpu": actual}), {"cpu": actual})
    return with_status(pod, container_statuses=(status,), conditions=conditions)


def test_a_resize_counts_once_it_is_actuated():
    """1.4.2: a smaller request frees nothing before the status says so."""
    before, asked, done = resized("2", "2"), resized("1", "2"), resized("1", "1")

    assert labels_of(pod_events(before, asked)) == ["AssignedPodUpdate"]
    assert labels_of(pod_events(asked, done)) == ["AssignedPodUpdatePodScaleDown"]


def test_an_infeasible_resize_gives_back():
    """1.4.2: a larger request that turns out to be infeasible counts no longer."""
    infeasible = PodCondition("PodResizePending", "True", "Infeasible")

    assert labels_of(pod_events(resized("4", "2"), resized("4", "2", infeasible))) == [
        "AssignedPodUpdatePodScaleDown"
    ]


NODE = make_node(labels={"zone": "a"}, taints=[Taint("a"), Taint("b")])


@pytest.mark.parametrize(
    ("new", "changes"),
    [
        pytest.param(NODE, [], id="nothing"),
        pytest.param(changed(NODE, "spec", unschedulable=True), [], id="1: cordoned"),
        pytest.param(
            changed(NODE, "status", allocatable={"cpu": "8"}), ["UpdateNodeAllocatable"], id="2: allocatable"
        ),
        pytest.param(
            changed(NODE, "status", allocatable={"cpu": "4000m", "memory": "16384Mi", "pods": 110}),
            [],
            id="2: written another way",
        ),
        pytest.param(changed(NODE, "metadata", labels={}), ["UpdateNodeLabel"], id="3: labels"),
        pytest.param(
            changed(NODE, "spec", taints=(Taint("b"), Taint("a"))), ["UpdateNodeTaint"], id="4: taint order"
        ),
        pytest.param(
            changed(NODE, "status", conditions=(NodeCondition("Ready", "True"),)),
            ["UpdateNodeCondition"],
            id="5: conditions",
        ),
        pytest.param(
            changed(NODE, "metadata", annotations={"a": "b"}), ["UpdateNodeAnnotation"], id="6: annotations"
        ),
        pytest.param(
            changed(NODE, "status", declared_features=("x",)),
            ["UpdateNodeDeclaredFeature"],
            id="7: declared features",
        ),
    ],
)
def test_node_events(new, changes):
    """1.5: each detector gives its event; what pods cannot wait for gives none."""
    assert [f"Node{change}" for change in changes] == labels_of(node_events(NODE, new))


def test_uncordoning_and_taints():
    """1.5: a node that is uncordoned and loses a taint says so twice."""
    cordoned = changed(NODE, "spec", unschedulable=True)
    free = changed(NODE, "spec", taints=())

    assert labels_of(node_events(cordoned, NODE)) == ["NodeUpdateNodeTaint"]
    assert labels_of(node_events(cordoned, free)) == ["NodeUpdateNodeTaint"] * 2


def test_several_changes_of_a_node():
    """11.1.1: allocatable comes before labels."""
    new = changed(changed(NODE, "metadata", labels={}), "status", allocatable={"cpu": "1"})

    assert labels_of(node_events(NODE, new)) == ["NodeUpdateNodeAllocatable", "NodeUpdateNodeLabel"]


def test_declared_features_have_a_gate():
    """1.5.7: without NodeDeclaredFeatures they are not compared."""
    new = changed(NODE, "status", declared_features=("x",))

    assert node_events(NODE, new, declared_features=False) == []


def test_a_heartbeat():
    """11.1.2: times, reasons and messages of conditions do not count."""

    def beat(time):
        condition = {"type": "Ready", "status": "True", "lastHeartbeatTime": time, "reason": time}
        return msgspec.convert({"status": {"conditions": [condition]}}, Node)

    assert node_events(beat("1"), beat("2")) == []
