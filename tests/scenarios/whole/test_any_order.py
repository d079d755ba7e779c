"""Whatever happens in whatever order: nothing is lost, nothing leaks, no node is overcommitted (core 9.8).

A cluster with preemption and graceful deletion, whose watch lags at times and whose API server refuses, loses
or forgets answers. What the scheduler knows is compared to what a rebuild from the API's objects would know.
"""

import asyncio
from collections import Counter

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from berth.cache.cache import Cache
from berth.client.errors import CutError
from berth.client.pods import Ambiguous, Rejected
from berth.objects.node import Node
from berth.objects.pods.pod import Pod
from berth.simulation.cluster.virtual_time import VirtualTimeLoop
from berth.snapshot.snapshot import Snapshot
from tests.scenarios.kit.cluster import Cluster
from tests.suite import examples
from tests.unit.snapshot.facts import facts

NODES = st.sampled_from(["n0", "n1", "n2"])
PODS = st.sampled_from([f"p{number}" for number in range(6)])
PLUGINS = ("SchedulingGates", "NodeUnschedulable", "NodeResourcesFit", "DefaultPreemption")
LOST = Ambiguous(CutError("cut"))
ANSWERS = st.sampled_from([(Rejected(500, "no"), False), (LOST, True), (LOST, False)])
CORES = 2
GRACE_SECONDS = 3.0
LONG_ENOUGH_SECONDS = 700.0


class ClusterMachine(RuleBasedStateMachine):
    """A scheduler at work between the steps."""

    @initialize()
    def begin(self):
        self.runner = asyncio.Runner(loop_factory=VirtualTimeLoop)
        self.cluster = self.runner.run(self.made())
        self.serial = 0

    async def made(self):
        cluster = Cluster(*PLUGINS)
        cluster.api.grace_seconds = GRACE_SECONDS
        return cluster

    def settle(self, seconds=0.0):
        self.runner.run(self.cluster.tick(seconds))

    def does(self, action):
        """Let a client do something on the running loop, and the scheduler notice."""

        async def step():
            action()
            await self.cluster.run()

        self.runner.run(step())

    # Users and other controllers.

    @rule(name=NODES, cordoned=st.booleans())
    def put_node(self, name, cordoned):
        self.does(lambda: self.cluster.add_node(name, cpu=str(CORES), unschedulable=cordoned))

    @rule(name=NODES)
    def remove_node(self, name):
        if self.cluster.node(name) is not None:
            self.does(lambda: self.cluster.remove_node(name))

    @rule(name=PODS, priority=st.integers(0, 2), cpu=st.sampled_from(["1", "2"]), gated=st.booleans())
    def add_pod(self, name, priority, cpu, gated):
        if self.cluster.pod(name) is None:
            self.serial += 1
            fields = {"uid": f"uid-{self.serial}", "priority": priority, "cpu": cpu}
            self.does(lambda: self.cluster.add_pod(name, gates=["a"] * gated, **fields))

    @rule(name=PODS)
    def open_gate(self, name):
        if self.cluster.pod(name) is not None:
            self.does(lambda: self.cluster.change_pod(name, spec={"scheduling_gates": ()}))

    @rule(name=PODS, value=st.sampled_from("ab"))
    def label(self, name, value):
        if self.cluster.pod(name) is not None:
            self.does(lambda: self.cluster.change_pod(name, labels={"app": value}))

    @rule(name=PODS)
    def delete_pod(self, name):
        if self.cluster.pod(name) is not None:
            self.does(lambda: self.cluster.delete_pod(name))

    # The API server and its watch.

    @rule()
    def lag(self):
        self.cluster.watch.hold()

    @rule()
    def catch_up(self):
        self.does(self.cluster.watch.release)

    @rule(answer=ANSWERS)
    def lose_a_binding(self, answer):
        self.cluster.pods_client.answer_next("bind", answer[0], lands=answer[1])

    @rule(seconds=st.sampled_from([0.3, 1.0, 5.0, 400.0]))
    def wait(self, seconds):
        self.settle(seconds)

    # What holds.

    @invariant()
    def no_node_is_overcommitted(self):
        if not hasattr(self, "cluster"):
            return
        asked = Counter()
        for pod in self.cluster.api.all(Pod):
            asked[pod.node_name] += int(pod.spec.containers[0].resources.requests["cpu"])
        del asked[""]

        assert max(asked.values(), default=0) <= CORES, asked

    @invariant()
    @precondition(lambda self: hasattr(self, "cluster") and not self.cluster.watch.lags(Pod))
    def every_pod_has_its_place(self):
        cluster = self.cluster
        lost = [
            p.name for p in cluster.api.all(Pod) if cluster.where(p.name) == "nowhere" and not p.terminating
        ]

        assert [] == lost

    @invariant()
    @precondition(lambda self: hasattr(self, "cluster"))
    def the_gauges_are_what_a_recount_gives(self):
        queue = self.cluster.queue
        records = [queue.record(pod.namespace, pod.name) for pod in queue.pending_pods()[0]]
        held = Counter(plugin for record in records for plugin in record.rejectors)
        reported = Counter({plugin: n for (plugin, _), n in self.cluster.metrics.queue.rejected.items() if n})

        assert held == reported

    def teardown(self):
        if not hasattr(self, "cluster"):
            return
        try:
            self.does(self.cluster.watch.release)
            self.settle(LONG_ENOUGH_SECONDS)
            self.every_pod_has_its_place()
            self.nothing_is_left_over()
            self.the_cache_equals_a_rebuild()
        finally:
            self.runner.close()

    def nothing_is_left_over(self):
        cluster = self.cluster

        assert [] == list(cluster.queue.in_flight())
        assert [] == cluster.queue._in_flight.events()
        assert (0, 0) == (cluster.cache.assumed_count(), len(cluster.waiting_pods))
        assert set() == set(cluster.bound) & {pod.name for pod in cluster.queue.pending_pods()[0]}

    def the_cache_equals_a_rebuild(self):
        rebuilt, snapshot = Cache(), Snapshot()
        for node in self.cluster.api.all(Node):
            rebuilt.add_node(node)
        for pod in self.cluster.api.all(Pod):
            if pod.node_name:
                rebuilt.add_pod(pod)
        rebuilt.update_snapshot(snapshot)
        self.cluster.cache.update_snapshot(self.cluster.snapshot)

        assert facts(snapshot) == facts(self.cluster.snapshot)
        assert rebuilt.node_count() == self.cluster.cache.node_count()


ClusterMachine.TestCase.settings = settings(max_examples=examples(100), stateful_step_count=30, deadline=None)
TestAnyOrder = ClusterMachine.TestCase
