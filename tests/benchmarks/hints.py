"""What a sidecar costs the pods that wait: one event, many pods, one question.

Beside the times, which a busy machine stretches, the CPU that this process and the plugin use for an event.
"""

import asyncio
import gc
import sys
import tempfile
import time
from contextlib import asynccontextmanager
from pathlib import Path

from berth.config.out_of_tree.sidecars import SidecarSpec
from berth.framework.ports.plugin_metrics import PluginMetrics
from berth.framework.queueing.object_events import NODE_ADD
from berth.framework.runtime import Framework, ProfilePlugins
from berth.out_of_tree.lifecycle.attaching import Attaching
from berth.out_of_tree.lifecycle.wanted import DesiredPlugin
from berth.plugins.priority_sort import PrioritySort
from berth.queue.requeueing.hints import build_hint_map
from berth.queue.requeueing.queue_profile import QueueProfile
from berth.queue.scheduling_queue import SchedulingQueue
from berth.scheduler.loop.event_loop import collect_seldom
from berth.testing.handles import ManualClock, make_handle
from tests.benchmarks.sidecar import appeared, host_of, unknown
from tests.benchmarks.tables import Table, quantiles
from tests.benchmarks.workloads import Core, node_bytes, pod_template, read_node, read_pod

NAME = "hints"
PROFILE = "default-scheduler"
EVENTS = 60
WARM_UP = 10


class Calls(PluginMetrics):
    """How long each question took, from asking to the answer read."""

    def __init__(self):
        super().__init__()
        self.taken = []

    def called(self, plugin, method, outcome, seconds):
        """Note it, in milliseconds."""
        assert (plugin, outcome) == (NAME, "ok"), (plugin, method, outcome)
        self.taken.append(seconds * 1e3)


class Waiting:
    """A queue whose pods wait for what the plugin of `host` says."""

    def __init__(self):
        self.clock, self.queued, self.host = ManualClock(1000.0), asyncio.Event(), None
        self.plugin_pid = 0
        order, self._profiles = PrioritySort(None, None), {}
        self.queue = SchedulingQueue(
            order.less,
            self._profiles,
            self.clock,
            pod_lister=unknown,
            sort_key=order.sort_key,
            on_ready=self.queued.set,
            ask_hints=lambda questions, _answered: self.host.ask_hints(questions),
        )

    def wait_for(self, plugin):
        """Let the plugin's hints decide."""
        self._profiles[PROFILE] = QueueProfile((), build_hint_map([plugin]))


def run(options):
    """A row for each number of waiting pods."""
    collect_seldom()  # as the scheduler does
    asyncio.run(_run(options.rounds or EVENTS))


async def _run(events):
    table = Table(
        "hints of one plugin (Python, unix socket), ms from an event until its pods are queued",
        [
            "waiting pods",
            "answered, p50",
            "p90",
            "p99",
            "queued, p50",
            "queue held, p50",
            "CPU, p50",
            "p99",
            "plugin's CPU, p50",
            "p99",
        ],
    )
    for count in (100, 1_000, 5_000):
        async with with_plugin() as waiting:
            table.add(f"{count:,}", *await measure(waiting, count, events))
    table.show()


@asynccontextmanager
async def with_plugin():
    """A host with the plugin attached to a profile, a process of its own."""
    with tempfile.TemporaryDirectory(prefix="berth-") as folder:
        socket = Path(folder, "p.sock")
        command = [sys.executable, "-m", "tests.benchmarks.hints_plugin", NAME, f"unix:{socket}"]
        process = await asyncio.create_subprocess_exec(*command)
        try:
            await appeared([socket])
            async with asyncio.TaskGroup() as tasks:
                core, waiting = Core(), Waiting()
                host = waiting.host = host_of(core, [], [], waiting.queue, metrics=Calls())
                decode = host.nodes.decoding(read_node)
                for data in node_bytes(3):
                    core.cache.add_node(decode(data))
                core.cache.update_snapshot(core.snapshot)
                framework = Framework(PROFILE, ProfilePlugins())
                handle = make_handle(core.snapshot)
                attaching = Attaching(
                    host, {PROFILE: framework}, {PROFILE: handle}, lambda work, _: tasks.create_task(work)
                )
                await attaching.attach(DesiredPlugin(SidecarSpec(NAME, f"unix:{socket}"), (PROFILE,)))
                waiting.wait_for(host.plugins[NAME, PROFILE])
                waiting.plugin_pid = process.pid
                yield waiting
                host.versions[NAME].task.cancel()
        finally:
            process.terminate()
            await process.wait()


async def measure(waiting, count, events):
    """Milliseconds until there is an answer, until its pods are queued, of the queue's work, and of CPU."""
    queue, clock, host, template = waiting.queue, waiting.clock, waiting.host, pod_template()
    decode = host.pods.decoding(read_pod)
    for i in range(count):
        queue.add(decode(template.bytes(i)))
    reject(queue, clock)
    node = host.nodes.decoding(read_node)(next(iter(node_bytes(1))))
    taken, held, own, plugins = [], [], [], []
    for _ in range(events + WARM_UP):
        gc.collect()
        waiting.queued.clear()
        started, own_before, plugins_before = (
            time.perf_counter(),
            time.process_time(),
            cpu(waiting.plugin_pid),
        )
        queue.move_all(NODE_ADD, None, node)
        held.append((time.perf_counter() - started) * 1e3)
        await waiting.queued.wait()
        taken.append((time.perf_counter() - started) * 1e3)
        own.append((time.process_time() - own_before) * 1e3)
        plugins.append(cpu(waiting.plugin_pid) - plugins_before)
        assert queue.sizes().active == (count + 1) // 2, queue.sizes()
        reject(queue, clock)
    answered = quantiles(host.metrics.taken[-events:], 0.5, 0.9, 0.99)
    walls = [*answered, *quantiles(taken[WARM_UP:], 0.5), *quantiles(held[WARM_UP:], 0.5)]
    return [*walls, *quantiles(own[WARM_UP:], 0.5, 0.99), *quantiles(plugins[WARM_UP:], 0.5, 0.99)]


def cpu(pid):
    """The CPU milliseconds that a process of one thread has used: by the kernel's own clock, not in ticks."""
    return int(Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()[0]) / 1e6


def reject(queue, clock):
    """Every ready pod is tried and turned down by the plugin; its backoff passes."""
    while (record := queue.pop()) is not None:
        record.unschedulable_plugins = {NAME}
        queue.add_unschedulable_if_not_present(record)
    clock.seconds += 60
