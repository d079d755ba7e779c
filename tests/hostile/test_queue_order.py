"""What a plugin can cost with the keys that it gives to pods."""

import asyncio
import logging

import pytest

from berth.framework.clock import SYSTEM_CLOCK
from berth.framework.pacing import TokenBucket
from berth.framework.queueing.queued_pod import NO_KEY, QueuedPodInfo
from berth.out_of_tree.connections.requeue_stream import paced
from berth.out_of_tree.errors import ProtocolError
from berth.out_of_tree.limits import KEYS_A_MESSAGE, MESSAGES_A_SECOND, MESSAGES_AT_ONCE, SORT_KEYS
from berth.out_of_tree.plugin_log import PluginLog
from berth.plugins.priority_sort import priority_order
from berth.queue.pools.record_heap import SPARE, RecordHeap
from berth.testing.builders import make_pod
from berth_plugin_proto import queueing_pb2
from tests.hostile.work import growth


def of(count):
    """A message that gives so many pods another key."""
    changed = queueing_pb2.PodSortKeys(
        uids=[f"u{i}" for i in range(count)], keys=[queueing_pb2.SortKey(parts=[i]) for i in range(count)]
    )
    return queueing_pb2.RequeueResponse(sort_keys=changed)


async def read(*messages):
    """What is read of them, and how long a reader that keeps to the rate pauses."""
    pauses = []

    async def stream():
        for message in messages:
            yield message

    async def sleep(seconds):
        pauses.append(seconds)
        await asyncio.sleep(0)

    rate = TokenBucket(MESSAGES_A_SECOND, MESSAGES_AT_ONCE, SYSTEM_CLOCK.monotonic)
    log = PluginLog(logging.getLogger(__name__))
    taken = [each async for each in paced("fair", stream(), rate, log, sleep)]
    return len(taken), sum(pauses)


async def test_keys_come_at_a_bounded_rate():
    """Twenty keys count as a message more, so that 20,000 a second are taken over at most."""
    messages, each = 60, SORT_KEYS
    taken, paused = await read(*[of(each)] * messages)
    owed = messages * (1 + each / KEYS_A_MESSAGE) - MESSAGES_AT_ONCE

    assert messages == taken
    assert paused >= owed / MESSAGES_A_SECOND - 1


async def test_a_message_of_too_many_keys_ends_the_connection():
    """It is not looked through."""
    with pytest.raises(ProtocolError, match=f"at most {SORT_KEYS} are read"):
        await read(of(SORT_KEYS + 1))


def heap_of(count):
    """A heap of so many records in the order of keys."""
    heap = RecordHeap(lambda record: (record.sort_key, *priority_order(record)))
    records = [QueuedPodInfo(make_pod(f"p{i}"), float(i)) for i in range(count)]
    for record in records:
        heap.put(record.pod.key, record)
    return heap, records


def moves(count):
    """Give each of 200 pods another place 20 times, in a queue of that size."""
    heap, records = heap_of(count)

    def work():
        for turn in range(20):
            for number, record in enumerate(records[:200]):
                record.sort_key = (-turn * number, *NO_KEY[1:])
                heap.put(record.pod.key, record)

    return work


def test_a_change_costs_no_look_at_the_queue():
    """Keys of so many pods cost about as much in a queue four times as long."""
    assert growth(moves, 1000) < 0.5


def test_changes_leave_nothing_behind():
    """However often keys change, the heap holds a bounded number of entries for each pod."""
    heap, records = heap_of(100)
    for turn in range(200):
        for record in records:
            record.sort_key = (turn, *NO_KEY[1:])
            heap.put(record.pod.key, record)

    assert sum(map(len, heap._heaps.values())) <= 2 * len(records) + SPARE
