"""The plugin coscheduling as a process, a whole scheduler, and a sandbox that knows PodGroups."""

import socket
from contextlib import asynccontextmanager

import pytest
import yaml

from berth.client import Api, load_endpoint
from berth.client.resources import PODS
from berth.sandbox import SandboxOptions
from tests.go_toolchain import ROOT, build
from tests.sockets import serving
from tests.unit.client.conftest import transport_to
from tests.unit.scheduler_at_work import eventually, node, scheduling

FOLDER = ROOT / "out-of-tree-plugins/coscheduling"
KIND = ROOT / "kustomize/third-party-crds/podgroups.yaml"
MEMBERS = 5
"""Of eight places: each gang needs more than half of the cluster."""


def kind():
    """The PodGroup's definition."""
    return yaml.safe_load(KIND.read_text(encoding="utf-8"))


def group(name, age):
    """A group of five pods, younger by its age."""
    return {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {
            "name": name,
            "namespace": "default",
            "creationTimestamp": f"2026-01-01T00:00:0{age}Z",
        },
        "spec": {"minMember": MEMBERS, "scheduleTimeoutSeconds": 60},
    }


def pod(gang, number, priority=0):
    """A pod that takes a core, for one of eight places."""
    container = {"name": "main", "image": "image", "resources": {"requests": {"cpu": "1"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{gang}-{number}",
            "namespace": "default",
            "labels": {"scheduling.x-k8s.io/pod-group": gang},
        },
        "spec": {"schedulerName": "default-scheduler", "priority": priority, "containers": [container]},
    }


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """The plugin's program."""
    return build(".", tmp_path_factory.mktemp("coscheduling") / "coscheduling", folder=FOLDER)


def places(sandbox, gang):
    """How many pods of the gang have a node."""
    pods = (entry.decode() for entry in sandbox.store.collection("pods").entries())
    mine = [each for each in pods if each["metadata"]["name"].startswith(gang)]
    return sum(1 for each in mine if each["spec"].get("nodeName"))


async def ends(kubeconfig, gang):
    """Delete the gang's pods."""
    async with transport_to(load_endpoint(kubeconfig=str(kubeconfig), environ={})) as transport:
        for number in range(MEMBERS):
            await Api(transport).delete(PODS, "default", f"{gang}-{number}")


async def test_two_gangs_that_block_each_other(program, tmp_path):
    """Of two gangs that each need more than half of the cluster one runs, whole, and then the other, whole.

    Priorities make the scheduler take their pods by turns, so that both hold places which the other needs.
    Nothing is preempted here: a gang whose pod is preempted at Permit begins anew, which is another claim.
    """
    kubeconfig = tmp_path / "kubeconfig"
    async with serving(program) as address:
        documents = [kind(), node("n0"), node("n1")]
        at_work = scheduling(
            kubeconfig, *documents, sidecars={"coscheduling": address}, without=("DefaultPreemption",)
        )
        async with at_work as (sandbox, _):
            for number in range(MEMBERS):
                sandbox.load([pod("old", number, 20 - 2 * number), pod("new", number, 19 - 2 * number)])
            sandbox.load([group("old", 1), group("new", 2)])
            await eventually(lambda: places(sandbox, "old") == MEMBERS)
            assert 0 == places(sandbox, "new")

            await ends(kubeconfig, "old")
            await eventually(lambda: places(sandbox, "new") == MEMBERS)


async def test_a_gang_that_is_not_complete(program, tmp_path):
    """Pods of a gang stay away from the nodes until the gang is there; other pods are not held up."""
    async with serving(program) as address:
        documents = [kind(), node("n0"), node("n1"), group("gang", 1)]
        async with scheduling(tmp_path / "kubeconfig", *documents, sidecars={"coscheduling": address}) as (
            sandbox,
            _,
        ):
            sandbox.load([pod("gang", number) for number in range(MEMBERS - 1)])
            alone = pod("alone", 0)
            del alone["metadata"]["labels"]
            sandbox.load([alone])
            await eventually(lambda: places(sandbox, "alone") == 1)
            assert 0 == places(sandbox, "gang")

            sandbox.load([pod("gang", MEMBERS - 1)])
            await eventually(lambda: places(sandbox, "gang") == MEMBERS)


def a_port():
    """A port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@asynccontextmanager
async def reporting(program, tmp_path, *documents):
    """A scheduler with the plugin, which writes statuses to the sandbox."""
    port = a_port()
    server = {"BERTH_COSCHEDULING_API_SERVER": f"http://127.0.0.1:{port}"}
    async with (
        serving(program, **server) as address,
        scheduling(
            tmp_path / "kubeconfig",
            kind(),
            *documents,
            sidecars={"coscheduling": address},
            options=SandboxOptions(port=port),
        ) as (sandbox, _),
    ):
        yield sandbox


def status(sandbox):
    """The only PodGroup's status."""
    (entry,) = sandbox.store.collection("podgroups.scheduling.x-k8s.io").entries()
    return entry.decode().get("status", {})


async def test_a_groups_status(program, tmp_path):
    """It tells how far the group has come: too few pods, enough, all at work, all done."""
    async with reporting(program, tmp_path, node("n0"), node("n1"), group("gang", 1)) as sandbox:
        sandbox.load([owned("gang", number) for number in range(MEMBERS - 1)])
        await eventually(lambda: status(sandbox).get("phase") == "Pending")
        assert "occupiedBy" not in status(sandbox)

        sandbox.load([owned("gang", MEMBERS - 1)])
        await eventually(lambda: status(sandbox).get("phase") == "Running")
        told = status(sandbox)
        assert (MEMBERS, MEMBERS, "default/job") == (told["scheduled"], told["running"], told["occupiedBy"])

        await eventually(lambda: status(sandbox).get("phase") == "Finished")
        assert MEMBERS == status(sandbox)["succeeded"]


def owned(gang, number):
    """A pod of a Job's, which is done after two seconds."""
    made = pod(gang, number)
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "job", "uid": "job"}
    made["metadata"] |= {
        "ownerReferences": [owner],
        "annotations": {"sandbox.berth.dev/run-seconds": "2"},
    }
    return made


def of_role(gang, role, number, cpu="1"):
    """A pod of that role."""
    made = pod(gang, f"{role}-{number}")
    made["metadata"]["labels"]["coscheduling.berth.dev/role"] = role
    made["spec"]["containers"][0]["resources"]["requests"]["cpu"] = cpu
    return made


def needs(minimum, **resources):
    """A group with minimums by role, and of resources."""
    made = group("gang", 1)
    made["metadata"]["annotations"] = {"coscheduling.berth.dev/min-members": minimum} if minimum else {}
    made["spec"] = {"minMember": 2, **({"minResources": resources} if resources else {})}
    return made


async def test_workers_leave_room_for_the_role_that_lacks_pods(program, tmp_path):
    """Six workers of a core and one server of two, on eight cores: all wait for the server."""
    documents = [node("n0"), node("n1"), needs("server=1,worker=2")]
    async with reporting(program, tmp_path, *documents) as sandbox:
        sandbox.load([of_role("gang", "worker", number) for number in range(6)])
        await another_is_placed(sandbox)
        assert 0 == places(sandbox, "gang")

        sandbox.load([of_role("gang", "server", 0, cpu="2")])
        await eventually(lambda: places(sandbox, "gang") == 7)


async def test_a_group_needs_what_it_says_of_resources(program, tmp_path):
    """Two pods would do by their number; together with a third they request what the group needs."""
    async with reporting(program, tmp_path, node("n0"), node("n1"), needs("", cpu="3")) as sandbox:
        sandbox.load([pod("gang", number) for number in range(2)])
        await another_is_placed(sandbox)
        assert 0 == places(sandbox, "gang")

        sandbox.load([pod("gang", 2)])
        await eventually(lambda: places(sandbox, "gang") == 3)


async def another_is_placed(sandbox):
    """A pod of no group that came after the gang's has a node."""
    alone = pod("alone", 0)
    del alone["metadata"]["labels"]
    alone["spec"]["containers"][0]["resources"] = {}
    sandbox.load([alone])
    await eventually(lambda: places(sandbox, "alone") == 1)
