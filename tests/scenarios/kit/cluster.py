"""A cluster in one process and in virtual time: the scheduler's real core before an API server in memory.

    cluster = Cluster()                      # the default profile, or the plugins given
    cluster.add_node("n0", cpu="2")
    cluster.add_pod("p0", cpu="1")
    await cluster.run()                      # until nothing can go on at this moment
    assert cluster.bound == {"p0": "n0"}
    await cluster.tick(60)                   # the scheduler at work for a minute

Between two awaits nothing runs: what a test does then happens before the scheduler sees any of it.
"""

import asyncio
import random
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import msgspec

from berth.config.releases.release import DEFAULT
from berth.framework.core_ports import CorePorts
from berth.objects.devices.devices import DeviceTaintRule
from berth.objects.node import Node
from berth.objects.pods.pod import Pod
from berth.scheduler.loop.background import AsyncioBackground
from berth.scheduler.loop.scheduling_loop import SchedulingLoop
from berth.scheduler.plugin_source import InProcessPlugins
from berth.scheduler.scheduler import Scheduler
from berth.scheduler.watching.watches import LOOKED_UP
from berth.scheduler.writing.pod_writer import PodWriter
from berth.simulation.cluster.virtual_time import LoopClock
from berth.telemetry.metrics.registry import SchedulerMetrics
from berth.testing.builders import ROOMY, make_node, make_pod
from berth.testing.handles import RecordingRecorder, RecordingVolumeWriter
from tests.scenarios.kit.configuration import PROFILE, configured
from tests.scenarios.kit.memory_api import MemoryApi, MemoryPodGroups, MemoryPods
from tests.unit.plugins.dynamic_resources.kit import FakeClaimWriter

SHORT = ("cpu", "memory")


@dataclass
class _Noting:
    """The scheduling cycle, and the pods that it was given, in order: their names, and when that was."""

    real: Any
    clock: LoopClock
    tried: list = field(default_factory=list)
    tried_at: list = field(default_factory=list)

    async def schedule(self, info):
        self.tried.append(info.pod.name)
        self.tried_at.append(self.clock.wall())
        await self.real.schedule(info)


@dataclass
class Recorder(RecordingRecorder):
    """Remembers events; `on_event` is called as each is reported."""

    on_event: Any = None

    def event(self, *args, **related):
        super().event(*args, **related)
        if self.on_event is not None:
            self.on_event()


class Cluster:
    """The whole of it. Without plugins it runs the default profile.

    `profiles` gives several profiles by scheduler name, each a list of plugins. `settings` are
    top-level fields of the configuration, `gates` feature gates, `release` the one that is followed.
    """

    def __init__(
        self, *plugins, profiles=None, extenders=(), settings=None, gates=None, release=DEFAULT, seed=1
    ):
        profiles = profiles or {PROFILE: list(plugins) or None}
        loaded, factories = configured(profiles, extenders, settings or {}, gates or {}, release)
        loop = asyncio.get_running_loop()
        self.clock = LoopClock(loop)
        self.api = MemoryApi(self.clock)
        self.pods_client = MemoryPods(self.api)
        self.recorder = Recorder()
        self.groups_client = MemoryPodGroups(self.api)
        self.metrics = SchedulerMetrics.following(loaded.gates)
        self.records = []
        self.pod_ready = asyncio.Event()
        background = AsyncioBackground(loop)
        self.core = Scheduler(
            loaded,
            plugins=InProcessPlugins(factories, extenders),
            ports=CorePorts(
                pods=PodWriter(self.pods_client, background),
                volumes=RecordingVolumeWriter(),
                claims=FakeClaimWriter(),
                pod_groups=self.groups_client,
                background=background,
                clock=self.clock,
                chance=random.Random(seed),
            ),
            recorder=self.recorder,
            on_record=self._on_record,
            on_ready=self.pod_ready.set,
            metrics=self.metrics,
        )
        self._cycles = self.core.schedule_one = _Noting(self.core.schedule_one, self.clock)
        self.metrics.watch_queue(self.queue.pods_by_queue)
        if loaded.gates.rules.queues_groups:
            self.metrics.watch_entities(self.queue.entities_by_queue)
        self.metrics.watch_cache(self.cache)
        self.metrics.watch_tasks(self.core.at_work)
        if self.core.dispatcher is not None:
            self.metrics.watch_calls(self.core.dispatcher.pending)
        self._connect_watch()
        self._loop = SchedulingLoop(self.core, clock=self.clock, ready=self.pod_ready, turn=asyncio.Lock())
        self._pause = False
        self._running = loop.create_task(self._drive())

    async def _drive(self):
        if not self._pause:
            await self._loop.run()

    def _connect_watch(self):
        handlers = self.api.watch.handlers
        handlers[Node], handlers[Pod] = self.core.node_handler, self.core.pod_handler
        for kind in LOOKED_UP:
            if not kind.gate or self.core.feature_enabled(kind.gate):
                store = kind.store(self.core.listers)
                handlers[kind.kind] = self.core.resource_handler(kind.events, store)
        if self.core.feature_enabled("DRADeviceTaintRules"):
            handlers[DeviceTaintRule] = self.core.device_taint_rule_handler

    def _on_record(self, record):
        self.metrics.on_record(record)
        self.records.append(record)

    # The scheduler's parts.

    @property
    def queue(self):
        return self.core.queue

    @property
    def cache(self):
        return self.core.cache

    @property
    def snapshot(self):
        return self.core.snapshot

    @property
    def waiting_pods(self):
        return self.core.waiting_pods

    @property
    def watch(self):
        return self.api.watch

    # Time.

    @property
    def now(self):
        return self.clock.wall()

    async def run(self):
        """Let everything go on until it waits for time, for permission, or for the test."""
        await asyncio.get_running_loop().idle()
        if self._running.done():
            self._running.result()

    async def tick(self, seconds):
        """Let that much time pass with the scheduler at work."""
        await asyncio.sleep(seconds)
        await self.run()

    @asynccontextmanager
    async def paused(self):
        """A time in which nothing is popped and nothing flushed, as before this process leads."""
        self._pause = True
        self._loop.stop()
        await self.run()
        yield
        self._pause = False
        self._running = asyncio.get_running_loop().create_task(self._drive())
        await self.run()

    async def turn(self):
        """In a pause: pop a pod and schedule it; gives its name, None where none is ready."""
        info = self.queue.pop()
        if info is not None:
            await self.core.schedule_one.schedule(info)
            await self.run()
        return info and info.pod.name

    # What users and other controllers do.

    def add(self, obj):
        """Create or replace an object of any kind; gives it as stored."""
        stored = self.api.put(obj)
        self.watch.deliver()
        return stored

    def remove(self, obj):
        """Take an object of any kind away."""
        self.api.remove(obj)
        self.watch.deliver()

    def add_node(self, name="n0", **fields):
        """A node, roomy unless cpu or memory is given; further keywords as make_node has them."""
        amounts = {short: fields.pop(short) for short in SHORT if short in fields}
        return self.add(make_node(name, **{"allocatable": {**ROOMY, **amounts}, **fields}))

    def add_pod(self, name="p0", **fields):
        """A pod of the first profile; cpu and memory are requests, `node_name` puts it on a node."""
        amounts = {short: fields.pop(short) for short in SHORT if short in fields}
        requests = {"requests": amounts} if amounts else {}
        return self.add(make_pod(name, **{"scheduler_name": PROFILE, **requests, **fields}))

    def change_pod(self, name="p0", **parts):
        """Change a pod: `labels` in its metadata, `spec` and `status` by field."""
        written = _changed(self.pod(name).written(), **parts)
        return self.add(Pod.of(written.metadata, written.spec, written.status))

    def change_node(self, name="n0", **parts):
        """Change a node: `labels` and `annotations` in its metadata, `spec` and `status` by field."""
        return self.add(_changed(self.node(name), **parts))

    def delete_pod(self, name="p0"):
        """Delete a pod; one on a node goes after the API's grace period."""
        self.api.begin_deletion(self.pod(name))
        self.watch.deliver()

    def mark_deleted(self, name="p0"):
        """Begin a pod's deletion, and let something (a finalizer) keep it there."""
        stamp = datetime.fromtimestamp(self.now, UTC)
        pod = self.pod(name)
        metadata = msgspec.structs.replace(pod.metadata, deletion_timestamp=stamp)
        return self.add(msgspec.structs.replace(pod, metadata=metadata))

    def remove_node(self, name="n0"):
        """Remove a node; its pods stay for now."""
        self.remove(self.node(name))

    # What can be seen from outside.

    def pod(self, name="p0", namespace="default"):
        """The pod as the API server has it, None where it is gone."""
        return self.api.get(Pod, f"{namespace}/{name}")

    def node(self, name="n0"):
        """The node as the API server has it."""
        return self.api.get(Node, name)

    @property
    def bound(self):
        """The node of each pod that is on one."""
        return {pod.name: pod.node_name for pod in self.api.all(Pod) if pod.node_name}

    @property
    def tried(self):
        """The pods that a scheduling cycle was begun for, in order, each as often as it was."""
        return self._cycles.tried

    @property
    def tried_at(self):
        """When each of these cycles was begun."""
        return self._cycles.tried_at

    @property
    def notes(self):
        """Events as (reason, pod, note)."""
        return [(reason, key.partition("/")[2], note) for key, _, reason, _, note in self.recorder.events]

    def condition(self, name="p0", kind="PodScheduled"):
        """That condition of the pod, None where it has none."""
        return next((c for c in self.pod(name).status.conditions if c.type == kind), None)

    def nomination(self, name="p0"):
        """The pod's status.nominatedNodeName."""
        return self.pod(name).nominated_node_name

    def calls(self, verb):
        """The scheduler's calls of that verb to the API server."""
        return [call for call in self.api.calls if call.verb == verb]

    def metric(self, name, **labels):
        """The value of a series without its prefix, 0 where there is none yet."""
        return self.metrics.registry.get_sample_value(f"scheduler_{name}", labels) or 0.0

    # What can be seen inside.

    def queued(self, name="p0", namespace="default"):
        """The pod's record in the queue, None where it does not wait."""
        return self.queue.record(namespace, name)

    def where(self, name="p0", namespace="default"):
        """Where the pod is: active, backoff, error backoff, pool, gated, in flight, assumed, placed, nowhere.

        A pod between Permit and the end of its binding is assumed; one whose binding was seen is placed.
        """
        key, places = f"{namespace}/{name}", self.queue._sub_queues
        if (record := places.pool.get(key)) is not None:
            return "gated" if record.gated else "pool"
        heaps = {
            "active": places.active,
            "backoff": places.backoff.normal,
            "error backoff": places.backoff.error,
        }
        found = next((place for place, heap in heaps.items() if key in heap), None)
        if found is None and key in places.backoff.resting:
            found = "backoff"
        pod = self.pod(name, namespace)
        return found or (self._beyond_the_queue(pod.uid) if pod else "nowhere")

    def _beyond_the_queue(self, uid):
        if self.cache.is_assumed(uid):
            return "assumed"
        if self.cache.get_pod(uid) is not None:
            return "placed"
        return "in flight" if uid in set(self.queue.in_flight()) else "nowhere"


def _changed(obj, *, labels=None, annotations=None, spec=None, status=None):
    metadata = {k: v for k, v in (("labels", labels), ("annotations", annotations)) if v is not None}
    parts = {"metadata": metadata, "spec": spec, "status": status}
    replaced = {
        name: msgspec.structs.replace(getattr(obj, name), **fields)
        for name, fields in parts.items()
        if fields
    }
    return msgspec.structs.replace(obj, **replaced)
