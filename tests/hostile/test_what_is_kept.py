"""What was made for an object goes with it: many come and go, and the scheduler is no larger afterwards.

Texts are long, so that a memory that counts its entries and not their bytes shows.
"""

import json
import re
import sys

import pytest

from tests.benchmarks.workloads import read_node
from tests.hostile.arena import node
from tests.hostile.deciding import PREFERRED, ZONE, a_core, a_pod, decide, place, remove
from tests.hostile.work import kept_bytes

MEBIBYTE = 1 << 20

TIMES, LONG = 24, 60_000
LITTLE = 1 << 16
LONG_AT_MOST = MEBIBYTE // 2
"""Of the 1.4 MB that came and went, where each memory of bounded size may hold `LITTLE`."""
SMALL_TIMES, SMALL_AT_MOST = 60, 4_000
"""Bytes for each of many small objects."""
SMALL_IN_ALL = SMALL_TIMES * SMALL_AT_MOST * 5


@pytest.fixture(autouse=True)
def little_memory(monkeypatch):
    """Let all that remembers up to so many bytes remember few, so that a test need not write so many."""
    bound_memories(monkeypatch, LITTLE)


def bound_memories(monkeypatch, most):
    for name, module in list(sys.modules.items()):
        if name.startswith("berth."):
            for constant in [each for each in vars(module) if re.fullmatch(r"MAX_([A-Z]+_)?BYTES", each)]:
                monkeypatch.setattr(module, constant, most)


def annotations(i):
    return {"annotations": {"a": f"{i}" + "z" * LONG}}


def selector(i):
    values = [f"{i}-{j}-" + "v" * 40 for j in range(LONG // 50)]
    outside = {"key": "app", "operator": "NotIn", "values": values}
    constraint = {"maxSkew": 5, "topologyKey": ZONE, "whenUnsatisfiable": "ScheduleAnyway"}
    selected = {"matchExpressions": [outside]}
    return {"topologySpreadConstraints": [{**constraint, "labelSelector": selected}]}


def preference(i):
    values = [f"{i}-{j}-" + "v" * 40 for j in range(LONG // 50)]
    wish = {
        "weight": 1,
        "preference": {"matchExpressions": [{"key": "x", "operator": "NotIn", "values": values}]},
    }
    return {"affinity": {"nodeAffinity": {PREFERRED: [wish]}}}


def tolerations(i):
    each = [{"key": f"{i}-{j}" + "k" * 40, "operator": "Exists"} for j in range(LONG // 50)]
    return {"tolerations": each}


def image(i):
    return {"container": {"image": f"{i}" + "x" * LONG}}


def disk(i):
    return {"volumes": [{"name": "v", "gcePersistentDisk": {"pdName": f"{i}" + "d" * LONG}}]}


def volume_claim(i):
    return {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": f"{i}" + "c" * LONG}}]}


def host_address(i):
    return {"container": {"ports": [{"containerPort": 80, "hostPort": 80, "hostIP": f"{i}" + "h" * LONG}]}}


@pytest.mark.parametrize(
    "shape",
    [
        annotations,
        selector,
        preference,
        tolerations,
        image,
        host_address,
        volume_claim,
    ],
)
def test_long_pods_that_were_decided_on(shape):
    core = a_core(3)

    def come_and_go():
        for i in range(TIMES):
            decide(core, a_pod(f"p{i}", **shape(i)))

    assert kept_bytes(come_and_go, enough=LONG_AT_MOST) < LONG_AT_MOST


@pytest.mark.parametrize(
    "shape",
    [
        annotations,
        selector,
        preference,
        tolerations,
        image,
        host_address,
        disk,
        volume_claim,
    ],
)
def test_long_pods_that_were_placed(shape):
    core = a_core(3)

    def come_and_go():
        for i in range(TIMES):
            remove(core, place(core, a_pod(f"p{i}", **shape(i))))

    assert kept_bytes(come_and_go, enough=LONG_AT_MOST) < LONG_AT_MOST


def test_pods_of_others_while_this_scheduler_has_nothing_to_do():
    """Beside another scheduler, pods come and go for days between two cycles.

    Every five seconds the snapshot follows the cache (SchedulingLoop.follow); nothing is kept beyond that.
    """
    core = a_core(3)

    def come_and_go():
        for i in range(TIMES):
            placed = a_pod(f"p{i}", **annotations(i)).placed_on("node-0")
            core.cache.add_pod(placed)
            core.cache.remove_pod(placed)
        core.cache.update_snapshot(core.snapshot)

    assert kept_bytes(come_and_go, enough=LONG_AT_MOST) < LONG_AT_MOST


def labels(i):
    return {"labels": {f"a{i}-{j}": "x" for j in range(50)}}


def resources(i):
    amounts = {f"example.com/r{i}-{j}": "0" for j in range(50)}
    return {"container": {"resources": {"requests": amounts, "limits": amounts}}}


def node_selector(i):
    return {"nodeSelector": {f"k{i}-{j}": "x" for j in range(50)}}


def topology_keys(i):
    each = {"maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {}}
    return {"topologySpreadConstraints": [{**each, "topologyKey": f"k{i}-{j}"} for j in range(50)]}


def host_ports(i):
    ports = [{"containerPort": 1 + j, "hostPort": 1 + j, "hostIP": f"10.{i}.{j}.1"} for j in range(50)]
    return {"container": {"ports": ports}}


def volumes(i):
    return {
        "volumes": [{"name": f"v{j}", "rbd": {"monitors": [f"{i}.{j}"], "image": "a"}} for j in range(50)]
    }


@pytest.mark.parametrize(
    "shape",
    [
        labels,
        host_ports,
        volumes,
        resources,
    ],
)
def test_pods_of_many_things_that_were_placed(shape):
    core = a_core()

    def come_and_go(numbers):
        for i in numbers:
            remove(core, place(core, a_pod(f"p{i}", **shape(i))))

    come_and_go(range(1_000, 1_020))

    assert kept_bytes(lambda: come_and_go(range(SMALL_TIMES)), enough=SMALL_IN_ALL) < SMALL_IN_ALL


@pytest.mark.parametrize(
    "shape",
    [
        labels,
        host_ports,
        node_selector,
        topology_keys,
    ],
)
def test_columns_of_pods_that_were_decided_on(shape, monkeypatch):
    """Columns are as long as the cluster: with thirty times the nodes, no more is kept.

    Their memories are full with few nodes, too: else their bound is the difference, or nearly.
    """
    bound_memories(monkeypatch, LITTLE // 4)

    def kept(nodes):
        core = a_core(nodes)
        decide(core, a_pod("first", **shape(1_000)))
        return kept_bytes(lambda: [decide(core, a_pod(f"p{i}", **shape(i))) for i in range(20)], times=1)

    kept(100)  # What all cores share is as full before the one as before the other.
    few = kept(100)
    # One column of a byte for each node would be 2,900 for each pod. Twice, where Python's table of interned
    # strings, 2 MB, is made anew for its next entry.
    assert any(kept(3_000) - few < 20 * SMALL_AT_MOST // 3 for _ in range(2))


def test_nodes_that_came_and_went():
    """An autoscaler's nodes have names, labels, taints, images and resources of their own."""
    core = a_core()

    def come_and_go(numbers):
        for i in numbers:
            document = node(10_000 + i)
            document["metadata"]["uid"] = f"uid-{i}"
            document["spec"] = {"taints": [{"key": "owner", "value": f"{i}", "effect": "NoSchedule"}]}
            document["status"]["images"] = [
                {"names": [f"registry/{i}-{j}"], "sizeBytes": 5} for j in range(10)
            ]
            document["status"]["allocatable"][f"example.com/{i}"] = "1"
            joined = read_node(json.dumps(document).encode())
            core.cache.add_node(joined)
            core.cache.update_snapshot(core.snapshot)
            decide(core, a_pod("p"))
            core.cache.remove_node(joined)
            core.cache.update_snapshot(core.snapshot)

    come_and_go(range(1_000, 1_040))

    assert kept_bytes(lambda: come_and_go(range(200)), enough=200 * 1_000) < 200 * 1_000
