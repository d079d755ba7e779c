"""Objects nested as deeply as an API server keeps them are read past, and the objects beside them are told.

The API server bounds neither `metadata.managedFields`, which every writer may set, nor the depth of a claim's
parameters within their ten kilobytes.
"""

import asyncio
import json

import msgspec
import pytest

from berth.client.reflector import Reflector
from berth.client.resources import PODS
from berth.client.watch import Source
from berth.objects.decode import decoder
from berth.objects.pod import Pod
from berth.objects.resource_claims import ResourceClaim
from tests.unit.client.conftest import answer, raw_server, read_request, transport_to

pytestmark = pytest.mark.xfail(strict=True, reason="fixed on branch ingest")
DEPTHS = [1_500, 5_000]


def managed(depth):
    """What a user may say of one's own fields."""
    return '[{"fieldsType": "FieldsV1", "fieldsV1": ' + '{"f:a":' * depth + "{}" + "}" * depth + "}]"


def pod(name, version, managed_fields="[]"):
    """A pod as the API server sends it."""
    fields = f'"name": "{name}", "namespace": "ns", "uid": "{name}", "resourceVersion": "{version}"'
    return f'{{"metadata": {{{fields}, "managedFields": {managed_fields}}}, "spec": {{}}}}'


def page(*pods):
    """A list of them."""
    return f'{{"metadata": {{"resourceVersion": "5"}}, "items": [{", ".join(pods)}]}}'.encode()


class Names:
    """Notes the pods that it is told of."""

    def __init__(self):
        self.known, self.changed = set(), asyncio.Event()

    def on_add(self, pod):
        self.known.add(pod.name)
        self.changed.set()

    def on_update(self, _old, new):
        self.on_add(new)

    def on_delete(self, _pod):
        pass

    def on_synced(self):
        pass

    async def until(self, name, task):
        """Wait until the pod of that name is known, or the mirror has ended."""
        async with asyncio.timeout(30):
            while name not in self.known and not task.done():
                changed = asyncio.create_task(self.changed.wait())
                await asyncio.wait((changed, task), return_when=asyncio.FIRST_COMPLETED)
                changed.cancel()
                self.changed.clear()


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("watched", [False, True])
async def test_the_pods_beside_it_are_told(depth, watched):
    hostile = pod("hostile", 3, managed(depth))
    events = [{"type": "ADDED", "object": "@hostile"}, {"type": "ADDED", "object": "@ordinary"}]
    lines = "".join(json.dumps(event) + "\n" for event in events)
    lines = lines.replace('"@hostile"', hostile).replace('"@ordinary"', pod("ordinary", 6))

    async def serve(reader, writer):
        while request := await read_request(reader):
            if "watch=" in str(request):
                writer.write(answer(200, lines.encode() if watched else b""))
            else:
                writer.write(answer(200, page() if watched else page(hostile, pod("ordinary", 4))))
            await writer.drain()

    names = Names()
    async with raw_server(serve) as server, transport_to(server.url) as transport:
        reflector = Reflector(transport, Source(PODS), decoder(Pod), names)
        task = asyncio.create_task(reflector.run())
        try:
            await names.until("ordinary", task)
        finally:
            task.cancel()
            ended = (await asyncio.gather(task, return_exceptions=True))[0]

    assert isinstance(ended, asyncio.CancelledError)
    assert "ordinary" in names.known


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_claims_parameters_are_carried_or_refused(depth):
    """A decoder raises what its callers skip an object for, and nothing else."""
    text = '{"metadata": {"name": "c"}, "spec": {"devices": {"config": [{"opaque": {"parameters": @}}]}}}'
    body = text.replace("@", "[" * depth + "]" * depth).encode()
    try:
        read = decoder(ResourceClaim)(body)
    except (ValueError, msgspec.MsgspecError):
        return

    assert read.name == "c"
