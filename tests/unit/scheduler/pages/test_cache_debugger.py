"""The debugger finds what went astray between the watches, the cache, the queue and the snapshot."""

import asyncio

import pytest

from berth.objects.decode import decoder
from berth.objects.node import Node
from berth.objects.pods.pod_decoding import decode_pod
from berth.scheduler.pages.cache_debugger import CacheDebugger
from berth.testing.builders import make_pod
from tests.failures.reporting import reports
from tests.unit.scheduler_at_work import eventually, node, scheduling


class Watched:
    """A mirror that is up to date with the API server: a stand-in for the reflector that feeds the core."""

    def __init__(self, sandbox, plural, decode):
        self._collection, self._decode = sandbox.store.collection(plural), decode

    def objects(self):
        return [self._decode(entry.body) for entry in self._collection.entries()]


def pod(name, cpu="1"):
    container = {"name": "c", "image": "app:1", "resources": {"requests": {"cpu": cpu}}}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}


def sums(shared):
    shared.cache.node_info("n").requested["cpu"] += 1


def column(shared):
    shared.snapshot.requested[0, 0] += 1


def stray(shared):
    shared.cache.add_pod(make_pod("stray", node_name="n"))


def unseen(shared):
    shared.cache.remove_pod(next(iter(shared.cache.node_info("n").pods.values())).pod)


def lost(shared):
    shared.queue.delete(shared.queue.pending_pods()[0][0])


def leftover(shared):
    shared.queue.add(make_pod("leftover", scheduler_name="default-scheduler"))


def flying(shared):
    shared.queue._in_flight.begin("missing")


@reports("contradicted", log="`cache mismatch`, on SIGUSR2, with each difference")
@pytest.mark.parametrize(
    ("astray", "reported"),
    [
        (lambda _: None, []),
        (sums, ["node n: requested is {'cpu': 1001}, rebuilt {'cpu': 1000}"]),
        (column, ["the snapshot's column requested of cpu differs from a rebuilt one"]),
        (stray, ["pod default/stray is in the cache and does not exist"]),
        (unseen, ["pod default/small is on n and not in the cache"]),
        (lost, ["pod default/big is on no node and in no queue"]),
        (leftover, ["pod default/leftover is in the queue and not to be scheduled"]),
        (flying, ["pod missing is in flight and does not exist"]),
    ],
    ids=["nothing", "sums", "column", "stray", "unseen", "lost", "leftover", "flying"],
)
async def test_differences(tmp_path, caplog, astray, reported):
    """Each is named, in words; where nothing went astray there is none."""
    async with scheduling(tmp_path / "kubeconfig", node("n")) as (sandbox, core):
        sandbox.load([pod("small"), pod("big", cpu="100")])
        shared = core
        await eventually(lambda: shared.cache.pod_count() == 1 and not shared.cache.assumed_count())
        await eventually(lambda: sum(shared.queue.sizes()) == 1)
        mirrors = Watched(sandbox, "nodes", decoder(Node)), Watched(sandbox, "pods", decode_pod)
        debugger = CacheDebugger(core, *mirrors, asyncio.Lock())
        shared.cache.update_snapshot(shared.snapshot)
        astray(shared)
        report = await debugger.report()
        await debugger.write_to_log()

    assert reported == report["differences"][: len(reported) or None]
    logged = [line for line in caplog.messages if line.startswith("cache mismatch difference=")]
    assert [f"cache mismatch difference={one}" for one in report["differences"]] == logged
