"""Objects that hold what only Go reads are read past, and the objects beside them arrive.

The API server bounds neither `metadata.managedFields`, which every writer may set, nor the depth of a claim's
parameters within their ten kilobytes; it keeps their bytes, whatever they are.
"""

import asyncio
import json

import pytest

from berth.client.resources import PODS, RESOURCE_CLAIMS
from berth.client.watching.reflector import Reflector
from berth.client.watching.watch import WatchSource
from berth.objects.decode import decoder
from berth.objects.devices.resource_claims import ResourceClaim
from berth.objects.pods.pod_decoding import decode_pod
from tests.suite import PATIENCE_SECONDS
from tests.unit.client.conftest import answer, raw_server, read_request, transport_to

VALUES = ["[" * 1_500 + "]" * 1_500, "[" * 5_000 + "]" * 5_000, r'{"\ud800": "\udfff"}', "1e400"]


def managed(value):
    """What a user may say of one's own fields."""
    return f'[{{"fieldsType": "FieldsV1", "fieldsV1": {{"f:a": {value}}}}}]'


def carried(value):
    """A claim's specification with parameters for its driver."""
    return f'{{"devices": {{"config": [{{"opaque": {{"parameters": {value}}}}}]}}}}'


def thing(name, version, *, managed_fields="[]", spec="{}"):
    """An object as the API server sends it."""
    fields = f'"name": "{name}", "namespace": "ns", "uid": "{name}", "resourceVersion": "{version}"'
    return f'{{"metadata": {{{fields}, "managedFields": {managed_fields}}}, "spec": {spec}}}'


def page(*things):
    """A list of them."""
    return f'{{"metadata": {{"resourceVersion": "5"}}, "items": [{", ".join(things)}]}}'.encode()


class Names:
    """Notes the objects that arrive."""

    def __init__(self):
        self.known, self.changed = set(), asyncio.Event()

    def on_add(self, thing):
        self.known.add(thing.name)
        self.changed.set()

    def on_update(self, _old, new):
        self.on_add(new)

    def on_delete(self, _thing):
        pass

    def on_synced(self):
        pass

    async def until(self, name, task):
        """Wait until the object of that name is known, or the mirror has ended."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while name not in self.known and not task.done():
                changed = asyncio.create_task(self.changed.wait())
                await asyncio.wait((changed, task), return_when=asyncio.FIRST_COMPLETED)
                changed.cancel()
                self.changed.clear()


@pytest.mark.parametrize("watched", [False, True])
@pytest.mark.parametrize("value", VALUES, ids=len)
@pytest.mark.parametrize(
    ("resource", "decode", "field", "holding"),
    [
        (PODS, decode_pod, "managed_fields", managed),
        (RESOURCE_CLAIMS, decoder(ResourceClaim), "spec", carried),
    ],
)
async def test_the_objects_beside_it_arrive(resource, decode, field, holding, *, value, watched):
    hostile = thing("hostile", 3, **{field: holding(value)})
    events = [{"type": "ADDED", "object": "@hostile"}, {"type": "ADDED", "object": "@ordinary"}]
    lines = "".join(json.dumps(event) + "\n" for event in events)
    lines = lines.replace('"@hostile"', hostile).replace('"@ordinary"', thing("ordinary", 6))

    async def serve(reader, writer):
        while request := await read_request(reader):
            if "watch=" in str(request):
                writer.write(answer(200, lines.encode() if watched else b""))
            else:
                writer.write(answer(200, page() if watched else page(hostile, thing("ordinary", 4))))
            await writer.drain()

    names = Names()
    async with raw_server(serve) as server, transport_to(server.url) as transport:
        reflector = Reflector(transport, WatchSource(resource), decode, names)
        task = asyncio.create_task(reflector.run())
        try:
            await names.until("ordinary", task)
        finally:
            task.cancel()
            ended = (await asyncio.gather(task, return_exceptions=True))[0]

    assert isinstance(ended, asyncio.CancelledError)
    assert "ordinary" in names.known
