"""What `berth plugin verify` tries without samples, says it has not tried, and leaves alone."""

import asyncio
import json

import pytest
from click.testing import CliRunner

from berth.cli.main import main
from berth.conformance.announced import Announced, announced
from berth.conformance.samples import make_nodes, make_pods
from berth.conformance.tried import GIVE
from berth_plugin_proto import identity_pb2
from berth_sdk import Plugin
from berth_sdk.plugin import WatchedResource
from berth_sdk.serving import Server
from berth_sdk.testing import Host, make_node, make_pod

TEAMS_FILE = """
apiVersion: example.com/v1
kind: Team
metadata: {name: red}
"""


class Lenient(Plugin):
    """Lets every pod pass everywhere, and scores all nodes alike."""

    name = "lenient"
    watches = (WatchedResource("example.com", "v1", "teams"),)

    def __init__(self):
        self.teams = []

    def filter(self, _pod, _node):
        return None

    def score(self, _pod, _node):
        return 1

    def object_upserted(self, key, _json):
        self.teams.append(key.name)


@pytest.fixture
async def lenient(tmp_path):
    """The plugin, and the server of it."""
    plugin = Lenient()
    server = Server(plugin, f"unix:{tmp_path / 'p.sock'}")
    await server.start()
    yield plugin, server.address
    await server.stop(0)


async def verify(address, *arguments):
    """The command's exit code and output."""
    command = ["plugin", "verify", address, "--many-nodes", "60", "--only", "*/answer", *arguments]
    outcome = await asyncio.to_thread(CliRunner().invoke, main, command)
    return outcome.exit_code, outcome.output


async def test_what_was_not_tried(lenient):
    """A plugin that no sample turned down, and whose scores are all alike, is said to be so."""
    _, address = lenient

    code, text = await verify(address)

    assert 0 == code
    assert [
        f"NOT TRIED  Filter turned no pod down on any node: {GIVE}",
        f"NOT TRIED  Score preferred no node to another for any pod: {GIVE}",
        "NOT TRIED  no object of teams.v1.example.com was shown: give some with --objects",
    ] == [line for line in text.splitlines() if line.startswith("NOT TRIED")]


async def test_objects(lenient, tmp_path):
    """Objects of watched kinds are shown to the plugin, and not missed."""
    plugin, address = lenient
    file = tmp_path / "teams.yaml"
    file.write_text(TEAMS_FILE)

    _, text = await verify(address, "--objects", str(file), "--output", "json")

    assert {"red"} == set(plugin.teams)
    assert not any("object" in each for each in json.loads(text)["notTried"])


async def test_a_plugin_in_use(lenient):
    """A plugin that another host has configured and synced is left alone, unless that is asked for."""
    _, address = lenient
    host = Host(address)
    host.cluster.put_node(make_node("n0"))
    await host.connect()
    generation = host.cluster.generation

    code, text = await verify(address)

    assert 2 == code
    assert "a scheduler uses the plugin" in text
    assert "--in-use" in text
    assert {} == (await host.filter(make_pod("p"))).nodes
    assert generation == host.cluster.generation
    await host.close()
    assert 0 == (await verify(address, "--in-use"))[0]


async def test_again(lenient):
    """What was verified is free to be verified again."""
    _, address = lenient

    assert [0, 0] == [(await verify(address))[0] for _ in range(2)]


def test_announced():
    """Keys, resources and fields are taken from all that a plugin announces."""
    capabilities = identity_pb2.Capabilities(
        pod_fields=identity_pb2.PodFields(
            paths=["/metadata/labels/example.com~1team", "/metadata/annotations/note", "/spec/priority"]
        ),
        state=identity_pb2.StateInterest(pod_resources=["example.com/gpu", "cpu"]),
        events=[
            identity_pb2.EventInterest(
                resource="Pod", equal_labels=["group"], label_selector="tier in (a, b)"
            )
        ],
        arguments_schema=b'{"properties": {"label": {"default": "tenant"}, "weight": {"default": 3}}}',
    )

    assert announced(capabilities) == Announced(
        labels=("example.com/team", "group", "tier", "tenant"),
        annotations=("note", "tenant"),
        resources=("example.com/gpu",),
        pod_fields=tuple(capabilities.pod_fields.paths),
    )


def test_samples():
    """Nodes and pods differ in what is announced, and some have nothing of it."""
    said = Announced(labels=("tenant",), resources=("example.com/gpu",), pod_fields=("/spec/priority",))
    nodes, pods = make_nodes(6, said, ()), make_pods(said, "profile", ())

    assert {None, "red", "blue"} == {node["metadata"]["labels"].get("tenant") for node in nodes}
    assert {None, "1000", "2000"} == {node["status"]["allocatable"].get("example.com/gpu") for node in nodes}
    assert {"red", "blue"} <= {pod["metadata"]["labels"].get("tenant") for pod in pods}
    assert {0, 1000} == {pod["spec"]["priority"] for pod in pods}
