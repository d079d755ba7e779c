"""Claims whose opaque parameters are no JSON as Go writes it, on an API server that keeps their bytes."""

import json

import msgspec
import pytest

from berth.client.api import Api
from berth.client.authentication.credentials import load_endpoint
from berth.client.resources import RESOURCE_CLAIMS
from berth.client.transport import Transport
from berth.client.wire import bounded
from berth.objects.decode import decoder
from berth.objects.devices.resource_claims import (
    Allocation,
    Consumer,
    DeviceAllocation,
    DeviceResult,
    ResourceClaim,
)
from berth.scheduler.writing.claim_documents import PROTOBUF
from berth.scheduler.writing.claim_writer import ApiClaimWriter
from tests.e2e.api_servers import api_server_called
from tests.e2e.test_real_control_plane import started

pytestmark = pytest.mark.e2e

WRITTEN = {
    "as-go-writes-it": b'{"a":1}',
    "spaces": b'{"a": 1, "b": [1, 2]}',
    "line-breaks": b'{\n  "a": 1\n}\n',
    "html": b'{"a":"x<y&z>"}',
    "line-separator": '{"a":"\u2028"}'.encode(),
    "escapes": b'{"a":"\\u00e9 \\/ \\ud800"}',
    "numbers": b'{"a":1e2,"b":1.0,"c":123456789012345678901234567890}',
    "duplicates": b'{"a": 1,"a": 2}',
    "no-object-at-all-but-nested": b'{"a": {"b": [ [ ], { } ]}}',
}
A, B = Consumer(resource="pods", name="a", uid="a"), Consumer(resource="pods", name="b", uid="b")
DEVICE = DeviceResult("r", "d.example.com", "p", "x")
ALLOCATION = Allocation(DeviceAllocation((DEVICE,)))


def opaque(parameters):
    return {"opaque": {"driver": "d.example.com", "parameters": msgspec.Raw(parameters)}}


def claim_of(name, parameters):
    """A claim as a client sends it that writes no JSON as Go does."""
    devices = {
        "requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}],
        "config": [opaque(parameters)],
    }
    metadata = {"name": name, "namespace": "default"}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": metadata,
        "spec": {"devices": devices},
    }


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory):
    """That of a real API server."""
    path = tmp_path_factory.mktemp("real") / "kubeconfig"
    with started(api_server_called("real").command(path), path):
        yield path


@pytest.fixture
async def api(kubeconfig):
    transport = Transport(load_endpoint(kubeconfig=str(kubeconfig)), max_connections=2)
    yield Api(transport)
    await transport.aclose()


async def created(api, name, parameters):
    body = await api.create(RESOURCE_CLAIMS, "default", msgspec.json.encode(claim_of(name, parameters)))
    return bounded(decoder(ResourceClaim))(body)


async def kept(api, name):
    """The claim's bytes as the server keeps them, None where it is gone."""
    return await api.call("GET", RESOURCE_CLAIMS.path("default", name), content_type=PROTOBUF)


@pytest.mark.parametrize("name", WRITTEN)
async def test_a_claim_is_allocated_used_and_deleted(name, api):
    """Every write of the scheduler lands, and the parameters stay as they were written."""
    parameters, writer = WRITTEN[name], ApiClaimWriter(api)
    claim = await created(api, name, parameters)

    claim = await writer.reserve(claim, A, ALLOCATION)
    claim = await writer.reserve(claim, B, None)
    claim = await writer.unreserve(claim, A)
    assert ["b"] == [consumer.name for consumer in claim.status.reserved_for]
    assert parameters.strip() in await kept(api, name)
    claim = await writer.deallocate(claim)
    assert claim.allocation is None
    await writer.delete(claim)

    left = json.loads(await api.call("GET", RESOURCE_CLAIMS.collection("default")))["items"]
    assert name not in [item["metadata"]["name"] for item in left]


async def test_what_another_scheduler_allocated_is_shared(api):
    """kube-scheduler writes the parameters into the allocation as they are in the spec."""
    parameters, writer = WRITTEN["spaces"], ApiClaimWriter(api)
    claim = await created(api, "shared", parameters)
    document = msgspec.json.decode(await api.get(RESOURCE_CLAIMS, "default", "shared"))
    results = [{"request": "r", "driver": "d.example.com", "pool": "p", "device": "x"}]
    devices = {"results": results, "config": [{"source": "FromClaim", "requests": [], **opaque(parameters)}]}
    consumers = [{"resource": "pods", "name": "a", "uid": "a"}]
    document["status"] = {"allocation": {"devices": devices}, "reservedFor": consumers}
    await api.update(RESOURCE_CLAIMS, "default", "shared", msgspec.json.encode(document), "status")

    claim = await writer.reserve(claim, B, None)

    assert ["a", "b"] == [consumer.name for consumer in claim.status.reserved_for]
    assert 2 == (await kept(api, "shared")).count(parameters)
