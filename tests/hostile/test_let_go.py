"""What failed, was asked or was sent goes with its object: no cycles that wait, and stores bounded in bytes.

Garbage is collected seldom (`collect_seldom`): a cycle that holds a request or a table of nodes would stay.
"""

import asyncio
import gc
import json
import platform
from contextlib import contextmanager

import pytest

from berth.client.connections.connection import Connection
from berth.config.catalogue import ExtensionPoint
from berth.config.out_of_tree.sidecars import FailurePolicy
from berth.explain.attempt_log import AttemptLog
from berth.framework.status import failed
from berth.objects.pods.pod_decoding import decode_pod
from berth.out_of_tree.cluster_state import raw_objects, state_feed
from berth.out_of_tree.cluster_state.raw_objects import RawObjects
from berth.out_of_tree.errors import SidecarError
from berth.out_of_tree.limits import MESSAGE_BYTES
from berth.scheduler.loop.event_loop import give_back_regularly
from berth.scheduler.pages.explaining import new_explainer
from tests.benchmarks.start import resident_mebibytes
from tests.explain.asking import Asked
from tests.hostile.test_large_objects import over_grpc
from tests.hostile.test_shapes_of_pods import pod_affinity
from tests.hostile.whole_core import WholeCore, pod_document
from tests.suite import PATIENCE_SECONDS
from tests.unit.out_of_tree.scripted import Scripted, hosted, until
from tests.unit.out_of_tree.transport.test_ttrpc import scripted

LARGE = {"text": "x" * MESSAGE_BYTES}
LITTLE = 10_000


@contextmanager
def left_to_the_collector(*kinds):
    """The names of new objects that nothing but a cycle holds once the context ends, by kind.

    What a cache kept of other tests may be let go meanwhile: it is held until the end, and so not found.
    """
    found = []
    gc.collect()
    gc.disable()
    older = [each for each in gc.get_objects() if shown(each).startswith(kinds)]
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        yield found
        gc.collect()
        found += [each for each in map(shown, gc.garbage) if each.startswith(kinds)]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        older.clear()
        gc.enable()


def shown(thing):
    """The type and, of a frame, the module that its code is in."""
    module = thing.f_globals.get("__name__", "") if type(thing).__name__ == "frame" else ""
    return f"{type(thing).__name__} {module}"


@pytest.mark.parametrize("make", [over_grpc, scripted])
async def test_a_request_that_is_not_sent_goes_with_its_attempt(make):
    """The status keeps the error, and the error none of the frames that had the request."""
    async with hosted(make()) as harness:
        await harness.up()
        pod = harness.pod("large", annotations=LARGE)
        with left_to_the_collector("frame berth.") as left:
            try:
                await harness.filter(pod)
            except SidecarError as error:
                status = failed(error)

        assert "was not asked" in status.message
        assert [] == left


async def test_a_request_whose_failure_is_ignored_goes_with_its_attempt():
    plugin = over_grpc()
    async with hosted(plugin, policy={ExtensionPoint.FILTER: FailurePolicy.IGNORE}) as harness:
        await harness.up()
        pod = harness.pod("large", annotations=LARGE)
        with left_to_the_collector("frame berth.") as left:
            codes = await harness.filter(pod)

        assert [0, 0, 0] == codes.tolist()
        assert [] == left


def test_an_explanation_leaves_no_snapshots():
    """Three are made for one, each of which knows the terms of the pod."""
    core, many = WholeCore(), decode_pod(json.dumps(pod_document("many", **pod_affinity(50))).encode())
    core.core.pod_handler.on_add(many)

    async def explained():
        asked = Asked()
        explainer = new_explainer(core.core, AttemptLog(), asked.explainer.turn, lambda: [many])
        with left_to_the_collector("Snapshot", "PlacedPods", "Selector") as left:
            await explainer.explain("default", "many")
        return left

    assert [] == asyncio.run(explained())


def test_earlier_versions_are_bounded_in_bytes(monkeypatch):
    monkeypatch.setattr(raw_objects, "MAX_EARLIER_BYTES", LITTLE)
    kept = RawObjects()
    kept.keeps_earlier = True
    decode = kept.decoding(decode_pod)

    def brought(version):
        document = pod_document("p", annotations={"text": "x" * (LITTLE // 4)})
        document["metadata"]["resourceVersion"] = str(version)
        return decode(json.dumps(document).encode())

    versions = [brought(version) for version in range(9)]
    known = [bool(kept.of(each)) for each in versions]

    assert [True] * 3 == known[-3:]
    assert not any(known[:-4])


async def test_steps_for_a_plugin_are_bounded_in_bytes(monkeypatch):
    """A plugin that comes back after many large pods is sent everything anew."""
    monkeypatch.setattr(state_feed, "MAX_KEPT_BYTES", LITTLE)
    async with hosted(Scripted()) as harness:
        await harness.up()
        feed = harness.connection._feed
        before = feed.generation
        for number in range(9):
            pod = harness.pod(f"p{number}", annotations={"text": "x" * (LITTLE // 4)})
            harness.cache.add_pod(pod.placed_on("n0"))
            harness.step()

        assert feed.since(before) is None
        assert feed.since(feed.generation - 1) is not None
        assert feed._deltas.size_bytes <= LITTLE


async def test_pods_that_failed_are_kept_by_name_alone():
    """They may be gone before the plugin answers again, and nothing says so to it."""
    async with hosted(over_grpc()) as harness:
        await harness.up()
        pod = harness.pod("large", annotations=LARGE)
        with pytest.raises(SidecarError):
            await harness.filter(pod)
        (kept,) = harness.plugin._failed.values()

        assert (pod.uid, pod.key) == (kept.uid, kept.key)
        assert {} == kept.metadata.annotations


async def test_an_idle_connection_keeps_nothing_of_its_last_answer():
    """A patch of a pod is answered with the pod."""
    answers, closed, loop = [], asyncio.Event(), asyncio.get_running_loop()

    async def answer(reader, writer):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabcd")
        await reader.read()
        writer.close()
        closed.set()

    async with await asyncio.start_server(answer, "127.0.0.1") as server:
        address = server.sockets[0].getsockname()
        _, connection = await loop.create_connection(Connection, *address)
        connection.send(b"", loop.time() + PATIENCE_SECONDS, answers.append)
        await until(lambda: answers)

        assert [b"abcd"] == [each.body for each in answers]
        assert [] == connection._pieces
        connection.abort()
        await closed.wait()


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries have no such call")
async def test_free_memory_is_given_back_again_and_again():
    """What lies between blocks that stay is the system's again, whenever it was freed."""
    giving = asyncio.create_task(give_back_regularly(0.01))
    try:
        for _ in range(2):
            blocks = [b"x" * 3_000 + b"%d" % i for i in range(20_000)]
            staying, full = blocks[::100], resident_mebibytes("self")
            del blocks
            await until(lambda full=full: full - resident_mebibytes("self") > 30)
            assert len(staying) == 200
    finally:
        giving.cancel()
