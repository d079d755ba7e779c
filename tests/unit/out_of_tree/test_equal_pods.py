"""Equal pods with a sidecar: only nodes that changed are asked about, with the same outcome."""

import asyncio
import random
import tempfile
from collections import Counter
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from berth.cache.cache import Cache
from berth.config.duration import Duration
from berth.config.loading import load
from berth.config.out_of_tree.sidecars import SidecarSpec, catalogue_of
from berth.evaluation.caching.equivalence_cache import EquivalenceCache
from berth.evaluation.caching.plugin_columns import PluginColumns
from berth.framework.attempts.cycle_record import CycleRecord
from berth.framework.mirrors.listers import Listers
from berth.objects.decode import decoder
from berth.objects.node import Node
from berth.objects.pods.pod_decoding import decode_pod
from berth.out_of_tree.host import PluginHost
from berth.out_of_tree.points import node_questions
from berth.plugins.registry import IN_TREE
from berth.profiles.profile_builder import build_frameworks
from berth.snapshot.snapshot import Snapshot
from berth.testing.handles import FixedNominator, make_handle
from berth_gpu_share.contract import Demand
from berth_gpu_share.plugin import GpuShare
from berth_plugin_proto import state_pb2
from berth_sdk import Plugin
from berth_sdk.serving import Server
from tests.unit.evaluation.caching.test_equivalence_cache import ROW_BY_ROW, TOGETHER, Side, asked_in
from tests.unit.gpu_share.builders import gpu_node, gpu_pod
from tests.unit.out_of_tree.scripted import a_queue, no_watch, until

CONFIGURATION = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- {schedulerName: fresh, plugins: &ours {multiPoint: {enabled: [{name: gpu-share, weight: 5}]}}}
- {schedulerName: remembering, plugins: *ours}
"""
TEMPLATES = (
    {"milli": 300, "cpu": "20"},
    {"milli": 1000, "count": 2, "cpu": "9"},
    {"milli": 100, "cpu": "500m"},
    {"milli": 500, "models": "T4"},
    {"milli": 0},
)
NODES = [
    gpu_node("n0", 2),
    gpu_node("n1", 4, "T4", cpu="8"),
    gpu_node("n2", 8),
    gpu_node("n3", 0, cpu="4"),
    gpu_node("n4", 1, "T4", cpu="16"),
]


class Cluster:
    """A cluster with GPUs, two profiles that ask one plugin about it, and only one of them remembers."""

    def __init__(self, path):
        # An answer that comes late on a busy machine would make a difference that is none.
        spec = SidecarSpec("gpu-share", f"unix:{path}", Duration(60 * 10**9))
        loaded = load(CONFIGURATION, out_of_tree=catalogue_of([spec]))
        self.cache, self.snapshot = Cache(), Snapshot()
        self.host = PluginHost(
            [spec],
            loaded.profiles,
            cache=self.cache,
            snapshot=self.snapshot,
            answers=EquivalenceCache(self.snapshot),
            queue=a_queue({}),
            waiting_pods=[],
            sampled=lambda _: False,
            watch=no_watch,
            rewire=lambda _: None,
        )
        self.connection = self.host.connections["gpu-share"]
        self.nominator = FixedNominator()
        frameworks = build_frameworks(loaded.profiles, {**IN_TREE, **self.host.factories()}, self._handle)
        self.fresh, self.remembering = (
            Side(frameworks[name], self.snapshot, self.nominator, remembers=name == "remembering")
            for name in ("fresh", "remembering")
        )
        # The one asks about all nodes for every pod.
        self.host.plugins["gpu-share", "fresh"].cached = PluginColumns(self.snapshot, max_bytes=0)
        self._node = self.host.nodes.decoding(decoder(Node))
        self._pod = self.host.pods.decoding(decode_pod)
        self.placed, self.count = [], 0

    def _handle(self, profile):
        return make_handle(self.snapshot, listers=Listers(), nominator=self.nominator, profile_name=profile)

    def node(self, document):
        node = self._node(msgspec.json.encode(document))
        self.cache.add_node(node)

    async def schedule(self, template):
        """Decide on a pod like the template with the one and the other, and reserve what it takes."""
        self.count += 1
        pod = self._pod(msgspec.json.encode(gpu_pod(f"p{self.count}", **template)))
        self.cache.update_snapshot(self.snapshot)
        name, expected, _ = await self.fresh.decide(pod)
        again, found, state = await self.remembering.decide(pod)

        assert (name, expected) == (again, found)

        if name:
            placed = pod.placed_on(name)
            self.cache.assume_pod(placed)
            framework = self.remembering.framework
            status = await framework.run_reserve(state, placed, name, state.read(CycleRecord))
            assert status.ok, status
            self.placed.append((placed, state))
        return name

    def report(self, number):
        """A binding is observed, or a kubelet says that a pod runs."""
        number %= len(self.placed)
        old, state = self.placed[number]
        new = msgspec.structs.replace(old, status=msgspec.structs.replace(old.status, phase="Running"))
        self.placed[number] = new, state
        if self.cache.is_assumed(old.uid):
            self.cache.add_pod(new)
        else:
            self.cache.update_pod(old, new)

    async def give_up(self, number):
        """An attempt fails after all; not one whose binding was observed."""
        assumed = [one for one in self.placed if self.cache.is_assumed(one[0].uid)]
        if not assumed:
            return
        placed, state = one = assumed[number % len(assumed)]
        self.placed.remove(one)
        await self.remembering.framework.run_unreserve(
            state, placed, placed.node_name, state.read(CycleRecord)
        )
        self.cache.forget_pod(placed)


class NamesNoFields(GpuShare):
    """The same, but no two pods are equal to it."""

    pod_fields = None


class KnowsTheUsual(GpuShare):
    """The same, given the pods that usually come."""

    def __init__(self, policy):
        super().__init__(policy, usual=Counter({Demand(1, 300, cpu=20_000): 2, Demand(2, 1000, cpu=9000): 1}))


@asynccontextmanager
async def clusters(policy="best-fit", kind=GpuShare):
    """The plugin served on a socket, and a cluster whose host has connected to it."""
    with tempfile.TemporaryDirectory(prefix="berth-") as folder:
        path = Path(folder, "p.sock")
        server = Server(kind(policy), f"unix:{path}")
        await server.start()
        cluster = Cluster(path)
        for document in NODES:
            cluster.node(document)
        cluster.cache.update_snapshot(cluster.snapshot)
        tasks = [asyncio.create_task(work) for _, work in cluster.host.work()]
        try:
            await until(lambda: cluster.connection.ready)
            yield cluster
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await server.stop(0)


def asked_rows(monkeypatch):
    """How many nodes each question was about, None for all of them."""
    asked, make = [], node_questions.candidates_of

    def made(rows, n, **how):
        asked.append(None if rows.size == n else rows.size)
        return make(rows, n, **how)

    monkeypatch.setattr(node_questions, "candidates_of", made)
    return asked


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("policy", "kind", "way"),
    [
        pytest.param("best-fit", GpuShare, ROW_BY_ROW, id="best-fit"),
        pytest.param("best-fit", GpuShare, TOGETHER, id="best-fit, rows together"),
        pytest.param("best-fit", GpuShare, None, id="best-fit, rows as a table"),
        pytest.param("packing", GpuShare, ROW_BY_ROW, id="packing"),
        pytest.param("packing", GpuShare, TOGETHER, id="packing, rows together"),
        pytest.param("best-fit", NamesNoFields, ROW_BY_ROW, id="names no fields"),
        pytest.param("fgd", KnowsTheUsual, ROW_BY_ROW, id="fgd of known pods"),
    ],
)
async def test_with_a_sidecar_as_from_nothing(policy, kind, way, seed):
    """Pods that come, go and fail after a reservation change nothing of what an equal pod is answered."""
    chance = random.Random(f"{policy} {seed}")
    with asked_in(way):
        async with clusters(policy, kind) as cluster:
            await live(cluster, chance)
            outcomes = cluster.remembering.memory.outcomes

    assert outcomes["reused"] > 5


async def live(cluster, chance):
    """Thirty things happen."""
    for _ in range(30):
        what = chance.random()
        if what < 0.8 or not cluster.placed:
            template = chance.choice(TEMPLATES)
            for _ in range(chance.randint(1, 3)):
                await cluster.schedule(template)
        elif what < 0.83:
            await cluster.give_up(chance.randrange(99))
        elif what < 0.88:
            cluster.report(chance.randrange(99))
        elif what < 0.96:
            placed, _ = cluster.placed.pop(chance.randrange(len(cluster.placed)))
            cluster.cache.remove_pod(placed)
        else:
            cluster.node(gpu_node(f"n{chance.randrange(6)}", chance.randrange(5)))


@pytest.mark.parametrize(("policy", "kind"), [("best-fit", GpuShare), ("fgd", KnowsTheUsual)])
async def test_a_sidecar_is_asked_about_changed_nodes_only(monkeypatch, policy, kind):
    """Of equal pods, that is the node where the last one went."""
    async with clusters(policy, kind) as cluster:
        for _ in range(2):
            await cluster.schedule({"milli": 300})
        asked = asked_rows(monkeypatch)
        await cluster.schedule({"milli": 300})

    assert [None, 1] == asked


class WithoutPods(GpuShare):
    """The same, but it sees no pods on nodes and holds nothing: all GPUs are free to it."""

    wants_pods = False
    reserve, unreserve = Plugin.reserve, Plugin.unreserve


async def test_a_sidecar_that_mirrors_no_pods_is_asked_once(monkeypatch):
    """Where the last pod went says nothing to it; another node does."""
    async with clusters(kind=WithoutPods) as cluster:
        asked = asked_rows(monkeypatch)
        for _ in range(3):
            await cluster.schedule({"milli": 300})
        by_turns = list(asked)
        cluster.node(gpu_node("n5", 1))
        await cluster.schedule({"milli": 300})

    assert by_turns.count(None) == len(by_turns)
    # The fresh profile asks for each pod, the one that remembers for the first alone.
    assert (4, 6) == (len(by_turns), len(asked))


async def test_what_others_say_is_remembered_beside_a_plugin_that_names_no_fields(monkeypatch):
    """It is asked about all nodes for each pod, and plugins of the scheduler about those that changed."""
    async with clusters(kind=NamesNoFields) as cluster:
        asked = asked_rows(monkeypatch)
        for _ in range(3):
            await cluster.schedule({"milli": 300})
        outcomes = cluster.remembering.memory.outcomes

    assert [None] * 6 == asked
    assert {"new": 1, "first": 1, "reused": 1} == outcomes


async def test_a_plugin_whose_outside_state_changed_is_asked_about_all_nodes(monkeypatch):
    """What it answered before is of no use once it says so."""
    async with clusters() as cluster:
        await cluster.schedule({"milli": 300})
        cluster.host.requeue_rejected("gpu-share", None)
        asked = asked_rows(monkeypatch)
        await cluster.schedule({"milli": 300})

    assert [None, None] == asked


async def test_a_plugin_whose_watched_object_changed_is_asked_about_all_nodes(monkeypatch):
    """What it answered may rest on that object, and a pod may come before the plugin says so."""
    async with clusters() as cluster:
        await cluster.schedule({"milli": 300})
        for plugin in cluster.host.plugins.values():
            plugin.caller.feed.take(state_pb2.Change(object_remove=state_pb2.ObjectRemove()))
        asked = asked_rows(monkeypatch)
        await cluster.schedule({"milli": 300})

    assert [None, None] == asked


async def test_plans_rest_on_a_plugin_whose_answers_are_about_single_nodes():
    """Until it says that its outside state changed; placed pods make no difference."""
    async with clusters() as cluster:
        plugin = cluster.host.plugins["gpu-share", "remembering"]
        before = plugin.shared_cache_key(cluster.snapshot)
        await cluster.schedule({"milli": 300})
        after = plugin.shared_cache_key(cluster.snapshot)
        cluster.host.requeue_rejected("gpu-share", None)
        then = plugin.shared_cache_key(cluster.snapshot)

    assert before is not None
    assert before == after != then


async def test_plans_rest_on_no_plugin_that_looks_at_all_nodes():
    """What it answers next is not known."""
    async with clusters("fgd") as cluster:
        plugin = cluster.host.plugins["gpu-share", "remembering"]

        assert plugin.shared_cache_key(cluster.snapshot) is None


async def test_a_policy_that_looks_at_all_nodes_is_asked_about_all_nodes(monkeypatch):
    """Fragmentation gradient descent learns from every pod, so no answer of its holds."""
    async with clusters("fgd") as cluster:
        for _ in range(2):
            await cluster.schedule({"milli": 300})
        asked = asked_rows(monkeypatch)
        await cluster.schedule({"milli": 300})
        outcomes = cluster.remembering.memory.outcomes

    assert [None, None] == asked
    assert {"new": 1, "first": 1, "reused": 1} == outcomes
