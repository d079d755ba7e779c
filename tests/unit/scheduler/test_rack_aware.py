"""The plugin rack-aware as a process, a whole scheduler, and a sandbox with racks and gangs."""

import pytest

from tests.go_toolchain import ROOT, build
from tests.sockets import serving
from tests.unit.scheduler_at_work import eventually, node, scheduling

FOLDER = ROOT / "out-of-tree-plugins/rack-aware"
GATES = {"GenericWorkload": True, "GangScheduling": True, "TopologyAwareWorkloadScheduling": True}
RACK, ZONE = "topology.kubernetes.io/rack", "topology.kubernetes.io/zone"
PREFERRED = "rack-aware.berth.dev/preferred-racks"
SIZE = 4


def gang(name, key, preferred=None):
    """A group that needs all of its pods on nodes of one value of the label, and the pods: a core each."""
    container = {"name": "main", "image": "image", "resources": {"requests": {"cpu": "1"}}}
    annotations = {PREFERRED: preferred} if preferred else {}
    yield {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "schedulingPolicy": {"gang": {"minCount": SIZE}},
            "schedulingConstraints": {"topology": [{"key": key}]},
        },
    }
    for number in range(SIZE):
        yield {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"{name}-{number}", "namespace": "default", "annotations": annotations},
            "spec": {"schedulingGroup": {"podGroupName": name}, "containers": [container]},
        }


def racks(**nodes):
    """Nodes of four cores by rack, such as r1=("z1", 2): a zone, and how many."""
    return [
        node(f"{rack}-{number}", **{RACK: rack, ZONE: zone})
        for rack, (zone, count) in nodes.items()
        for number in range(count)
    ]


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """The plugin's program."""
    return build(".", tmp_path_factory.mktemp("rack-aware") / "rack-aware", folder=FOLDER)


def racks_of(sandbox, name):
    """The racks of the gang's pods, one for each pod that has a node."""
    pods = (entry.decode() for entry in sandbox.store.collection("pods").entries())
    mine = [each["spec"].get("nodeName") for each in pods if each["metadata"]["name"].startswith(f"{name}-")]
    return [each.rpartition("-")[0] for each in mine if each]


@pytest.mark.parametrize("preferred", ["r1", "r2", "r3"])
async def test_a_gang_goes_to_the_rack_that_it_prefers(program, tmp_path, preferred):
    """Of three racks that are alike it takes the one that its pods name, wherever that stands."""
    documents = [
        *racks(r1=("z1", 1), r2=("z1", 1), r3=("z1", 1)),
        *gang("gang", RACK, f"nowhere, {preferred}"),
    ]
    async with (
        serving(program) as address,
        scheduling(tmp_path / "kubeconfig", *documents, sidecars={"rack-aware": address}, gates=GATES) as (
            sandbox,
            _,
        ),
    ):
        await eventually(lambda: len(racks_of(sandbox, "gang")) == SIZE)

        assert {preferred} == set(racks_of(sandbox, "gang"))


async def test_a_rack_without_room_is_passed_over(program, tmp_path):
    """A preference is no demand: where the preferred rack is full, the next of the list has the next gang."""
    first, second = gang("first", RACK, "r2, r3"), gang("second", RACK, "r2, r3")
    documents = [*racks(r1=("z1", 1), r2=("z1", 1), r3=("z1", 1)), *first]
    async with (
        serving(program) as address,
        scheduling(tmp_path / "kubeconfig", *documents, sidecars={"rack-aware": address}, gates=GATES) as (
            sandbox,
            _,
        ),
    ):
        await eventually(lambda: len(racks_of(sandbox, "first")) == SIZE)
        sandbox.load(list(second))
        await eventually(lambda: len(racks_of(sandbox, "second")) == SIZE)

        assert [{"r2"}, {"r3"}] == [set(racks_of(sandbox, name)) for name in ("first", "second")]


@pytest.mark.parametrize("whole_zone", ["z1", "z3"])
async def test_a_gang_goes_where_it_needs_the_fewest_racks(program, tmp_path, whole_zone):
    """In one zone a core is free on each of four racks, in the other four are on one."""
    apart = racks(**{f"s{number}": ("z2", 1) for number in range(SIZE)})
    for each in apart:
        each["status"]["allocatable"] = {"cpu": "1", "memory": "64Gi", "pods": "20"}
    documents = [*apart, *racks(whole=(whole_zone, 1)), *gang("gang", ZONE)]
    async with (
        serving(program) as address,
        scheduling(tmp_path / "kubeconfig", *documents, sidecars={"rack-aware": address}, gates=GATES) as (
            sandbox,
            _,
        ),
    ):
        await eventually(lambda: len(racks_of(sandbox, "gang")) == SIZE)

        assert {"whole"} == set(racks_of(sandbox, "gang"))
