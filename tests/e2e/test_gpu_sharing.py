"""The GPU-sharing experiment on a cluster of four nodes: the draw, and a run through real processes."""

import msgspec
import pytest

from berth.demo.dataset import open_dataset
from berth.demo.dataset.shapes import MILLI_GPU
from tests.benchmarks.gpu_sharing_alone import alone
from tests.benchmarks.gpu_sharing_draw import drawn, milli_gpu
from tests.benchmarks.gpu_sharing_run import allocation

FEW_NODES = 4
GPUS_OF_A_NODE = 8_000


@pytest.fixture(scope="module")
def small():
    """Return the trace's tasks with four of its nodes that have 8 GPUs, and one without."""
    objects = open_dataset(None, seed=0).load()
    gpus = [node for node in objects.nodes if capacity([node]) == GPUS_OF_A_NODE]
    without = [node for node in objects.nodes if MILLI_GPU not in node["status"]["allocatable"]]
    return msgspec.structs.replace(objects, nodes=[*gpus[:FEW_NODES], without[0]])


def capacity(nodes):
    return sum(int(node["status"]["allocatable"].get(MILLI_GPU, 0)) for node in nodes)


def test_the_draw_ends_at_the_demand(small):
    """Only nodes with GPUs count; the tasks ask for no more than the demand, and nearly for it."""
    experiment = drawn(small, 1.3, seed=1)
    asked = sum(map(milli_gpu, experiment.pods))

    assert len(experiment.nodes) == FEW_NODES
    assert 0 <= 1.3 * capacity(experiment.nodes) - asked < 8_000
    assert sum(kind["number"] for kind in experiment.workload) == len(small.pods)


def test_the_draw_is_seeded(small):
    """A seed draws the same tasks again, another one others; a task may come twice."""
    once, again, other = (drawn(small, 200, seed).pods for seed in (1, 1, 2))

    assert once == again
    assert once != other
    names = [pod["metadata"]["name"] for pod in once]
    assert names == sorted(names)


async def test_a_run_is_what_the_plugin_alone_decides(small):
    """Every task is decided through real processes, and as the plugin decides when it is driven directly."""
    experiment = drawn(small, 1.3, seed=1)
    figures = await allocation(experiment, "fgd", "used-first", seed=1)
    directly = alone(experiment, "fgd", "used-first", seed=1)

    assert figures["pods"] == len(experiment.pods)
    assert 0 < figures["bound"] < figures["pods"]
    assert 50 < figures["allocation"] <= 100
    assert [figures[name] for name in ("allocation", "bound")] == [
        directly[name] for name in ("allocation", "bound")
    ]
