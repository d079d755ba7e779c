"""The plugin coscheduling as a process, a whole scheduler, and a sandbox that knows PodGroups."""

import pytest
import yaml

from berth.client import Api, load_endpoint
from berth.client.resources import PODS
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
    """
    kubeconfig = tmp_path / "kubeconfig"
    async with serving(program) as address:
        documents = [kind(), node("n0"), node("n1")]
        async with scheduling(kubeconfig, *documents, sidecars={"coscheduling": address}) as (sandbox, _):
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
