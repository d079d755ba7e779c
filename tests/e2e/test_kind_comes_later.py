"""A CustomResourceDefinition that is created after a plugin that watches its kind was attached."""

import json
import logging
import sys
import tempfile
import time
from pathlib import Path

import pytest

from berth.client.resources import PODS, Resource
from berth.demo.processes import Child
from tests.e2e.default_cluster import CONFIGURATION, default_cluster
from tests.suite import PATIENCE_SECONDS
from tests.unit.scheduler_at_work import node

pytestmark = pytest.mark.e2e
log = logging.getLogger(__name__)

DEFINITIONS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", namespaced=False)
RACKS = Resource("example.com", "v1", "racks", namespaced=False)
DEFINITION = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "racks.example.com"},
    "spec": {
        "group": "example.com",
        "scope": "Cluster",
        "names": {"plural": "racks", "singular": "rack", "kind": "Rack", "listKind": "RackList"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
                },
            }
        ],
    },
}
RACK = {"apiVersion": "example.com/v1", "kind": "Rack", "metadata": {"name": "r0"}}
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p0", "namespace": "default"},
    "spec": {"containers": [{"name": "main", "image": "app:1"}]},
}
PROFILES = """
profiles:
- plugins:
    multiPoint: {{enabled: [{{name: racks}}]}}
"""


@pytest.fixture
async def listed(tmp_path):
    """The list with the plugin, which is at work."""
    with tempfile.TemporaryDirectory(prefix="berth-") as sockets:
        socket = Path(sockets, "racks.sock")
        command = [sys.executable, "-m", "tests.e2e.racks_plugin", "--address", f"unix:{socket}"]
        child = await Child.start("racks", command, tmp_path / "racks.log")
        await child.wait_for(socket, PATIENCE_SECONDS)
        entries = [{"name": "racks", "address": f"unix:{socket}"}]
        file = tmp_path / "plugins.yaml"
        file.write_text(
            json.dumps({"apiVersion": "berth.dev/v1alpha1", "kind": "PluginList", "plugins": entries})
        )
        yield file
        await child.stop()


async def test_the_kind_is_watched_once_it_is_there(tmp_path, listed):
    """A pod waits for a Rack while there is no such kind, and is bound once both are created."""
    nodes, said = {}, {}

    def look(_, document):
        nodes[document["metadata"]["name"]] = document["spec"].get("nodeName")
        for each in document.get("status", {}).get("conditions", ()):
            said[each["type"]] = each.get("message", "")

    flags = [f"--plugins={listed}"]
    cluster = default_cluster(tmp_path, [node("n0")], CONFIGURATION + PROFILES, flags)
    async with cluster as running, running.watching(look):
        await running.create(PODS, [POD])
        await running.reach(lambda: "cluster had no rack" in said.get("PodScheduled", ""))
        await running.create(DEFINITIONS, [DEFINITION])
        began = time.monotonic()
        await running.create(RACKS, [RACK])
        await running.reach(lambda: nodes["p0"])
        log.info("bound after seconds=%.2f", time.monotonic() - began)

    assert "n0" == nodes["p0"]
