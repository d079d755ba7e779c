"""A live cluster is read as it is, and never written to."""

import json

import msgspec
import pytest
from click.testing import CliRunner

from berth.client.api import Api
from berth.client.authentication.credentials import load_endpoint
from berth.client.resources import POD_GROUPS, SCHEDULER_PLUGINS, Resource
from berth.client.transport import Transport
from berth.commands.snapshot import snapshot
from berth.demo.submission import create_all
from berth.objects.decode import UndecodableObjectError
from berth.operator.definitions import plugin_definition, scheduler_definition
from berth.sandbox import SandboxOptions, serve
from berth.simulation.errors import InputError
from berth.simulation.reading.inputs import read_cluster
from berth.simulation.reading.kinds import BY_NAME
from berth.simulation.reading.listing import list_cluster, list_scheduler_objects
from tests.unit.simulation.kit import node, pod, written

NODE = BY_NAME["", "Node"]


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
        [each async for each in list_cluster(transport, [msgspec.structs.replace(NODE, decode=refusing)])]


async def test_schedulers_of_the_operator_are_listed_where_they_are(transport):
    """A server without the operator's kinds has none; with them, what decides is shown and nothing else."""
    before = [each async for each in list_scheduler_objects(transport)]
    definitions = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", namespaced=False)
    api = Api(transport)
    for definition in (scheduler_definition(), plugin_definition()):
        await api.create(definitions, "", json.dumps(definition).encode())
    plugin = {"image": "example.com/a:1", "env": [{"name": "TOKEN", "value": "secret"}], "weight": 3}
    await api.create(SCHEDULER_PLUGINS, "default", json.dumps(_ours("SchedulerPlugin", plugin)).encode())

    (listed,) = [json.loads(each) async for each in list_scheduler_objects(transport)]

    assert [] == before
    assert "example.com/a:1" == listed["spec"]["image"]
    assert {"env", "resources"}.isdisjoint(listed["spec"])


def _ours(kind, spec):
    metadata = {"name": "a", "namespace": "default"}
    return {"apiVersion": "berth.dev/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec}


def test_a_snapshot_of_files_has_their_schedulers(tmp_path):
    """They are simulated from it; keys of extenders and an anonymized snapshot's schedulers are left out."""
    tls = {"serverName": "a", "keyData": "c2VjcmV0"}
    extender = {"urlPrefix": "https://a", "filterVerb": "f", "tlsConfig": tls}
    spec = {"profiles": [{"schedulerName": "a"}], "extenders": [extender]}
    scheduler = _ours("Scheduler", spec)
    del scheduler["metadata"]["namespace"]  # As a hand writes it.
    path = str(written(tmp_path / "a.json", node("n0"), scheduler))
    plain, hashed = tmp_path / "plain.json", tmp_path / "hashed.json"

    for arguments in ([path, "-o", str(plain)], [path, "--anonymize", "-o", str(hashed)]):
        assert 0 == CliRunner().invoke(snapshot, arguments).exit_code

    found = read_cluster([plain])
    assert {} == found.left_out
    (kept,) = found.others
    assert {"serverName": "a"} == kept["spec"]["extenders"][0]["tlsConfig"]
    assert [] == read_cluster([hashed]).others


async def test_pod_groups_of_a_newer_server():
    """They are listed in the version that the server has."""
    async with await serve(SandboxOptions(kubelets=False, release=(1, 37))) as running:
        connections = Transport(load_endpoint(master=running.url))
        spec = {"schedulingPolicy": {"gang": {"minCount": 2}}}
        newer = POD_GROUPS._replace(version="v1beta1")
        group = {"apiVersion": newer.api_version, "kind": "PodGroup", "metadata": {"name": "g"}, "spec": spec}
        await Api(connections).create(newer, "default", json.dumps(group).encode())

        listed = [json.loads(each) async for each in list_cluster(connections)]
        await connections.aclose()

    assert ["g"] == [each["metadata"]["name"] for each in listed if each["kind"] == "PodGroup"]
