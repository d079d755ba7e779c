"""A live cluster is followed, and never written to."""

import asyncio

import pytest

from berth.client.api import Api
from berth.demo.submission import create_all
from berth.objects.node import Node
from berth.objects.pods.pod import Pod
from berth.simulation_service.errors import NotSyncedError
from berth.simulation_service.live_cluster import LiveCluster
from tests.unit.scheduler_at_work import eventually
from tests.unit.simulation.kit import node, pod


def is_read(live):
    try:
        live.now()
    except NotSyncedError:
        return False
    return True


async def test_a_cluster_is_followed(transport):
    """What is created, changed and deleted is seen; what was given out stays as it was."""
    bound = pod("p", nodeName="n0")
    bound["metadata"]["namespace"] = "default"
    await create_all(Api(transport), [node("n0"), node("n1"), bound])
    live = LiveCluster(transport)
    with pytest.raises(NotSyncedError):
        live.now()
    following = asyncio.create_task(live.follow())
    await eventually(lambda: is_read(live))
    before = live.now()

    await create_all(Api(transport), [node("n2")])
    await transport.request("DELETE", "/api/v1/nodes/n1")
    await eventually(lambda: {"n0", "n2"} == set(live.now().of(Node)))

    assert {"n0", "n1"} == set(before.of(Node))
    assert ["n0"] == [each.node_name for each in live.now().of(Pod).values()]
    following.cancel()
    await asyncio.wait([following])
