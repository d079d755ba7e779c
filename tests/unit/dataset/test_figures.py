"""The condensed table rebuilds the trace's cluster: the same shapes, as often, and the same totals."""

import json
from collections import Counter
from pathlib import Path

import pytest

from berth.demo.dataset import BrokenLineError, ManifestFiles, OpenbFigures, OpenbFiles, open_dataset
from berth.demo.dataset.condense import condense, main, render
from berth.demo.dataset.figures_source import package_figures, parse_figures

TRACE = Path(__file__).parents[4] / "shared" / "data" / "openb"
needs_trace = pytest.mark.skipif(
    not TRACE.is_dir(), reason="the openb CSV files are not beside the repository"
)
MILLI_GPU = "gpu-share.berth.dev/milli-gpu"


@pytest.fixture(scope="module")
def rebuilt():
    return OpenbFigures(seed=0).load()


def node_total(objects, resource, suffix=""):
    offers = (node["status"]["allocatable"] for node in objects.nodes)
    return sum(int(offer.get(resource, "0").removesuffix(suffix)) for offer in offers)


def pod_total(objects, resource, suffix=""):
    wants = (pod["spec"]["containers"][0]["resources"]["requests"] for pod in objects.pods)
    return sum(int(want.get(resource, "0").removesuffix(suffix)) for want in wants)


def shapes(documents):
    """Count documents by everything but their name and their scheduler."""
    return Counter(
        json.dumps(
            {
                "labels": {k: v for k, v in d["metadata"]["labels"].items() if k != "kubernetes.io/hostname"},
                "annotations": d["metadata"].get("annotations"),
                "containers": d["spec"].get("containers"),
                "status": d.get("status"),
            },
            sort_keys=True,
        )
        for d in documents
    )


def test_known_totals(rebuilt):
    """The cluster has the published number of nodes, GPUs and pods, and the trace's sums."""
    assert (
        len(rebuilt.nodes),
        sum(MILLI_GPU in node["status"]["allocatable"] for node in rebuilt.nodes),
        len(rebuilt.pods),
    ) == (1523, 1213, 8152)
    assert (
        node_total(rebuilt, "cpu", "m"),
        node_total(rebuilt, "memory", "Mi"),
        node_total(rebuilt, MILLI_GPU),
    ) == (125_514_000, 612_028_416, 6_212_000)
    assert (
        pod_total(rebuilt, "cpu", "m"),
        pod_total(rebuilt, "memory", "Mi"),
        pod_total(rebuilt, MILLI_GPU),
    ) == (85_436_012, 303_546_211, 6_086_800)


def test_profiles(rebuilt):
    """Pods with GPUs go to gpu-share, the others in equal parts to the other two."""
    expected = {"gpu-share": 7064, "default-scheduler": 544, "bin-packing": 544}

    assert expected == Counter(pod["spec"]["schedulerName"] for pod in rebuilt.pods)


def test_names(rebuilt):
    """Names count up from 0 in the order of the list."""
    assert (name(rebuilt.nodes[0]), name(rebuilt.nodes[-1])) == ("openb-node-0000", "openb-node-1522")
    assert (name(rebuilt.pods[0]), name(rebuilt.pods[-1])) == ("openb-pod-0000", "openb-pod-8151")
    assert len({name(pod) for pod in rebuilt.pods}) == 8152


def name(document):
    return document["metadata"]["name"]


def test_order_follows_the_seed(rebuilt):
    """A seed gives one order, another seed another one of the same pods."""
    other = OpenbFigures(seed=1).load()

    assert rebuilt == OpenbFigures(seed=0).load()
    assert rebuilt.pods != other.pods
    assert shapes(rebuilt.pods) == shapes(other.pods)


@needs_trace
def test_same_as_the_trace(rebuilt):
    """The trace's files and the condensed table give the same nodes and pods, names and order aside."""
    original = OpenbFiles(TRACE).load()

    assert shapes(original.nodes) == shapes(rebuilt.nodes)
    assert shapes(original.pods) == shapes(rebuilt.pods)
    for resource, suffix in (("cpu", "m"), ("memory", "Mi"), (MILLI_GPU, "")):
        assert node_total(original, resource, suffix) == node_total(rebuilt, resource, suffix)
        assert pod_total(original, resource, suffix) == pod_total(rebuilt, resource, suffix)


@needs_trace
def test_committed_table_is_the_condensed_trace():
    """Condensing the trace again gives the table that is in the package."""
    assert package_figures() == condense(TRACE)


@needs_trace
def test_gpu_nodes_alone():
    """The list of GPU nodes can be chosen instead of all nodes."""
    objects = open_dataset(TRACE, nodes_file="openb_node_list_gpu_node.csv").load()

    assert (len(objects.nodes), node_total(objects, MILLI_GPU)) == (1213, 6_212_000)


def test_condensed_table_reads_back():
    """What is written out is what was read."""
    figures = package_figures()
    nodes, pods = (text.encode() for text in render(figures).values())

    assert figures == parse_figures(nodes, pods)


def test_condense_as_a_command(tmp_path, capsys):
    """The command ends with exit code 2 and one line where the folder holds no trace."""
    assert main([str(tmp_path), str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_condense_needs_two_arguments(capsys):
    """Without its two folders the command says how to call it."""
    assert main([]) == 2
    assert capsys.readouterr().err.startswith("usage: ")


@pytest.mark.parametrize(
    ("nodes", "says"),
    [
        ("count,cpu_milli,memory_mib,gpu,model\n0,1,1,0,\n", ":2: column 1 (count): found '0'"),
        ("count,cpu_milli,memory_mib,gpu,model\n1,1,1,0,\n2,1,1,0,\n", ":3: column 1 (count): found 2"),
        ("cpu_milli,memory_mib,gpu,model\n1,1,0,\n", ":1: header: found"),
    ],
)
def test_broken_table(nodes, says):
    """A condensed table is read as strictly as the trace."""
    with pytest.raises(BrokenLineError) as caught:
        parse_figures(nodes.encode(), b"")

    assert f"openb_node_shapes.csv{says}" in str(caught.value)


def test_open_dataset(tmp_path):
    """No path is the condensed trace, a folder with its files is openb, anything else is manifests."""
    (tmp_path / "pods.yaml").touch()
    assert isinstance(open_dataset(), OpenbFigures)
    assert isinstance(open_dataset(tmp_path), ManifestFiles)
    assert isinstance(open_dataset(tmp_path / "pods.yaml"), ManifestFiles)
    (tmp_path / "openb_pod_list_default.csv").touch()
    assert isinstance(open_dataset(tmp_path), OpenbFiles)
