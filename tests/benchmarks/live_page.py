"""What the live page costs a scheduler of 5,000 nodes at 300 pods a second, by the number of its viewers.

Cache, queue, logs and the secure port of a scheduler without the rest of it: each second pods are placed in
the cache and their records are taken. Viewers are in a process of their own and poll as the page does, with
the ETag that they have. The first row has no page: what the others have more is the page's.
"""

import asyncio
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path

import numpy as np

from berth.cache.cache import Cache
from berth.config import load
from berth.event_handlers.pods import lister
from berth.explain.attempt_log import AttemptLog
from berth.framework.attempts.cycle_record import Interval
from berth.framework.clock import SYSTEM_CLOCK
from berth.framework.mirrors.listers import Store
from berth.live_page.collecting import Collector
from berth.live_page.history import History
from berth.live_page.node_map import NodeMap
from berth.live_page.pages import Latest, LivePages
from berth.live_page.recent_attempts import RecentAttempts
from berth.plugins.priority_sort import PrioritySort
from berth.queue.requeueing.queue_profile import QueueProfile
from berth.queue.scheduling_queue import SchedulingQueue
from berth.snapshot.node_tree import ZONE
from berth.snapshot.snapshot import Snapshot
from berth.testing.builders import make_node, make_pod
from tests.benchmarks.tables import Table
from tests.chromium import browser, found
from tests.fakes import new_record
from tests.unit.live_page.states import served

NODES = 5_000
PODS_A_SECOND = 300
SECONDS = 20
STEPS = 40
GPU = "example.com/gpu"
VIEWERS = """
import asyncio, ssl, sys
port, count = int(sys.argv[1]), int(sys.argv[2])
context = ssl._create_unverified_context()

async def view(delay):
    await asyncio.sleep(delay)
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, limit=2**24)
    tag = b'""'
    while True:
        head = b"GET /live/state.json HTTP/1.1\\r\\nHost: x\\r\\nIf-None-Match: " + tag + b"\\r\\n\\r\\n"
        writer.write(head)
        answer = (await reader.readuntil(b"\\r\\n\\r\\n")).split(b"\\r\\n")
        fields = dict(line.lower().split(b": ", 1) for line in answer[1:] if line)
        if b" 200 " in answer[0]:
            await reader.readexactly(int(fields[b"content-length"]))
        tag = fields[b"etag"]
        await asyncio.sleep(1)

async def views():
    await asyncio.gather(*(view(i / count) for i in range(count)))

asyncio.run(views())
"""
FIRST_FIGURES = """
const look = () => document.querySelector('#figures dd') ? window.shownAt = performance.now()
    : requestAnimationFrame(look);
requestAnimationFrame(look);
"""


def run(options):
    """Two tables; `--nodes` and `--rounds`, the seconds of each row, make it smaller."""
    nodes, seconds = options.nodes or NODES, options.rounds or SECONDS
    title = f"{nodes:,} nodes, {PODS_A_SECOND} pods/s, percent of a core (goal: the page under 5)"
    table = Table(title, ["page, viewers", "in all", "the page", "body KiB"])
    without = None
    for viewers in (None, 0, 1, 10):
        used, size = asyncio.run(measured(nodes, seconds, viewers))
        without = used if without is None else without
        name = "none" if viewers is None else f"served, {viewers}"
        table.add(name, used, used - without, size / 1024)
    table.show()
    if found() is not None:
        painted = asyncio.run(first_paint(nodes))
        table = Table(f"{nodes:,} nodes, milliseconds (goal: first paint under 1,000)", ["", "after"])
        for name, milliseconds in painted.items():
            table.add(name, milliseconds)
        table.show()


class Cluster:
    """The parts that the page reads, and what happens to them each second."""

    def __init__(self, nodes):
        self.cache, self.attempts, self.recent = Cache(), AttemptLog(), RecentAttempts()
        offer = {"cpu": "64", "memory": "256Gi", "pods": "110", GPU: 8}
        self.names = [f"node-{i:05}.zone-{i % 3}.example.internal" for i in range(nodes)]
        for i, name in enumerate(self.names):
            self.cache.add_node(make_node(name, labels={ZONE: f"zone-{i % 3}"}, allocatable=offer))
        order = PrioritySort(None, None)
        queue = SchedulingQueue(
            order.less,
            {load(None).profiles[0].scheduler_name: QueueProfile()},
            SYSTEM_CLOCK,
            pod_lister=lister(Store()),
            sort_key=order.sort_key,
        )
        snapshot = Snapshot()
        self.collector = Collector(
            cache=self.cache,
            snapshot=snapshot,
            queue=queue,
            attempts=self.attempts,
            recent=self.recent,
            history=History(queue.sizes, self.recent, SYSTEM_CLOCK),
            nodes=NodeMap(snapshot),
            plugins=list,
            leads=lambda: True,
            turn=asyncio.Lock(),
        )
        self._chance = np.random.default_rng(1)
        self._placed = 0

    async def second(self, *, page):
        """Place the pods of a second and take their records, a tenth of them at a time."""
        began = time.monotonic()
        for tenth in range(10):
            for _ in range(PODS_A_SECOND // 10):
                self._place(page=page)
            await asyncio.sleep(max(0.0, began + (tenth + 1) / 10 - time.monotonic()))
        if page:
            self.collector.history.sample()

    def _place(self, *, page):
        node = self.names[int(self._chance.integers(len(self.names)))]
        self._placed += 1
        pod = make_pod(f"web-{self._placed}", requests={"cpu": "1", "memory": "1Gi"}, node_name=node)
        self.cache.add_pod(pod)
        record = new_record(pod)
        record.result, record.node_name = "scheduled", node
        record.ended_ns = time.monotonic_ns()
        record.dequeued_ns = record.ended_ns - 3_000_000
        span_ids = (b"" if step % 10 else b"12345678" for step in range(STEPS))
        record.intervals = [
            Interval(
                f"plugin-{step % 7} Filter", record.dequeued_ns, record.ended_ns, min(step, 1) - 1, {}, span
            )
            for step, span in enumerate(span_ids)
        ]
        self.attempts.on_record(record)
        if page:
            self.recent.on_record(record)


async def measured(nodes, seconds, viewers):
    """Percent of a core that this process used, and the bytes of a state."""
    cluster = Cluster(nodes)
    pages = {} if viewers is None else LivePages(cluster.collector.collect, SYSTEM_CLOCK).pages()
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(served(pages))
        if viewers:
            command = [sys.executable, "-c", VIEWERS, url.rpartition(":")[2], str(viewers)]
            process = await asyncio.create_subprocess_exec(*command)
            stack.push_async_callback(process.wait)
            stack.callback(process.kill)
        for _ in range(2):
            await cluster.second(page=viewers is not None)
        wall, used = time.monotonic(), time.process_time()
        for _ in range(seconds):
            await cluster.second(page=viewers is not None)
        percent = 100 * (time.process_time() - used) / (time.monotonic() - wall)
        if viewers:
            assert process.returncode is None, "the viewers ended"
        return percent, 0 if viewers is None else len(await body(cluster))


async def body(cluster):
    """A state as it is sent."""
    latest = Latest(cluster.collector.collect, SYSTEM_CLOCK)
    await latest.refresh()
    return latest.state.body


async def first_paint(nodes):
    """When a browser that opens the page paints at first, and when it shows the figures."""
    cluster = Cluster(nodes)
    pages = LivePages(cluster.collector.collect, SYSTEM_CLOCK).pages()
    with tempfile.TemporaryDirectory() as folder:
        async with served(pages) as url, browser(Path(folder)) as open_page:
            page = await open_page(f"{url}/live", before=FIRST_FIGURES)
            figures = await page.until("window.shownAt")
            entry = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime"
            return {"first contentful paint": await page.until(entry), "figures and heat map": figures}
