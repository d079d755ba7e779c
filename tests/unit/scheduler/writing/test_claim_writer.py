"""Writes to claims, against an API server."""

import msgspec
import pytest

from berth.client import Api, load_endpoint
from berth.client.resources import RESOURCE_CLAIMS
from berth.framework.ports.claim_writing import ClaimWriteError
from berth.objects.api_object import ObjectMeta
from berth.objects.decode import decoder
from berth.objects.devices.resource_claims import (
    Allocation,
    Consumer,
    DeviceAllocation,
    DeviceResult,
    ResourceClaim,
)
from berth.sandbox import SandboxOptions, serve
from berth.scheduler.writing.claim_writer import ApiClaimWriter
from tests.unit.client.conftest import transport_to

A, B = Consumer(resource="pods", name="a", uid="a"), Consumer(resource="pods", name="b", uid="b")
ALLOCATION = Allocation(DeviceAllocation((DeviceResult("r", "d.example", "p", "x"),)))
OTHER_ALLOCATION = Allocation(DeviceAllocation((DeviceResult("r", "d.example", "p", "y"),)))
DOCUMENT = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaim",
    "metadata": {"name": "c", "namespace": "default"},
    "spec": {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}},
}


@pytest.fixture
async def server(tmp_path):
    async with await serve(SandboxOptions()) as sandbox:
        sandbox.load([DOCUMENT])
        sandbox.write_kubeconfig(tmp_path / "kubeconfig")
        endpoint = load_endpoint(kubeconfig=str(tmp_path / "kubeconfig"), environ={})
        async with transport_to(endpoint) as transport:
            yield Server(Api(transport))


class Server:
    def __init__(self, api):
        self.api, self.writer, self.calls = api, ApiClaimWriter(Noting(api, self)), []

    async def raw(self):
        return msgspec.json.decode(await self.api.get(RESOURCE_CLAIMS, "default", "c"))

    async def claim(self):
        return decoder(ResourceClaim)(await self.api.get(RESOURCE_CLAIMS, "default", "c"))


class Noting:
    """An API whose calls are noted by their methods."""

    def __init__(self, api, server):
        self.api, self.server = api, server

    async def call(self, method, path, *arguments, **options):
        self.server.calls.append(method)
        return await self.api.call(method, path, *arguments, **options)

    async def get(self, resource, namespace, name):
        return await self.call("GET", resource.path(namespace, name))


def consumers(claim):
    return [consumer.name for consumer in claim.status.reserved_for]


async def test_reserving_allocates_and_protects(server):
    """The first pod writes the allocation, further ones join; who joins twice counts once."""
    old = await server.claim()
    await server.writer.reserve(old, A, ALLOCATION)
    await server.writer.reserve(old, B, None)
    claim = await server.writer.reserve(old, A, None)

    assert ALLOCATION == claim.allocation
    assert ["b", "a"] == consumers(claim)
    assert ["resource.kubernetes.io/delete-protection"] == (await server.raw())["metadata"]["finalizers"]


async def test_what_is_known_of_a_claim_is_not_read_again(server):
    """A reservation is a patch, after one of the metadata where devices come with it; others' parts stay."""
    document = await server.raw()
    document["metadata"]["finalizers"] = ["example.com/other"]
    await server.api.update(RESOURCE_CLAIMS, "default", "c", msgspec.json.encode(document))

    claim = await server.writer.reserve(await server.claim(), A, ALLOCATION)
    claim = await server.writer.reserve(claim, B, None)

    assert ["PATCH", "PATCH", "PATCH"] == server.calls
    assert (ALLOCATION, {"a", "b"}) == (claim.allocation, set(consumers(claim)))
    finalizers = (await server.raw())["metadata"]["finalizers"]
    assert {"example.com/other", "resource.kubernetes.io/delete-protection"} == set(finalizers)


async def test_a_claim_that_is_another_version_by_now_is_read(server):
    old = await server.claim()
    await server.writer.reserve(old, A, ALLOCATION)
    del server.calls[:]
    claim = await server.writer.reserve(old.allocated_as(ALLOCATION), B, None)

    assert ["PATCH", "GET", "PUT"] == server.calls
    assert ["a", "b"] == consumers(claim)


async def test_a_claim_with_opaque_values_is_written_as_a_whole(server):
    """A patch of it would be refused where the values are no JSON as Go writes it."""
    document = await server.raw()
    document["spec"]["devices"]["config"] = [{"opaque": {"driver": "d.example", "parameters": {"a": 1}}}]
    document["metadata"] = {"name": "d", "namespace": "default"}
    body = await server.api.create(RESOURCE_CLAIMS, "default", msgspec.json.encode(document))
    await server.writer.reserve(decoder(ResourceClaim)(body), A, ALLOCATION)

    assert "PATCH" not in server.calls


async def test_no_claim_is_allocated_twice(server):
    """A claim that another scheduler allocated meanwhile is not overwritten."""
    old = await server.claim()
    await server.writer.reserve(old, A, ALLOCATION)

    with pytest.raises(ClaimWriteError, match="got allocated elsewhere in the meantime"):
        await server.writer.reserve(old, B, OTHER_ALLOCATION)


async def test_pods_of_a_group_write_the_allocation_that_they_share(server):
    """kubernetes/kubernetes#137617: the second one finds its own devices there, and becomes a consumer."""
    old = await server.claim()
    await server.writer.reserve(old, A, ALLOCATION)
    claim = await server.writer.reserve(old, B, ALLOCATION)

    assert (ALLOCATION, ["a", "b"]) == (claim.allocation, consumers(claim))


async def test_a_recreated_claim_is_another(server):
    """A claim of the same name is not the one that was meant."""
    other = ResourceClaim(ObjectMeta(name="c", namespace="default", uid="before"))

    with pytest.raises(ClaimWriteError, match="got deleted in the meantime"):
        await server.writer.reserve(other, A, ALLOCATION)


async def test_leaving_and_giving_back(server):
    """One consumer leaves; then all is taken back, from the version that was looked at only."""
    old = await server.claim()
    for pod in (A, B):
        await server.writer.reserve(old, pod, ALLOCATION if pod is A else None)
    claim = await server.writer.unreserve(old, A)
    assert ["b"] == consumers(claim)

    with pytest.raises(ClaimWriteError):
        await server.writer.deallocate(old)
    given_back = await server.writer.deallocate(claim)
    assert (None, []) == (given_back.allocation, consumers(given_back))


async def test_deleting_lifts_the_protection(server):
    """A protected claim goes, and one that is gone is no matter."""
    claim = await server.writer.reserve(await server.claim(), A, ALLOCATION)
    await server.writer.delete(claim)
    await server.writer.delete(claim)

    with pytest.raises(ClaimWriteError, match="is gone"):
        await server.writer.reserve(claim, A, None)
