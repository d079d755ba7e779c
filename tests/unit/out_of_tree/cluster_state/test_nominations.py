"""Nominated pods on their way from the queue's nominator to the plugins that want them."""

import msgspec
import pytest

from berth.framework.interface import NominatingInfo, NominatingMode
from berth_plugin_proto import identity_pb2, state_pb2
from tests.unit.out_of_tree.scripted import Scripted, cycle, hosted, passing, until

STAGES = {
    state_pb2.POD_STAGE_NOMINATED: "nominated",
    state_pb2.POD_STAGE_ASSUMED: "assumed",
    state_pb2.POD_STAGE_PLACED: "placed",
}


def wanting(**interest):
    """A plugin that wants to see nominations."""
    interest = {"nodes": True, "pods": True, "nominations": True, **interest}
    return Scripted(state=identity_pb2.StateInterest(**interest))


def promise(harness, pod, node_name):
    """Nominate the pod to the node, or to none any more."""
    harness.pending[pod.namespace, pod.name] = pod
    harness.queue.nominator.add(pod, NominatingInfo(NominatingMode.OVERRIDE, node_name))


def received(plugin):
    """What the plugin was sent of pods, in order."""
    words = []
    for request in plugin.synced:
        body = request.WhichOneof("body")
        for change in getattr(request, body).changes if body in {"chunk", "delta"} else ():
            match change.WhichOneof("change"):
                case "pod_upsert":
                    pod = change.pod_upsert
                    assert pod.uid == msgspec.json.decode(pod.object)["metadata"]["uid"]
                    words.append(f"{pod.uid[12:]} {STAGES[pod.stage]} on {pod.node_name}")
                case "pod_remove":
                    words.append(f"{change.pod_remove.uid[12:]} gone")
    return words


async def test_come_move_and_go():
    """A nominated pod is sent as it comes, changes node and goes, while nothing else happens."""
    plugin = wanting()
    async with hosted(plugin) as harness:
        await harness.up()
        pod = harness.pod("p")
        for node_name in ("n0", "n1", ""):
            promise(harness, pod, node_name)
            seen = len(received(plugin))
            await until(lambda: len(received(plugin)) > seen)  # noqa: B023 - awaited at once

    assert ["p nominated on n0", "p nominated on n1", "p gone"] == received(plugin)


async def test_transfer():
    """A plugin that comes later is shown those that there are."""
    plugin = wanting()
    async with hosted(plugin) as harness:
        await harness.up()
        promise(harness, harness.pod("p"), "n1")
        await until(lambda: received(plugin))
        harness.connection._state.start_over()
        await until(lambda: len(received(plugin)) == 2)

    assert ["p nominated on n1"] * 2 == received(plugin)


async def test_assumed_and_given_back():
    """A pod that is assumed counts as that, and as nominated again when its attempt fails."""
    plugin = wanting()
    async with hosted(plugin) as harness:
        await harness.up()
        pod = harness.pod("p")
        promise(harness, pod, "n1")
        await until(lambda: received(plugin))
        on_node = pod.placed_on("n1")
        harness.cache.assume_pod(on_node)
        harness.queue.nominator.delete(pod)
        harness.step()
        await until(lambda: "p assumed on n1" in received(plugin))
        harness.cache.forget_pod(on_node)
        promise(harness, pod, "n1")
        harness.step()
        await until(lambda: len(received(plugin)) >= 5)

    assert ["p nominated on n1", "p gone", "p assumed on n1", "p gone", "p nominated on n1"] == received(
        plugin
    )


async def test_a_call_is_about_it():
    """A call made in the same breath is about the generation with the nomination, and carries the step."""
    plugin = wanting()

    async def answer(request, _context):
        return passing(request)

    plugin.replies["FilterScore"] = answer
    async with hosted(plugin) as harness:
        await harness.up()
        promise(harness, harness.pod("p"), "n1")
        await harness.filter(harness.pod("q"), cycle())
        (request,) = plugin.requests("FilterScore")
        newest = harness.connection._feed.generation

    assert newest == request.call.generation
    (change,) = request.call.deltas[-1].changes
    assert ("n1", state_pb2.POD_STAGE_NOMINATED) == (change.pod_upsert.node_name, change.pod_upsert.stage)


@pytest.mark.parametrize(
    ("interest", "expected"),
    [
        pytest.param({}, ["cpu nominated on n0", "gpu nominated on n0"], id="all"),
        pytest.param({"pod_resources": ["example.com/gpu"]}, ["gpu nominated on n0"], id="by resource"),
        pytest.param({"pods": False}, ["cpu nominated on n0", "gpu nominated on n0"], id="without others"),
        pytest.param({"nominations": False}, [], id="none"),
    ],
)
async def test_interest(interest, expected):
    """A plugin is sent those that it wants to see."""
    plugin = wanting(**interest)
    async with hosted(plugin) as harness:
        await harness.up()
        promise(harness, harness.pod("cpu", requests={"cpu": "1"}), "n0")
        promise(harness, harness.pod("gpu", requests={"example.com/gpu": "1"}), "n0")
        harness.add_nodes("last")
        await until(lambda: plugin.held.generation == harness.connection._feed.generation)

    assert expected == received(plugin)
