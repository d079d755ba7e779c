"""A mirror behind a wire that keeps breaking ends up with what the server holds."""

import asyncio
from random import Random

import pytest

from berth.client import PodWrites, Reflector, WatchSource, endpoint_of
from berth.client.resources import PODS
from berth.sandbox import SandboxOptions, serve
from tests.unit.client.conftest import eventually, raw_server, transport_to
from tests.unit.client.test_reflector import decode
from tests.unit.client.test_with_sandbox import pod


class Folded:
    """The state that events add up to; complains about stories that make no sense."""

    def __init__(self):
        self.pods = {}

    def on_add(self, obj):
        assert obj["metadata"]["name"] not in self.pods
        self.pods[obj["metadata"]["name"]] = obj

    def on_update(self, old, new):
        assert self.pods[old["metadata"]["name"]] == old
        assert old["metadata"]["uid"] == new["metadata"]["uid"]
        self.pods[new["metadata"]["name"]] = new

    def on_delete(self, obj):
        gone = self.pods.pop(obj["metadata"]["name"])
        assert gone["metadata"]["uid"] == obj["metadata"]["uid"]

    def on_synced(self):
        pass


def breaking_wire(url, rng):
    """A proxy that cuts each connection after some thousand bytes of answer."""
    address = endpoint_of(url).address

    async def forward(reader, writer):
        while data := await reader.read(65536):
            writer.write(data)

    async def answer(reader, writer):
        left = rng.randint(200, 20_000)
        while left > 0 and (data := await reader.read(min(left, rng.randint(1, 3000)))):
            left -= len(data)
            writer.write(data)
            await writer.drain()

    async def serve_one(reader, writer):
        inner_reader, inner_writer = await asyncio.open_connection(address.host, address.port)
        tasks = [
            asyncio.create_task(forward(reader, inner_writer)),
            asyncio.create_task(answer(inner_reader, writer)),
        ]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            inner_writer.transport.abort()
            await asyncio.gather(*tasks, inner_writer.wait_closed(), return_exceptions=True)

    return raw_server(serve_one)


async def disturb(sandbox, pods, rng):
    """One random change: a pod comes, changes, goes, or is replaced by another of its name."""
    name = f"p{rng.randrange(20)}"
    listed = {key[-1] for key in await names_of(pods)}
    if name not in listed:
        sandbox.load([pod(name)])
        return
    uid = decode(await pods.get("default", name))["metadata"]["uid"]
    if rng.random() < 0.5:
        await pods.patch_metadata("default", name, annotations={"n": str(rng.random())})
        return
    await pods.delete("default", name, uid, grace_period_seconds=0)
    if rng.random() < 0.5:
        sandbox.load([pod(name)])


async def names_of(pods):
    return [(item["metadata"]["name"],) for item in await held_by(pods)]


async def held_by(pods):
    body = await pods._api.call("GET", PODS.collection())
    return decode(body)["items"]


@pytest.mark.parametrize("seed", range(4))
async def test_mirror_behind_a_breaking_wire(seed, clock):
    """After any number of cuts and forgotten histories, the events add up to the server's state."""
    rng, folded = Random(seed), Folded()
    async with (
        await serve(SandboxOptions(kubelets=False, history_limit=10)) as sandbox,
        transport_to(sandbox.url) as direct,
        breaking_wire(sandbox.url, rng) as wire,
        transport_to(wire.url) as broken,
    ):
        pods = PodWrites(direct)
        reflector = Reflector(
            broken, WatchSource(PODS), decode, folded, page_size=3, clock=clock, sleep=clock.sleep
        )
        task = asyncio.create_task(reflector.run())
        for _ in range(150):
            await disturb(sandbox, pods, rng)
            for _ in range(rng.randrange(20)):
                await asyncio.sleep(0)
        expected = {
            item["metadata"]["uid"]: item["metadata"]["resourceVersion"] for item in await held_by(pods)
        }

        def mirrored():
            assert not task.done(), task.result()
            found = (pod["metadata"] for pod in folded.pods.values())
            return expected == {meta["uid"]: meta["resourceVersion"] for meta in found}

        await eventually(mirrored)
        task.cancel()
        await asyncio.wait([task])

    assert reflector.statistics.errors > 0
