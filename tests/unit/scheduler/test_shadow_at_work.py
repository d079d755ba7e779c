"""Plugins in the shadow of a scheduler at work: whatever they do, pods go where they would have gone."""

import asyncio
import json
import ssl

import aiohttp
import pytest

from berth_sdk import Nomination, Plugin
from berth_sdk.serving import Server
from tests.suite import PATIENCE_SECONDS
from tests.unit.scheduler.test_plugins_at_work import at_work
from tests.unit.scheduler_at_work import eventually, node

COUNT = 40
OTHER_COLOUR = "green"
"""A colour that no node has."""


def nodes():
    """Nodes of several sizes, so that there is something to decide."""
    made = [node(f"n{i}", colour="red" if i % 2 else "blue") for i in range(5)]
    for i, document in enumerate(made):
        for offered in document["status"].values():
            offered |= {"cpu": f"{4 + i}", "pods": "2000"}
    return made


async def decisions(cluster):
    """The nodes of pods that come in two waves; between them the plugin may be done something to."""
    first = cluster.create(COUNT)
    await cluster.bound(first)
    yield None
    second = cluster.create(COUNT)
    await cluster.bound(second)
    yield cluster.nodes_of(first + second)


@pytest.fixture(scope="module")
def alone():
    """What is decided without any plugin; filled in by the first who asks."""
    return []


async def undisturbed(alone):
    """The nodes of the same pods where there is no plugin."""
    if not alone:
        async with at_work(*nodes(), listed=False) as cluster:
            alone[:] = [found async for found in decisions(cluster)][-1]
    return alone


async def comparison(cluster):
    """What `berth plugin describe` says of the comparison."""
    return json.loads(await cluster.berth("describe", "colours", "-o", "json"))["comparison"][
        "default-scheduler"
    ]


async def counted(cluster, count):
    """How so many attempts compared, once they are all counted."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while sum((known := (await comparison(cluster))["attempts"]).values()) < count:  # noqa: ASYNC110 - asked over HTTP
            await asyncio.sleep(0.01)
    return known


async def metrics(cluster):
    """The scheduler's metrics as text."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    async with (
        aiohttp.ClientSession() as client,
        client.get(f"{cluster.server}/metrics", ssl=context) as answer,
    ):
        return await answer.text()


@pytest.mark.parametrize("how", ["rejects", "hang", "garbage", "dies", "not there"])
async def test_changes_nothing(alone, how):
    """A plugin in shadow that rejects every node, hangs, talks nonsense or dies changes no decision."""
    expected = await undisturbed(alone)
    async with at_work(*nodes(), shadow=True) as cluster:
        if how != "not there":
            await cluster.start("v1", OTHER_COLOUR)
            await eventually(lambda: cluster.notes("PluginReady"))
        if how in {"hang", "garbage"}:
            cluster.misbehave(how)
        waves = decisions(cluster)
        await anext(waves)
        if how == "dies":
            await cluster.kill("v1")
        found = await anext(waves)
        await waves.aclose()

        assert expected == found
        counts = await counted(cluster, 2 * COUNT)
        assert (2 * COUNT, False) == (sum(counts.values()), "same" in counts)
        assert [] == cluster.notes("FailedScheduling")


async def test_counts():
    """Each attempt is compared with what the plugin says of it, in describe and in the metrics."""
    async with at_work(shadow=True, seconds=30) as cluster:
        await cluster.start("v1", "red")
        await eventually(lambda: cluster.notes("PluginReady"))
        names = []
        for i in range(8):
            names += cluster.create(1)
            await cluster.bound(names)
            await counted(cluster, i + 1)
        on_blue = [
            name for name, where in zip(names, cluster.nodes_of(names), strict=True) if where == "blue"
        ]
        found = await comparison(cluster)

        assert {"same": 8 - len(on_blue), "rejected": len(on_blue)} == found["attempts"]
        assert found["nodesRejected"] == 8
        assert [f"default/{name}" for name in on_blue] == [each["pod"] for each in found["latest"]]
        assert {"node(s) of another colour"} == {each["detail"] for each in found["latest"]}
        assert "In the shadow of default-scheduler:" in await cluster.berth("describe", "colours")
        labels = 'plugin="colours",profile="default-scheduler"'
        text = await metrics(cluster)
        assert f"berth_plugin_shadow_nodes_rejected_total{{{labels}}} 8.0" in text
        outcomes = f'berth_plugin_shadow_attempts_total{{outcome="rejected",{labels}}}'
        assert f"{outcomes} {len(on_blue)}.0" in text


async def test_switched_while_pods_come():
    """In shadow the plugin decides nothing; out of it, it decides again."""
    async with at_work() as cluster:
        await cluster.start("v1", "red")
        assert {"red"} == await cluster.bound(cluster.create(5))
        assert "colours is in shadow" in await cluster.berth("shadow", "colours")
        assert {"red", "blue"} == await cluster.bound(cluster.create(20))
        assert "yes" in await cluster.berth("list")
        assert "colours takes part" in await cluster.berth("shadow", "colours", "--off")

        assert {"red"} == await cluster.bound(cluster.create(10))
        assert "no plugin missing" in await cluster.berth("shadow", "missing", code=2)


async def test_what_it_rejected():
    """Pods that no node would do for are tried again at once when the plugin steps into the shadow."""
    async with at_work() as cluster:
        await cluster.start("v1", OTHER_COLOUR)
        waiting = cluster.create(3)
        await eventually(lambda: len(cluster.notes("FailedScheduling")) >= 1)
        await cluster.berth("shadow", "colours")

        assert {"red", "blue"} >= await cluster.bound(waiting)


class Usurper(Plugin):
    """Would evict everybody for a pod that fits nowhere."""

    name = "colours"
    wants_pods = True

    def __init__(self):
        self.placed = set()

    def pod_upserted(self, placed):
        self.placed.add(placed.uid)

    def post_filter(self, *_):
        return Nomination("red", tuple(self.placed))


async def test_room():
    """A plugin that would evict others for a waiting pod is quoted, and no pod is evicted."""
    small = node("red", colour="red")
    for offered in small["status"].values():
        offered["pods"] = "1"
    async with at_work(small, shadow=True, seconds=30) as cluster:
        usurper = Usurper()
        server = Server(usurper, f"unix:{cluster.folder}/v1.sock")
        await server.start()
        await eventually(lambda: cluster.notes("PluginReady"))
        [first] = cluster.create(1)
        await cluster.bound([first])
        await eventually(lambda: usurper.placed)
        [second] = cluster.create(1)
        await eventually(lambda: cluster.notes("FailedScheduling"))
        assert {"room": 1} == await counted(cluster, 1)

        line = f"default/{second}: room: nominates red, evicts default/{first}"
        assert line in await cluster.berth("describe", "colours")
        assert ["red", None] == cluster.nodes_of([first, second])
        await server.stop(0)


class Closed(Plugin):
    """A gate that no pod passes."""

    name = "colours"

    def __init__(self):
        self.asked = set()

    def pre_enqueue(self, pod):
        self.asked.add(pod.name)
        return "not before noon"


@pytest.mark.parametrize("leave", [("shadow", "colours"), ("detach", "colours")])
async def test_what_it_held_back(leave):
    """Pods behind the plugin's gate go on at once when it steps into the shadow, or leaves."""
    async with at_work() as cluster:
        gate = Closed()
        server = Server(gate, f"unix:{cluster.folder}/v1.sock")
        await server.start()
        await eventually(lambda: cluster.notes("PluginReady"))
        waiting = cluster.create(3)
        await eventually(lambda: gate.asked == set(waiting))
        await cluster.berth(*leave)

        assert {"red", "blue"} >= await cluster.bound(waiting)
        await server.stop(0)
