"""The queue does what its plain model does, whatever happens to it in whatever order."""

from collections import Counter

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from berth.framework.interface import CLEAR_NOMINATION, KEEP_NOMINATION, NominatingInfo, NominatingMode
from tests.suite import examples
from tests.unit.queue.kit import (
    CLAIM_ADD,
    GATES_GONE,
    NODE_ADD,
    NODE_DELETE,
    NODE_LABEL,
    NODE_TAINT,
    POD_LABEL,
    PROFILE,
    a_bench,
    a_pod,
)
from tests.unit.queue.queue_model import QueueModel, the_plugins

NAMES = st.sampled_from(["p0", "p1", "p2", "p3"])
PRIORITIES = st.integers(0, 2)
EVENTS = st.sampled_from([NODE_ADD, NODE_LABEL, NODE_TAINT, NODE_DELETE, CLAIM_ADD])
PLUGINS = st.frozensets(st.sampled_from(["A", "B", "C"]))
GATES = st.sampled_from([(), ("Gates",)])
NODES = st.sampled_from(["", "", "", "n0"])
NOMINATIONS = st.sampled_from(
    [None, KEEP_NOMINATION, CLEAR_NOMINATION, NominatingInfo(NominatingMode.OVERRIDE, "n1")]
)
SECONDS = st.sampled_from([0.25, 1.0, 12.0, 299.0])


class QueueMachine(RuleBasedStateMachine):
    """Both queues side by side."""

    @initialize()
    def begin(self):
        self.bench = a_bench(the_plugins(GATES_GONE, POD_LABEL))
        self.model = QueueModel()
        self.records = {}
        self.count = 0

    @property
    def queue(self):
        return self.bench.queue

    @property
    def known(self):
        return {pod.name: pod for pod in self.bench.known.values()}

    @rule(name=NAMES, priority=PRIORITIES, gates=GATES, node=NODES)
    def add(self, name, priority, gates, node):
        if name in self.known:
            return
        self.count += 1
        fields = {"priority": priority, "gates": gates, "nominated_node_name": node}
        pod = self.bench.add(name, uid=f"uid-{self.count}", **fields)
        self.model.add(pod)

    @precondition(lambda self: self.known)
    @rule(data=st.data(), priority=PRIORITIES, gates=GATES, label=st.sampled_from("ab"), node=NODES)
    def update(self, data, priority, gates, label, node):
        old = self.known[self._one_of(data)]
        self._update(old, priority=priority, gates=gates, labels={"label": label}, nominated_node_name=node)

    @precondition(lambda self: self.known)
    @rule(data=st.data(), nominating=NOMINATIONS, observed=st.booleans())
    def nominate_and_update(self, data, nominating, observed):
        pod = self.known[self._one_of(data)]
        self._nominate(pod, nominating)
        self._update(pod, priority=pod.priority, nominated_node_name="n0" if observed else "")

    def _update(self, old, **fields):
        new = a_pod(old.name, uid=old.uid, **fields)
        self.bench.update(old, new)
        self.model.update(old, new)

    def _one_of(self, data):
        return data.draw(st.sampled_from(sorted(self.known)))

    @precondition(lambda self: self.known)
    @rule(data=st.data())
    def delete(self, data):
        pod = self.known[self._one_of(data)]
        del self.bench.known[pod.key]
        self.queue.delete(pod)
        self.model.delete(pod)

    @rule()
    def pop(self):
        self._pop()

    def _pop(self):
        expected = self.model.next_pods()
        record = self.queue.pop()
        if record is None:
            assert not expected
            return None
        assert record.pod.name in expected
        self.model.pop(record.pod.name)
        self.records[record.pod.uid] = record
        return record

    def _flying(self, data):
        uid = data.draw(st.sampled_from(sorted(self.records)))
        return self.records.pop(uid)

    @precondition(lambda self: self.records)
    @rule(data=st.data(), rejectors=PLUGINS, pending=PLUGINS, nominating=NOMINATIONS)
    def fail(self, data, rejectors, pending, nominating):
        self._fail(self._flying(data), rejectors, pending, nominating)

    @rule(
        meanwhile=st.lists(EVENTS, max_size=2),
        rejectors=PLUGINS,
        pending=st.sampled_from(["", "A"]),
        nominating=NOMINATIONS,
    )
    def attempt(self, meanwhile, rejectors, pending, nominating):
        record = self._pop()
        for event in meanwhile:
            self.move(event)
        if record is not None:
            self._fail(self.records.pop(record.pod.uid), rejectors, frozenset(pending), nominating)

    def _fail(self, record, rejectors, pending, nominating=None):
        uid, current = record.pod.uid, self.known.get(record.pod.name)
        if current is None or current.uid != uid:
            self.queue.done(uid)
            self.model.done(uid)
            return
        record.pod = current
        self.bench.fail(record, *rejectors, pending=pending)
        self.model.fail(uid, current, set(rejectors), set(pending))
        self._nominate(current, nominating)

    def _nominate(self, pod, nominating):
        self.queue.nominator.add(pod, nominating)
        keeps = nominating is None or nominating.mode is NominatingMode.NOOP
        self.model.nominate(pod, None if keeps else nominating.node_name)

    @precondition(lambda self: self.records)
    @rule(data=st.data())
    def bind(self, data):
        record = self._flying(data)
        if record.pod.uid in {pod.uid for pod in self.bench.known.values()}:
            # Another pod of that name may wait by now; it is known still.
            del self.bench.known[record.pod.key]
        self.queue.nominator.delete(record.pod)
        self.model.promised.pop(record.pod.uid, None)
        self.queue.done(record.pod.uid)
        self.model.done(record.pod.uid)

    @rule(event=EVENTS)
    def move(self, event):
        self.queue.move_all(event, None, None)
        self.model.move(event)

    @rule(event=EVENTS, priority=PRIORITIES)
    def move_some(self, event, priority):
        self.queue.move_all(event, None, None, lambda pod: pod.priority <= priority)
        self.model.move(event, most_important=priority)

    @precondition(lambda self: self.known)
    @rule(data=st.data())
    def pop_specific(self, data):
        name = self._one_of(data)
        pod = self.known[name]
        if pod.uid in self.records:
            return
        self.model.activate(pod)
        record = self.queue.pop_specific(pod)
        entry = self.model.waiting.get(name)
        assert (record is not None) == (entry is not None and entry.place == "active")
        if record is not None:
            self.model.pop(name)
            self.records[pod.uid] = record

    @rule(name=NAMES)
    def activate(self, name):
        pod = self.known.get(name, a_pod(name))
        self.queue.activate([pod])
        self.model.activate(pod)

    @rule(seconds=SECONDS)
    def wait(self, seconds):
        self.bench.clock.seconds += seconds
        self.model.now += seconds

    @rule()
    def flush_backoff(self):
        self.queue.flush_backoff()
        self.model.flush_backoff()

    @rule()
    def flush_leftovers(self):
        self.queue.flush_unschedulable_leftovers()
        self.model.flush_leftovers()

    @invariant()
    def the_same_pods_wait_in_the_same_places(self):
        expected = {name: entry.place for name, entry in self.model.waiting.items()}
        pods, _ = self.queue.pending_pods()
        assert expected == {pod.name: self.bench.where(pod) for pod in pods}
        assert all(
            entry.pod is self.queue.record("default", n).pod for n, entry in self.model.waiting.items()
        )

    @invariant()
    def their_records_agree(self):
        for name, entry in self.model.waiting.items():
            record = self.queue.record("default", name)
            assert (entry.rejectors, entry.pending) == (record.rejectors, record.pending_plugins)
            assert (entry.rejections, entry.errors) == (
                record.unschedulable_count,
                record.consecutive_errors_count,
            )
            assert (entry.gated, entry.attempts) == (record.gated, record.attempts)
            assert entry.timestamp == record.timestamp

    @invariant()
    def the_same_is_in_flight(self):
        expected = [what for what in self.model.log if not isinstance(what, str)]
        assert [event.label for event, _ in expected] == [e.label for e in self.queue._in_flight.events()]
        assert list(self.model.flying) == list(self.queue.in_flight())

    @invariant()
    def the_same_nodes_are_promised(self):
        nominator = self.queue.nominator
        promised = {
            pod.uid: node
            for node in nominator.nodes_with_nominations()
            for pod in nominator.nominated_pods_for_node(node)
        }
        assert self.model.promised == promised

    @invariant()
    def gauges_tell_what_is_there(self):
        rejected = Counter(
            (plugin, PROFILE) for entry in self.model.waiting.values() for plugin in entry.rejectors
        )
        assert rejected == +self.bench.metrics.rejected
        markers = self.bench.metrics.in_flight["PodPopped"]
        assert len(self.model.flying) == markers
        assert len(self.queue._in_flight.events()) + markers == sum(self.bench.metrics.in_flight.values())
        places = Counter(
            "gated" if entry.gated and entry.place == "pool" else entry.place
            for entry in self.model.waiting.values()
        )
        assert self.queue.sizes() == (
            places["active"],
            places["normal"] + places["error"],
            places["pool"],
            places["gated"],
        )

    @invariant()
    def it_is_ready_when_something_can_be_popped(self):
        assert bool(self.model.next_pods()) == self.queue.ready()


QueueMachine.TestCase.settings = settings(max_examples=examples(120), stateful_step_count=50, deadline=None)
TestQueue = QueueMachine.TestCase
