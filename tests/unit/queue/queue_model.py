"""The scheduling queue once more, as plainly as core 2 has it: no heaps, no groups, no lazy anything."""

from dataclasses import dataclass, field
from math import floor, inf

from berth.framework.cluster_event import FORCE_ACTIVATE, UNSCHEDULABLE_TIMEOUT, QueueingHint
from berth.framework.queueing.object_events import pod_events
from tests.unit.queue.kit import NODE_ADD, NODE_LABEL, Gates, Rejector, queue_it, skip_it

LABEL_CHANGED = "UnschedulablePodUpdatePodLabel"
GATES_GONE = "UnschedulablePodUpdatePodSchedulingGatesEliminated"

OF_INTEREST = {"NodeAdd", "NodeUpdateNodeLabel", "NodeUpdateNodeTaint"}
QUEUES = {
    ("A", "NodeAdd"),
    ("A", "NodeUpdateNodeTaint"),  # implied by waiting for new nodes
    ("B", "NodeUpdateNodeTaint"),
    ("B", "NodeUpdateNodeLabel"),
    ("B", LABEL_CHANGED),
    ("Gates", GATES_GONE),
}


def own_pod_only(pod, _old, new):
    return QueueingHint.QUEUE if new.uid == pod.uid else QueueingHint.SKIP


def the_plugins(gates_gone, label_changed):
    """The plugins of which OF_INTEREST and QUEUES tell."""
    return [
        Rejector("A", {NODE_ADD: queue_it}),
        Rejector("B", {NODE_ADD: skip_it, NODE_LABEL: queue_it, label_changed: own_pod_only}),
        Gates(events=[gates_gone], hint=own_pod_only),
    ]


@dataclass
class Entry:
    """A pod and its history."""

    pod: object
    timestamp: float
    place: str = ""
    rejectors: set = field(default_factory=set)
    pending: set = field(default_factory=set)
    rejections: int = 0
    errors: int = 0
    gated: bool = False
    attempts: int = 0

    def expiry(self):
        count = self.errors or self.rejections
        return floor(self.timestamp + min(2 ** (count - 1), 10)) if count else -inf

    def rank(self):
        return -self.pod.priority, self.timestamp


class QueueModel:
    """Pods by name, pods in flight by UID, and one list of what happened since they were popped."""

    def __init__(self):
        self.now = 1000.0
        self.waiting = {}
        self.flying = {}
        self.log = []
        self.promised = {}

    # The rules.

    def worth(self, entry, event, about):
        if not entry.rejectors:
            return "backoff"
        if event.wildcard:
            return "skip" if about is not None and about.uid != entry.pod.uid else "backoff"
        own = event.resource != "Node"
        if own and about.uid != entry.pod.uid:
            return "skip"
        queueing = {plugin for plugin in entry.rejectors if (plugin, event.label) in QUEUES}
        if queueing & entry.pending:
            return "now"
        return "backoff" if queueing else "skip"

    def requeue(self, entry, strategy):
        if strategy == "skip" or self.gate_shut(entry):
            entry.place = "pool"
        elif strategy == "backoff" and entry.expiry() >= floor(self.now):
            entry.place = "normal" if entry.rejectors else "error"
        else:
            entry.place = "active"
        self.waiting[entry.pod.name] = entry

    def gate_shut(self, entry):
        entry.gated = bool(entry.pod.spec.scheduling_gates)
        if entry.gated:
            entry.rejectors.add("Gates")
        return entry.gated

    def happened(self, event, about):
        if self.flying:
            self.log.append((event, about))

    def done(self, uid):
        if self.flying.pop(uid, None):
            self.log.remove(uid)
            while self.log and not isinstance(self.log[0], str):
                del self.log[0]

    def nominate(self, pod, node=None):
        """To that node, or to the one in the pod's status; an empty name takes it back."""
        self.promised.pop(pod.uid, None)
        if chosen := pod.nominated_node_name if node is None else node:
            self.promised[pod.uid] = chosen

    # What is done to the queue.

    def add(self, pod):
        entry = Entry(pod, self.now)
        self.requeue(entry, "now")
        if entry.place == "active":
            self.nominate(pod)

    def update(self, old, new):
        if new.uid in self.flying:
            for event in pod_events(old, new):
                self.happened(event, new)
            return
        entry = self.waiting.get(new.name)
        if entry is None:
            self.add(new)
            return
        entry.pod = new
        unreported = not (old.nominated_node_name or new.nominated_node_name)
        self.nominate(new, self.promised.get(new.uid) if unreported else None)
        if entry.place == "pool":
            for event in pod_events(old, new):
                self.requeue(entry, self.worth(entry, event, new))
                if entry.place != "pool":
                    break

    def delete(self, pod):
        self.promised.pop(pod.uid, None)
        self.waiting.pop(pod.name, None)

    def next_pods(self):
        """The names of those that may be popped next: several where nothing decides between them."""
        for place, rank in (("active", Entry.rank), ("normal", lambda e: (e.expiry(), *e.rank()))):
            there = [entry for entry in self.waiting.values() if entry.place == place]
            if there:
                best = min(map(rank, there))
                return {entry.pod.name for entry in there if rank(entry) == best}
        return set()

    def pop(self, name):
        entry = self.waiting.pop(name)
        entry.attempts += 1
        self.flying[entry.pod.uid] = entry
        self.log.append(entry.pod.uid)

    def fail(self, uid, pod, rejectors, pending):
        entry = self.flying[uid]
        entry.pod, entry.timestamp = pod, self.now
        entry.rejectors, entry.pending = rejectors | pending, set(pending)
        if entry.rejectors:
            entry.rejections, entry.errors = entry.rejections + 1, 0
        else:
            entry.errors += 1
        missed = [seen for seen in self.log[self.log.index(uid) :] if not isinstance(seen, str)]
        answers = {self.worth(entry, event, about) for event, about in missed}
        best = next((answer for answer in ("now", "backoff") if answer in answers), "skip")
        self.requeue(entry, best if entry.rejectors else "backoff")
        self.done(uid)

    def move(self, event, about=None, most_important=inf):
        if event.label not in OF_INTEREST:
            return
        pooled = [entry for entry in self.waiting.values() if entry.place == "pool" and not entry.gated]
        for entry in [entry for entry in pooled if entry.pod.priority <= most_important]:
            self.requeue(entry, self.worth(entry, event, about))
        self.happened(event, about)

    def activate(self, pod):
        entry = self.waiting.get(pod.name)
        if entry is not None and entry.place in {"normal", "error"}:
            entry.place = "active"
        elif entry is not None and entry.place == "pool":
            self.requeue(entry, "now")
        if (entry is None or entry.place == "pool") and pod.uid in self.flying:
            self.happened(FORCE_ACTIVATE, pod)

    def flush_backoff(self):
        for entry in self.waiting.values():
            if entry.place in {"normal", "error"} and entry.expiry() < floor(self.now):
                entry.place = "active"

    def flush_leftovers(self):
        leftovers = [e for e in self.waiting.values() if e.place == "pool" and self.now - e.timestamp > 300]
        for entry in leftovers:
            if not entry.gated:
                self.requeue(entry, "backoff")
        if leftovers:
            self.happened(UNSCHEDULABLE_TIMEOUT, None)
