"""Whatever happens to the cache, the snapshot that follows it equals one built from nothing."""

from datetime import UTC, datetime
from unittest import mock

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from berth.cache.cache import Cache
from berth.objects.label_selector import LabelSelector
from berth.objects.pods.pod_spec import (
    Affinity,
    Container,
    ContainerPort,
    PodAffinity,
    PodAffinityTerm,
    Resources,
)
from berth.objects.taint import Taint
from berth.snapshot.columns import node_columns
from berth.snapshot.pod_info import PodInfo
from berth.snapshot.snapshot import Snapshot
from berth.testing.builders import make_node, make_pod
from tests.suite import examples
from tests.unit.snapshot.facts import facts

FIRST_CAPACITY = 4
NAMES = st.sampled_from([f"n{i}" for i in range(5)])
# The size of an image is that of its first report: with one size each, no order of nodes matters.
ENDED = datetime(2026, 1, 2, tzinfo=UTC)
IMAGE_SIZES = {"app": 10, "app:1": 20, "registry.example.com/db:2": 30}
KEYS = st.sampled_from(["zone", "disk", "gen"])
VALUES = st.sampled_from(["a", "b", "12"])
taints = st.builds(Taint, KEYS, VALUES, st.sampled_from(["NoSchedule", "NoExecute"]))
ports = st.builds(
    ContainerPort,
    st.sampled_from([80, 443]),
    st.sampled_from(["", "10.0.0.1", "10.0.0.2"]),
    st.sampled_from(["", "UDP"]),
)
amounts = st.dictionaries(
    st.sampled_from(["cpu", "memory", "ephemeral-storage", "example.com/gpu", "hugepages-2Mi"]),
    st.sampled_from(["0", "1", "2500m"]),
)
CLAIMS = st.lists(st.sampled_from(["data", "logs"]), max_size=2)


def node_with(draw_data, name):
    draw = draw_data.draw
    extra = draw(st.dictionaries(st.sampled_from(["a.example/x", "b.example/y"]), st.just("3"), max_size=1))
    return make_node(
        name,
        labels=draw(st.dictionaries(KEYS, VALUES)),
        taints=draw(st.lists(taints, max_size=2, unique=True)),
        unschedulable=draw(st.booleans()),
        allocatable={"cpu": draw(st.sampled_from(["1", "2500m"])), "memory": "1Gi", "pods": "9", **extra},
        images={i: IMAGE_SIZES[i] for i in draw(st.sets(st.sampled_from(list(IMAGE_SIZES))))},
    )


def pod_with(draw_data, name, node_name):
    draw = draw_data.draw
    selector = LabelSelector({"zone": draw(VALUES)})
    away = PodAffinity((PodAffinityTerm(selector, topology_key="zone"),))
    volumes = tuple({"persistentVolumeClaim": {"claimName": claim}} for claim in draw(CLAIMS))
    container = Container("main", "app", Resources(draw(amounts)), tuple(draw(st.lists(ports, max_size=2))))
    return make_pod(
        name,
        labels=draw(st.dictionaries(KEYS, VALUES, max_size=2)),
        containers=(container,),
        affinity=draw(st.sampled_from([None, Affinity(pod_anti_affinity=away)])),
        volumes=volumes,
        node_name=node_name,
    )


class CacheMachine(RuleBasedStateMachine):
    """Nodes and pods that come, change and go, some of them before or after what they belong to."""

    def __init__(self):
        super().__init__()
        with mock.patch.object(node_columns, "FIRST_CAPACITY", FIRST_CAPACITY):
            self.cache, self.snapshot = Cache(), Snapshot()
        self.nodes, self.assumed, self.added = {}, {}, {}
        self.serial = 0

    def pick(self, data, pods):
        return pods.pop(data.draw(st.sampled_from(sorted(pods))))

    @rule(data=st.data(), name=NAMES)
    def put_node(self, data, name):
        node = node_with(data, name)
        if name in self.nodes:
            self.cache.update_node(self.nodes[name], node)
        else:
            self.cache.add_node(node)
        self.nodes[name] = node

    @rule(data=st.data())
    @precondition(lambda self: self.nodes)
    def remove_node(self, data):
        self.cache.remove_node(self.pick(data, self.nodes))

    @rule()
    def add_more_nodes_than_fit_at_first(self):
        for i in range(FIRST_CAPACITY + 1):
            name = f"many{i}"
            if name not in self.nodes:
                node = make_node(name, labels={"zone": "a"}, taints=[Taint("gen", str(i % 3), "NoSchedule")])
                self.nodes[name] = node
                self.cache.add_node(node)

    @rule()
    def remove_many_nodes(self):
        for name in [name for name in self.nodes if name.startswith("many")]:
            self.cache.remove_node(self.nodes.pop(name))

    @rule(data=st.data(), name=NAMES)
    def assume(self, data, name):
        pod = self.new_pod(data, name)
        self.cache.assume_pod(pod)
        self.assumed[pod.uid] = pod

    @rule(data=st.data(), name=NAMES)
    def add(self, data, name):
        pod = self.new_pod(data, name)
        self.cache.add_pod(pod)
        self.added[pod.uid] = pod

    @rule(data=st.data())
    @precondition(lambda self: self.assumed)
    def forget(self, data):
        self.cache.forget_pod(self.pick(data, self.assumed))

    @rule(data=st.data(), another=NAMES, same=st.booleans())
    @precondition(lambda self: self.assumed)
    def observe_binding(self, data, another, same):
        pod = self.pick(data, self.assumed)
        seen = pod if same else pod.placed_on(another)
        self.cache.add_pod(seen)
        self.added[seen.uid] = seen

    @rule(data=st.data())
    @precondition(lambda self: self.added)
    def update(self, data):
        old = self.pick(data, self.added)
        new = pod_with(data, old.name, old.node_name)
        if data.draw(st.booleans()):
            new = terminating(new)
        self.cache.update_pod(old, new)
        self.added[new.uid] = new

    @rule(data=st.data(), which=st.booleans())
    def remove(self, data, which):
        pods = self.added if which else self.assumed
        if pods:
            self.cache.remove_pod(self.pick(data, pods))

    @rule()
    def take_over(self):
        """The snapshot follows only now and then, so that several changes of a row fall together."""
        self.cache.update_snapshot(self.snapshot)
        self.check()

    @rule(data=st.data(), count=st.integers(1, 3))
    def try_pods(self, data, count):
        """What a pod-group cycle tries in the snapshot leaves nothing behind, however stale it is."""
        before = facts(self.snapshot)
        for i in range(count):
            placed = [info for pods in self.snapshot.pods for info in pods.values()]
            if placed and data.draw(st.booleans()):
                self.cache.try_pod(self.snapshot, -1, data.draw(st.sampled_from(placed)))
            elif self.snapshot.names:
                node = data.draw(st.sampled_from(self.snapshot.names))
                self.cache.try_pod(self.snapshot, 1, PodInfo(pod_with(data, f"t{i}", node)))
        self.cache.undo_trials(self.snapshot)
        assert before == facts(self.snapshot)

    @invariant()
    def counts_are_right(self):
        assert len(self.assumed) == self.cache.assumed_count()
        assert len(self.assumed) + len(self.added) == self.cache.pod_count()
        ghosts = {p.node_name for p in (*self.assumed.values(), *self.added.values())} - set(self.nodes)
        assert len(self.nodes) + len(ghosts) == self.cache.node_count()

    def teardown(self):
        self.take_over()
        for pod in (*self.assumed.values(), *self.added.values()):
            self.cache.remove_pod(pod)
        self.take_over()
        while self.nodes:
            self.cache.remove_node(self.nodes.popitem()[1])
        self.take_over()
        assert 0 == len(self.snapshot)
        assert 0 == self.cache.node_count()

    def new_pod(self, data, name):
        self.serial += 1
        return pod_with(data, f"p{self.serial}", name)

    def check(self):
        assert facts(self.cache.fresh_snapshot()) == facts(self.snapshot)
        assert set(self.nodes) == set(self.snapshot.names)


def terminating(pod):
    metadata = msgspec.structs.replace(pod.metadata, deletion_timestamp=ENDED)
    return msgspec.structs.replace(pod, metadata=metadata)


CacheMachine.TestCase.settings = settings(max_examples=examples(60), stateful_step_count=30, deadline=None)
TestFollowing = CacheMachine.TestCase
