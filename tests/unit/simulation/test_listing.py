"""A live cluster is read as it is, and never written to."""

import json
from dataclasses import replace

import pytest

from berth.client.api import Api
from berth.client.credentials import load_endpoint
from berth.client.transport import Transport
from berth.demo.submission import create_all
from berth.objects.decode import UndecodableObjectError
from berth.sandbox import Options, serve
from berth.simulation.errors import InputError
from berth.simulation.inputs import read_cluster
from berth.simulation.kinds import BY_NAME
from berth.simulation.listing import list_cluster
from tests.unit.simulation.kit import node, pod, written

NODE = BY_NAME["", "Node"]


@pytest.fixture
async def transport():
    """Connections to a sandbox without kubelets."""
    async with await serve(Options(kubelets=False)) as running:
        connections = Transport(load_endpoint(master=running.url))
        yield connections
        await connections.aclose()


async def test_a_live_cluster_decides_like_its_files(transport, tmp_path):
    """What is listed comes to the same as what was created."""
    documents = [node("n0"), node("n1", cpu="2"), pod("p0", cpu="2"), pod("p1", cpu="3"), pod("p2", cpu="8")]
    for each in documents[2:]:
        each["metadata"]["namespace"] = "default"
    await create_all(Api(transport), documents)

    listed = [json.loads(each) async for each in list_cluster(transport)]
    live = read_cluster([written(tmp_path / "live.json", *listed)])
    files = read_cluster([written(tmp_path / "files.json", *documents)])

    assert ["p0", "p1", "p2"] == [each["metadata"]["name"] for each in listed if each["kind"] == "Pod"]
    assert files.of(NODE.type).keys() == live.of(NODE.type).keys()


async def test_objects_that_are_none_are_named(transport):
    """A node that does not decode stops the snapshot: its place would be missing."""
    await create_all(Api(transport), [node("n0")])

    def refusing(data):
        raise UndecodableObjectError(f"Node: {len(data)} bytes")

    with pytest.raises(InputError, match=r"nodes: Node: [0-9]+ bytes; correct the object"):
        [each async for each in list_cluster(transport, [replace(NODE, decode=refusing)])]
