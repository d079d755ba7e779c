"""A queue under a clock that tests turn, with plugins that say what a test wants them to say."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from berth.framework.cluster_event import (
    ActionType,
    ClusterEvent,
    ClusterEventWithHint,
    EventResource,
    QueueingHint,
)
from berth.framework.interface import EnqueueExtensions, FilterPlugin, PreEnqueuePlugin
from berth.framework.queueing.queued_pod import QueuedPodInfo
from berth.framework.status import SUCCESS, unresolvable
from berth.objects.pods.pod import Pod
from berth.plugins.priority_sort import PrioritySort
from berth.queue.requeueing.hints import build_hint_map
from berth.queue.requeueing.queue_profile import QueueProfile
from berth.queue.scheduling_queue import SchedulingQueue
from berth.testing.builders import make_pod
from berth.testing.handles import ManualClock

PROFILE = "default-scheduler"

NODE_ADD = ClusterEvent(EventResource.NODE, ActionType.ADD)
NODE_DELETE = ClusterEvent(EventResource.NODE, ActionType.DELETE)
NODE_LABEL = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_LABEL)
NODE_TAINT = ClusterEvent(EventResource.NODE, ActionType.UPDATE_NODE_TAINT)
CLAIM_ADD = ClusterEvent(EventResource.PERSISTENT_VOLUME_CLAIM, ActionType.ADD)
GATES_GONE = ClusterEvent(EventResource.POD, ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
POD_LABEL = ClusterEvent(EventResource.POD, ActionType.UPDATE_POD_LABEL)


def queue_it(*_question):
    return QueueingHint.QUEUE


def skip_it(*_question):
    return QueueingHint.SKIP


class Rejector(FilterPlugin, EnqueueExtensions):
    """A plugin of any name that turned pods down and waits for these events."""

    def __init__(self, name, hints):
        self._name = name
        self._registrations = [ClusterEventWithHint(event, hint) for event, hint in hints.items()]

    @property
    def name(self):
        return self._name

    def filter(self, state, pod, nodes):
        raise NotImplementedError

    def events_to_register(self):
        return self._registrations


class Gates(PreEnqueuePlugin, EnqueueExtensions):
    """SchedulingGates in short; `asked` counts, and events that are in `later` open no gate."""

    def __init__(self, name="Gates", events=(GATES_GONE,), hint=None, later=()):
        self._name = name
        self._events = events
        self._later = later
        self._hint = hint
        self.asked = 0

    @property
    def name(self):
        return self._name

    def pre_enqueue(self, pod):
        self.asked += 1
        gates = [gate.name for gate in pod.spec.scheduling_gates]
        return unresolvable("gated") if self.name in gates else SUCCESS

    def events_to_register(self):
        return [ClusterEventWithHint(event, self._hint, event not in self._later) for event in self._events]


@dataclass
class CountingMetrics:
    """Counters and gauges by their labels."""

    incoming: Counter = field(default_factory=Counter)
    groups: Counter = field(default_factory=Counter)
    rejected: Counter = field(default_factory=Counter)
    in_flight: Counter = field(default_factory=Counter)
    hints: Counter = field(default_factory=Counter)
    pre_enqueued: Counter = field(default_factory=Counter)
    gates: Counter = field(default_factory=Counter)

    def pod_incoming(self, queue, event):
        self.incoming[queue, event] += 1

    def group_incoming(self, queue, event, kind, pods, *, moved):
        del kind
        self.incoming[queue, event] += pods
        self.groups[queue, event] += moved

    def rejected_pods(self, plugin, profile, change):
        self.rejected[plugin, profile] += change

    def in_flight_events(self, event, change):
        self.in_flight[event] += change

    def hint_executed(self, plugin, event, hint, _duration_seconds, pods=1):
        self.hints[plugin, event, hint] += pods

    def pre_enqueue_executed(self, profile, _duration_seconds):
        self.pre_enqueued[profile] += 1

    def gate_executed(self, plugin, status, _duration_seconds):
        self.gates[plugin, status] += 1


@dataclass
class Bench:
    """A queue, and what stands around it."""

    queue: SchedulingQueue
    clock: ManualClock
    metrics: CountingMetrics
    known: dict[str, Pod]
    woken: list[float]

    def add(self, name="p0", **fields: Any) -> Pod:
        """A new pod, passed to the lister and the queue."""
        pod = a_pod(name, **fields)
        self.known[pod.key] = pod
        self.queue.add(pod)
        return pod

    def update(self, old, new):
        self.known[new.key] = new
        self.queue.update(old, new)

    def popped(self, name="p0", **fields) -> QueuedPodInfo:
        """A new pod in flight."""
        pod = self.add(name, **fields)
        record = self.queue.pop()
        assert record is not None
        assert pod.key == record.pod.key
        return record

    def fail(self, record, *rejectors, pending=()):
        """Give the pod back, rejected by these plugins, or by none."""
        record.unschedulable_plugins = {*rejectors, *pending}
        record.pending_plugins = set(pending)
        self.queue.add_unschedulable_if_not_present(record)

    def pooled(self, name="p0", rejectors=("A",), pending=(), **fields) -> QueuedPodInfo:
        """A pod in the pool, its backoff over."""
        record = self.popped(name, **fields)
        self.fail(record, *rejectors, pending=pending)
        self.clock.seconds += 60
        return record

    def pop_names(self):
        """The names of all pods that can be popped."""
        names = []
        while (record := self.queue.pop()) is not None:
            names.append(record.pod.name)
        return names

    def where(self, pod) -> str:
        """The place of the pod."""
        places = self.queue._sub_queues
        found = [
            name
            for name, place in (
                ("active", places.active),
                ("normal", places.backoff.normal),
                ("resting", places.backoff.resting),
                ("error", places.backoff.error),
                ("pool", places.pool),
            )
            if pod.key in place
        ]
        assert len(found) <= 1
        return found[0] if found else "in flight" if pod.uid in self.queue._in_flight else "nowhere"


def a_pod(name="p0", **fields):
    """A pod of our only profile."""
    return make_pod(name, **{"scheduler_name": PROFILE, **fields})


def a_bench(plugins=None, *, now=1000.0, hints=None, **settings) -> Bench:
    """A queue with these plugins: by default `A` waits for new nodes and `Gates` gates.

    `hints` are what they registered, where it is not theirs.
    """
    if plugins is None:
        plugins = [Rejector("A", {NODE_ADD: queue_it}), Gates()]
    clock, metrics, known, woken = ManualClock(now), CountingMetrics(), {}, []
    gates = [plugin for plugin in plugins if isinstance(plugin, PreEnqueuePlugin)]
    queue = SchedulingQueue(
        PrioritySort(None, None).less,
        {PROFILE: QueueProfile(gates, hints or build_hint_map(plugins))},
        clock,
        pod_lister=lambda namespace, name: known.get(f"{namespace}/{name}"),
        metrics=metrics,
        on_ready=lambda: woken.append(clock.seconds),
        **settings,
    )
    return Bench(queue, clock, metrics, known, woken)
