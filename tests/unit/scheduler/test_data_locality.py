"""The plugin data-locality as a process, a whole scheduler, and a sandbox that knows Datasets."""

import asyncio

import pytest
import yaml

from tests.java_toolchain import ROOT, install, missing, program
from tests.sockets import serving
from tests.unit.scheduler_at_work import eventually, node, scheduling

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())
KIND = ROOT / "kustomize/third-party-crds/datasets.yaml"
PREFIX = "data-locality.berth.dev"


def dataset(name, **cached):
    """A data set and how much of it nodes have."""
    nodes = [{"name": node, "cachedPercent": percent} for node, percent in cached.items()]
    return {
        "apiVersion": "data.berth.dev/v1alpha1",
        "kind": "Dataset",
        "metadata": {"name": name, "namespace": "default"},
        "status": {"nodes": nodes},
    }


def pod(name, **annotations):
    """A pod with annotations of the plugin."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "annotations": {f"{PREFIX}/{key}": value for key, value in annotations.items()},
        },
        "spec": {
            "schedulerName": "default-scheduler",
            "containers": [{"name": "main", "image": "image", "resources": {"requests": {"cpu": "1"}}}],
        },
    }


def place(sandbox, name):
    """The pod's node, None if it has none."""
    pods = (entry.decode() for entry in sandbox.store.collection("pods").entries())
    (mine,) = (each for each in pods if each["metadata"]["name"] == name)
    return mine["spec"].get("nodeName")


async def test_pods_follow_their_data(tmp_path):
    """A pod goes where its data is; one that requires what is cached nowhere waits until a cache has it."""
    kind = yaml.safe_load(KIND.read_text(encoding="utf-8"))
    documents = [kind, *(node(f"n{number}") for number in range(4)), dataset("here", n2=80)]
    await asyncio.to_thread(install)
    async with serving(*program(ROOT / "out-of-tree-plugins/data-locality")) as address:
        sidecars = {"data-locality": address}
        async with scheduling(tmp_path / "kubeconfig", *documents, sidecars=sidecars) as (sandbox, _):
            sandbox.load([pod("prefers", datasets="here"), pod("waits", datasets="later", required="node")])
            await eventually(lambda: place(sandbox, "prefers"))
            before = place(sandbox, "waits")
            sandbox.load([dataset("later", n3=100)])
            await eventually(lambda: place(sandbox, "waits"))

            assert ("n2", None, "n3") == (place(sandbox, "prefers"), before, place(sandbox, "waits"))
