"""What openb's nodes and tasks become in Kubernetes."""

import json
from collections import Counter

import pytest

from berth.demo.checker import summary
from berth.demo.dataset import OpenbFigures
from berth.demo.dataset.assignment import by_gpu
from berth.demo.dataset.kubernetes_objects import instance_type, node_document, openb_objects, pod_document
from berth.demo.dataset.shapes import NamedNode, NamedPod, NodeShape, PodShape
from berth.sandbox.server import RunningSandbox, SandboxOptions

CPU_TASK = PodShape(4000, 8192, 0, 0, (), "BE")
GPU_TASK = PodShape(12000, 16384, 1, 460, ("T4", "V100M16"), "LS")
FOUR_GPUS = PodShape(32000, 65536, 4, 1000, (), "Guaranteed")


def test_gpu_node():
    """A GPU node offers milli-GPUs, and says model and count in labels."""
    node = node_document("n", NodeShape(96000, 393216, 8, "G2"))

    offered = {"cpu": "96000m", "memory": "393216Mi", "pods": "250", "gpu-share.berth.dev/milli-gpu": "8000"}
    assert offered == node["status"]["allocatable"] == node["status"]["capacity"]
    assert node["metadata"]["labels"] == {
        "kubernetes.io/hostname": "n",
        "node.kubernetes.io/instance-type": "96c-384g-8xG2",
        "gpu-share.berth.dev/model": "G2",
        "gpu-share.berth.dev/count": "8",
    }
    assert [f"{c['type']}={c['status']}" for c in node["status"]["conditions"]] == ["Ready=True"]


def test_node_without_gpu():
    """A node without GPUs does not name them."""
    assert "gpu-share" not in json.dumps(node_document("n", NodeShape(32000, 65536, 0, "")))


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("32c-256g", NodeShape(32000, 262144, 0, "")),
        ("8c-60g-1xP100", NodeShape(8000, 61440, 1, "P100")),
        ("1500m-1000mi", NodeShape(1500, 1000, 0, "")),
    ],
)
def test_instance_type(name, shape):
    """A shape's name shows its figures, exactly."""
    assert name == instance_type(shape)


def test_share_of_a_gpu():
    """A pod with part of a GPU requests and limits it, and annotates what the plugin reads."""
    pod = pod_document("p", GPU_TASK, "gpu-share")

    assert pod["spec"]["containers"][0]["resources"] == {
        "requests": {"cpu": "12000m", "memory": "16384Mi", "gpu-share.berth.dev/milli-gpu": "460"},
        "limits": {"gpu-share.berth.dev/milli-gpu": "460"},
    }
    assert pod["metadata"]["annotations"] == {
        "gpu-share.berth.dev/count": "1",
        "gpu-share.berth.dev/milli": "460",
        "gpu-share.berth.dev/models": "T4|V100M16",
    }


def test_several_gpus():
    """Several GPUs are asked for whole, of any model when none is named."""
    pod = pod_document("p", FOUR_GPUS, "gpu-share")

    assert pod["spec"]["containers"][0]["resources"]["limits"]["gpu-share.berth.dev/milli-gpu"] == "4000"
    assert pod["metadata"]["annotations"] == {
        "gpu-share.berth.dev/count": "4",
        "gpu-share.berth.dev/milli": "1000",
    }


def test_task_without_gpu():
    """A pod without GPUs has no limits and no annotations."""
    pod = pod_document("p", CPU_TASK, "bin-packing")

    assert pod["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "4000m", "memory": "8192Mi"}}
    assert "annotations" not in pod["metadata"]
    assert pod["metadata"]["labels"] == {"app": "openb", "qos": "BE"}


@pytest.mark.parametrize("seed", range(5))
def test_assignment(seed):
    """GPU pods go to one profile; of the others, every second goes to each of two, whatever the seed."""
    shapes = [CPU_TASK, GPU_TASK, CPU_TASK] * 50
    schedulers = by_gpu(seed)(shapes)

    assert Counter(schedulers) == {"gpu-share": 50, "default-scheduler": 50, "bin-packing": 50}
    assert schedulers[1::3] == ["gpu-share"] * 50
    assert schedulers == by_gpu(seed)(shapes)


def test_creation_order():
    """The namespace comes before what lives in it, nodes before pods."""
    objects = openb_objects(
        [NamedNode("n", NodeShape(1000, 1024, 0, ""))], [NamedPod("p", CPU_TASK)], by_gpu()
    )

    assert [o["kind"] for o in objects.in_creation_order()] == ["Namespace", "Node", "Pod"]


def test_no_shared_parts():
    """Two documents share no mutable part, so changing one leaves the other alone."""
    first, second = node_document("n", NodeShape(1, 1, 0, "")), node_document("n", NodeShape(1, 1, 0, ""))
    first["status"]["capacity"]["cpu"] = "2"

    assert second["status"]["capacity"]["cpu"] == first["status"]["allocatable"]["cpu"] == "1m"


def test_the_sandbox_takes_them():
    """The sandbox's API creates every node of the trace and pods of it, and changes no amount."""
    objects = OpenbFigures().load()
    del objects.pods[500:]
    sandbox = RunningSandbox(SandboxOptions())

    assert sandbox.load(objects.in_creation_order()) == 1 + 1523 + 500
    nodes, pods = (
        [e.decode() for e in sandbox.store.collection(name).entries()] for name in ("nodes", "pods")
    )
    assert summary(nodes, pods) == summary(objects.nodes, objects.pods)
