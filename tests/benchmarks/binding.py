"""What it costs to make a decision true: assume, bind and record the event, on an API server of its own.

Counted is the CPU of this process alone, for each pod: from the node that was chosen to the end of the
attempt, and to the event's answer. The row without writes is what the rest of it costs.
"""

import asyncio
import json
import statistics
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path

import msgspec

from berth.client.api import Api
from berth.client.authentication.credentials import load_endpoint
from berth.client.events import EventRecorder
from berth.client.pods import PodWrites
from berth.client.resources import PODS
from berth.client.transport import Transport
from berth.client.watching.watch import WatchSource, pages
from berth.client.write_guard import WriteGuard
from berth.cycle.attempts import Attempts
from berth.demo.files import RunFiles
from berth.demo.processes import Child, program
from berth.demo.submission import create_all
from berth.framework.attempts.attempt import Attempt
from berth.framework.attempts.cycle_state import CycleState
from berth.framework.queueing.queued_pod import QueuedPodInfo
from berth.plugins.default_binder import DefaultBinder
from berth.scheduler.loop.background import AsyncioBackground
from berth.scheduler.loop.event_loop import collect_seldom, leave_alone_what_there_is
from berth.scheduler.loop.event_loop import run as run_loop
from berth.scheduler.writing.event_recording import PodEvents
from berth.scheduler.writing.pod_writer import PodWriter
from berth.snapshot.snapshot import Snapshot
from berth.testing.builders import make_node
from berth.testing.handles import RecordingRecorder, RememberingWriter, make_handle
from tests.benchmarks.end_to_end import READY_SECONDS
from tests.benchmarks.tables import Table
from tests.benchmarks.workloads import node_bytes, pod_template, read_pod
from tests.fakes import PROFILE, framework, make_core

AT_ONCE = 24
"""How many attempts are on their way at most; the loop has its turn after a third of them."""


def run(options):
    """One table: each row measured once a round, in turn."""
    run_loop(_run(options))


async def _run(options):
    rounds, pods = options.rounds or 12, options.pods or 250
    table = Table("committing a decision, CPU µs a pod", ["what is written", "median", "least"])
    spent = {"nothing": [], "binding": [], "binding and event": []}
    async with AsyncExitStack() as stack:
        transport = await _server(stack, real=options.real)
        work = Committing(transport, await stack.enter_async_context(asyncio.TaskGroup()))
        collect_seldom()
        for name in (*spent, *list(spent) * rounds):
            given = await _pods(transport, pods, name)
            leave_alone_what_there_is()
            spent[name].append(await work.measured(given, name))
        await work.close()
    for name, figures in spent.items():
        table.add(name, statistics.median(figures[1:]), min(figures[1:]))
    table.show()


async def _server(stack, *, real):
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="berth-")))
    files = RunFiles(folder, folder)
    files.prepare()
    up = (program("berth"), "sandbox", "up", "--kubeconfig", str(files.kubeconfig))
    sandbox = await Child.start("sandbox", (*up, "--real") if real else up, files.log("sandbox"), {})
    stack.push_async_callback(sandbox.stop)
    await sandbox.wait_for(files.kubeconfig, READY_SECONDS)
    transport = Transport(load_endpoint(kubeconfig=str(files.kubeconfig)), max_connections=64)
    stack.push_async_callback(transport.aclose)
    nodes = [{"apiVersion": "v1", "kind": "Node", **json.loads(data)} for data in node_bytes(1)]
    await create_all(Api(transport), nodes)
    return transport


async def _pods(transport, count, label):
    """As many new pods as the API server has them."""
    template = pod_template()
    documents = [
        {"apiVersion": "v1", "kind": "Pod", **json.loads(template.bytes(1, number))}
        for number in range(count)
    ]
    name = f"{label.replace(' ', '-')}-{time.time_ns():x}"
    for number, document in enumerate(documents):
        document["metadata"] = {"name": f"{name}-{number}", "namespace": "default", "labels": {"round": name}}
    await create_all(Api(transport), documents)
    source = WatchSource(PODS, label_selector=f"round={name}")
    return [read_pod(raw) async for page in pages(transport, source) for raw in page.items]


class Committing:
    """The parts of a scheduler from a chosen node on."""

    def __init__(self, transport, group):
        self.background = AsyncioBackground(group)
        self.recorder = EventRecorder(Api(transport))
        self.writing = group.create_task(self.recorder.run())
        self.writer = PodWriter(PodWrites(transport, may_write=WriteGuard()), self.background)
        self.ended = self.awaited = 0
        self.reached = asyncio.Event()

    async def measured(self, pods, what):
        """CPU microseconds of a pod."""
        writer = RememberingWriter() if what == "nothing" else self.writer
        recorder = PodEvents(self.recorder) if what.endswith("event") else RecordingRecorder()
        commit = self._commit(writer, recorder)
        self.ended, sent = 0, 0
        before = time.thread_time()
        for pod in pods:
            await self._begin(commit, pod)
            sent += 1
            if sent % (AT_ONCE // 3) == 0:
                await asyncio.sleep(0)
            await self._ended(sent - AT_ONCE + 1)
        await self._ended(sent)
        assert await self.recorder.drain(60)
        after = time.thread_time()
        return (after - before) / len(pods) * 1e6

    def _commit(self, writer, recorder):
        handle = make_handle(writer=writer)
        handle.background = self.background
        self.profile = framework(bind=[DefaultBinder(None, handle)])
        parts = make_core(self.profile, make_node("node-000000"))
        self.nodes = Snapshot()
        commit = parts.schedule_one.commit
        binding = msgspec.structs.replace(
            commit.binding, writer=writer, recorder=recorder, background=self.background
        )
        self.attempts = Attempts(parts.clock, commit.attempts.chance, self._end)
        return msgspec.structs.replace(commit, binding=binding, attempts=self.attempts)

    def _end(self, record):
        assert record.result == "scheduled", record.status
        self.ended += 1
        if self.ended == self.awaited:
            self.reached.set()

    async def _ended(self, count):
        """Wait until so many attempts have ended."""
        if self.ended < count:
            self.awaited = count
            self.reached.clear()
            await self.reached.wait()

    async def _begin(self, commit, pod):
        info = QueuedPodInfo(pod, 0.0, attempts=1)
        record = self.attempts.begin(info, PROFILE)
        cycle = record.begin_phase("scheduling cycle")
        attempt = Attempt(pod, self.nodes, CycleState(), record)
        await commit.commit(self.profile, attempt, info, "node-000000", cycle)

    async def close(self):
        """Write no more events."""
        self.writing.cancel()
