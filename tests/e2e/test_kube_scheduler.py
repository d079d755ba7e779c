"""kube-scheduler itself, unmodified, on the sandbox; and Berth, which says the same of the same pods."""

import asyncio
import os
import signal
from contextlib import AsyncExitStack
from functools import partial

import pytest

from berth.client.resources import EVENTS, LEASES, PODS, RESOURCE_CLAIMS
from tests.e2e.default_cluster import BERTH, CONFIGURATION, default_cluster, start_scheduler
from tests.e2e.seen import Seen, in_words, items, until
from tests.e2e.side_by_side import PODS as IN_TURN
from tests.e2e.side_by_side import node, pod, surroundings
from tests.kube_scheduler import WITHOUT, kube_scheduler

pytestmark = [pytest.mark.e2e, pytest.mark.skipif(kube_scheduler() is None, reason=WITHOUT)]

# Resource claims are among what the sandbox does not read as protobuf.
JSON = CONFIGURATION.replace("qps: -1", "qps: -1, contentType: application/json")
ELECTED = CONFIGURATION.replace(
    "leaderElect: false", "leaderElect: true, leaseDuration: 3s, renewDeadline: 2s, retryPeriod: 500ms"
)
PREEMPTORS = ("important", "important-on-one-node", "past-the-budget")
# Not tried: it waits for its resource claim before it gets into the queue, and for its own scheduler.
UNTRIED = ("missing-device", "for-another-scheduler")
LATER_SECONDS = 3


def notes(events, uids):
    """The first event of each reason on each pod."""
    found = {}
    for name, reason, words in in_words(events, uids):
        found.setdefault((name, reason), words)
    return found


def allocated(claims):
    """What each claim has got for whom, but not when."""
    found = {}
    for each in claims:
        status = each.get("status", {})
        allocation = {k: v for k, v in status.get("allocation", {}).items() if k != "allocationTimestamp"}
        found[each["metadata"]["name"]] = allocation, [user["name"] for user in status.get("reservedFor", ())]
    return found


async def look_at_all(folder, configuration, **which):
    """Have a scheduler look at each pod in turn; what became of them, its events, and the claims' devices."""
    seen, uids = Seen(), {}

    def look(kind, document):
        uids[document["metadata"]["uid"]] = document["metadata"]["name"]
        seen.look(kind, document)

    async with (
        default_cluster(folder, surroundings(), configuration, **which) as cluster,
        cluster.watching(look),
    ):
        for each in IN_TURN:
            await cluster.create(PODS, [each])
            if (name := each["metadata"]["name"]) not in UNTRIED:
                await until(partial(seen.decided, name), name)
        await until(lambda: seen.on.keys() >= set(PREEMPTORS), "preemptors")
        await asyncio.sleep(LATER_SECONDS)
        return (
            seen,
            notes(await items(cluster, EVENTS), uids),
            allocated(await items(cluster, RESOURCE_CLAIMS)),
        )


async def test_same_words(tmp_path):
    """Conditions, nominations, nodes, events and devices of the same pods are the same, word by word."""
    folders = tmp_path / "kube", tmp_path / "berth"
    for folder in folders:
        folder.mkdir()
    theirs, *their_writes = await look_at_all(folders[0], JSON, scheduler=(kube_scheduler(),))
    ours, *our_writes = await look_at_all(folders[1], JSON)
    # Berth says why a plugin keeps a pod out of the queue (kubernetes/kubernetes#142330).
    ours.first.pop("missing-device", None)

    assert theirs.first == ours.first
    assert theirs.nominated == ours.nominated
    assert theirs.on == ours.on
    assert theirs.gone == ours.gone
    assert their_writes == our_writes


async def test_takes_turns(tmp_path):
    """Berth takes over lease and work of a kube-scheduler that was killed, and the other way round."""
    kube, seen, holders = (kube_scheduler(),), Seen(), []
    first = default_cluster(tmp_path, [node("n1")], ELECTED, scheduler=kube)
    async with first as cluster, cluster.watching(seen.look), AsyncExitStack() as stack:
        leader, configured = cluster.scheduler, tmp_path / "scheduler.yaml"
        for i, command in enumerate((BERTH, kube, BERTH)):
            await cluster.create(PODS, [pod(f"p{i}")])
            await until(partial(seen.decided, f"p{i}"), f"p{i}")
            (lease,) = await items(cluster, LEASES)
            holders.append(lease["spec"]["holderIdentity"])
            successor, _ = await start_scheduler(tmp_path / f"successor-{i}.log", configured, command)
            stack.push_async_callback(successor.stop)
            os.kill(leader.pid, signal.SIGKILL)
            leader = successor

    assert dict.fromkeys(("p0", "p1", "p2"), "n1") == seen.on
    assert 3 == len(set(holders))
