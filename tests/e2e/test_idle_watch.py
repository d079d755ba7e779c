"""A watch of events on which nothing happens, on a real kube-apiserver, after etcd has compacted its version.

The API server keeps events out of its watch cache and sends no bookmarks for them. etcd is asked to compact
over its HTTP gateway, as the API server does every five minutes.
"""

import asyncio
import os

import aiohttp
import msgspec
import pytest

from berth.client.authentication.credentials import load_endpoint
from berth.client.resources import EVENTS
from berth.client.transport import Transport
from berth.client.watching.reflector import Reflector
from berth.client.watching.watch import WatchSource
from berth.sandbox.real.assets import find_assets
from berth.sandbox.real.cluster import RealCluster, RealOptions
from tests.e2e.api_servers import api_server_called
from tests.unit.client.conftest import eventually, transport_to
from tests.unit.client.test_reflector import Recorder

pytestmark = pytest.mark.e2e
decode = msgspec.json.Decoder(dict).decode


async def compact(cluster):
    """Let etcd forget everything before its present revision."""
    etcd = f"http://127.0.0.1:{cluster._ports.etcd}/v3/kv"
    async with aiohttp.ClientSession() as client:
        for _ in range(2):
            async with client.post(f"{etcd}/put", json={"key": "eA==", "value": "eA=="}) as answer:
                revision = (await answer.json())["header"]["revision"]
        async with client.post(f"{etcd}/compaction", json={"revision": revision}) as answer:
            assert 200 == answer.status, await answer.text()


class Watching(Reflector):
    """A mirror whose first watch lasts for a second, and can be waited for."""

    def __init__(self, *parts):
        super().__init__(*parts)
        self.opened = asyncio.Event()
        self._watch_seconds = 1

    def _opened(self):
        super()._opened()
        self.opened.set()


async def watched_again(transport: Transport, cluster):
    """Watch for a second, compact meanwhile, and watch on; gives the mirror after its second list."""
    mirror = Watching(transport, WatchSource(EVENTS, "", "reason=FailedMount"), decode, Recorder())
    running = asyncio.create_task(mirror.run())
    await mirror.opened.wait()
    await compact(cluster)
    await eventually(lambda: mirror.statistics.lists == 2 and mirror.statistics.watches == 3)
    running.cancel()
    await asyncio.wait([running])
    return mirror


async def test_an_idle_watch_of_events_is_listed_anew_without_a_warning(tmp_path, caplog):
    """The version that it resumes from is gone, which is no error of the watch."""
    api_server_called("real")
    cluster = RealCluster(RealOptions(find_assets(None, os.environ), kubelets=False))
    try:
        await cluster.start()
        cluster.write_kubeconfig(tmp_path / "kubeconfig")
        endpoint = load_endpoint(kubeconfig=str(tmp_path / "kubeconfig"))
        async with transport_to(endpoint) as transport:
            mirror = await watched_again(transport, cluster)
    finally:
        await cluster.close()

    assert (0, 0) == (mirror.statistics.errors, mirror.statistics.bookmarks)
    assert [] == [line for line in caplog.messages if "events" in line]
