"""Two schedulers, each with a plugin process of its own: the one that asks ahead decides as the other."""

import asyncio
import sys
import tempfile
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from berth.cache.cache import Cache
from berth.config.loading import load
from berth.config.out_of_tree.sidecars import SidecarSpec, catalogue_of
from berth.evaluation.caching.equivalence_cache import EquivalenceCache
from berth.framework.attempts.cycle_record import CycleRecord
from berth.framework.mirrors.listers import Listers
from berth.objects.decode import decoder
from berth.objects.node import Node
from berth.objects.pods.pod_decoding import decode_pod
from berth.out_of_tree.host import PluginHost
from berth.out_of_tree.points.asking_ahead import CLASSES_AHEAD
from berth.plugins.registry import IN_TREE
from berth.profiles.profile_builder import build_frameworks
from berth.queue.requeueing.queue_profile import QueueProfile
from berth.snapshot.snapshot import Snapshot
from berth.testing.handles import FixedNominator, make_handle
from berth_sdk import testing as documents
from tests.sockets import served
from tests.unit.evaluation.caching.test_equivalence_cache import Side
from tests.unit.out_of_tree import slots_plugin
from tests.unit.out_of_tree.scripted import a_queue, no_watch, until

PROFILE = "default-scheduler"
CONFIGURATION = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- {schedulerName: default-scheduler, plugins: {multiPoint: {enabled: [{name: slots, weight: 3}]}}}
"""
NODES = ("n0", "n1", "n2", "n3", "n4")
LABELS = ("a", "b", "c")


class Scheduling:
    """A cluster, a profile, and its plugin's process."""

    def __init__(self, path, classes_ahead):
        self.path, self.process = path, None
        spec = SidecarSpec("slots", f"unix:{path}")
        loaded = load(CONFIGURATION, out_of_tree=catalogue_of([spec]))
        self.cache, self.snapshot = Cache(), Snapshot()
        self.queue = a_queue({PROFILE: QueueProfile()})
        self.host = PluginHost(
            [spec],
            loaded.profiles,
            cache=self.cache,
            snapshot=self.snapshot,
            answers=EquivalenceCache(self.snapshot),
            queue=self.queue,
            waiting_pods=[],
            sampled=lambda _: False,
            watch=no_watch,
            rewire=lambda _: None,
            classes_ahead=classes_ahead,
        )
        self.connection = self.host.connections["slots"]
        nominator = FixedNominator()
        handle = make_handle(self.snapshot, listers=Listers(), nominator=nominator, profile_name=PROFILE)
        frameworks = build_frameworks(loaded.profiles, {**IN_TREE, **self.host.factories()}, lambda _: handle)
        self.side = Side(frameworks[PROFILE], self.snapshot, nominator, remembers=True)
        self._node = self.host.nodes.decoding(decoder(Node))
        self._pod = self.host.pods.decoding(decode_pod)
        self.placed, self.reported, self.count = [], [], 0

    async def start(self):
        """Start the plugin's process, and wait until it can be asked."""
        starts = self.connection.starts
        self.process = await asyncio.create_subprocess_exec(
            sys.executable, slots_plugin.__file__, str(self.path)
        )
        await served(self.path, self.process)
        await until(lambda: self.connection.starts > starts and self.connection.ready)

    async def kill(self):
        """End it at once."""
        self.process.kill()
        await self.process.wait()
        await until(lambda: not self.connection.ready)

    async def restart(self):
        """Another process takes its place, which is shown the state and knows of nothing else."""
        await self.kill()
        await self.start()

    def node(self, name, **fields):
        """A node comes or changes."""
        document = documents.make_node(name, **fields)
        self.cache.add_node(self._node(msgspec.json.encode(document)))

    async def schedule(self, labels):
        """Decide on pods of these kinds, which wait together, each reserved while the next is decided on.

        What becomes of the reservations is applied and reported when all are decided on, in the pods' order:
        which answer of the plugin comes first, and how many cycles still see a pod that is refused, are
        races that have no wrong outcome.
        """
        for label in labels:
            self.count += 1
            document = documents.make_pod(f"p{self.count}", labels={"app": label}, requests={"cpu": "100m"})
            document["spec"]["schedulerName"] = PROFILE
            self.queue.add(self._pod(msgspec.json.encode(document)))
        assumed, reserving = [], []
        while (info := self.queue.pop()) is not None:
            self.cache.update_snapshot(self.snapshot)
            name, said, state = await self.side.decide(info.pod)
            self.reported.append((info.pod.name, name, said))
            self.queue.done(info.pod.uid)
            if name:
                placed = info.pod.placed_on(name)
                self.cache.assume_pod(placed)
                assumed.append((placed, state))
                record = state.read(CycleRecord)
                reserve = self.side.framework.run_reserve(state, placed, name, record)
                reserving.append(asyncio.create_task(reserve))
        for (placed, state), status in zip(assumed, await asyncio.gather(*reserving), strict=True):
            self.reported.append((placed.name, status.code, status.reasons))
            if status.ok:
                self.placed.append((placed, state))
            else:
                record = state.read(CycleRecord)
                await self.side.framework.run_unreserve(state, placed, placed.node_name, record)
                self.cache.forget_pod(placed)

    def confirm(self, number):
        """A binding is observed."""
        placed, _ = self.placed[number % len(self.placed)]
        if self.cache.is_assumed(placed.uid):
            self.cache.add_pod(placed)

    def end(self, number):
        """A pod ends."""
        placed, _ = self.placed.pop(number % len(self.placed))
        self.cache.remove_pod(placed)

    async def rest(self, *, answered):
        """Nothing is left to schedule for a while; it may be over before the plugin answers."""
        self.host.ask_ahead()
        plugin = self.host.plugins["slots", PROFILE]
        if answered:
            await until(lambda: not plugin.asking_ahead.unanswered)
        else:
            await asyncio.sleep(0)

    async def take(self, step):
        """Do that."""
        what, *how = step
        match what:
            case "schedule":
                await self.schedule(how[0])
            case "rest":
                await self.rest(answered=how[0])
            case "restart":
                await self.restart()
            case "node":
                self.node(how[0], labels={"turn": str(how[1])})
            case "outside":
                self.host.requeue_rejected("slots", None)
            case _ if self.placed:
                (self.confirm if what == "confirm" else self.end)(how[0])


@asynccontextmanager
async def scheduling(classes_ahead):
    """One scheduler with a plugin that is ready."""
    with tempfile.TemporaryDirectory(prefix="berth-") as folder:
        made = Scheduling(Path(folder, "p.sock"), classes_ahead)
        for name in NODES:
            made.node(name)
        made.cache.update_snapshot(made.snapshot)
        tasks = [asyncio.create_task(work) for _, work in made.host.work()]
        try:
            await made.start()
            yield made
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            made.process.kill()
            await made.process.wait()


KINDS = st.lists(st.sampled_from(LABELS), min_size=1, max_size=4)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("schedule"), KINDS),
        st.tuples(st.just("schedule"), KINDS),
        st.tuples(st.just("rest"), st.booleans()),
        st.tuples(st.just("rest"), st.booleans()),
        st.tuples(st.just("confirm"), st.integers(0, 30)),
        st.tuples(st.just("end"), st.integers(0, 30)),
        st.tuples(st.just("node"), st.sampled_from((*NODES, "n5")), st.integers(0, 3)),
        st.just(("outside",)),
    ),
    min_size=4,
    max_size=16,
)


@settings(max_examples=4, deadline=None, phases=[Phase.generate])
@given(before=STEPS, after=STEPS)
def test_asked_ahead_over_a_socket_as_asked_at_its_turn(before, after):
    """Placements, statuses and scores are the same, whatever is refused, restarted or changed meanwhile."""

    async def play():
        async with scheduling(0) as plain, scheduling(CLASSES_AHEAD) as ahead:
            for step in (*before, ("restart",), *after):
                await asyncio.gather(plain.take(step), ahead.take(step))
                assert plain.reported == ahead.reported

    asyncio.run(play())


async def test_a_pod_of_a_known_kind_makes_no_call(monkeypatch):
    """What the plugin was asked about ahead is there at the pod's turn, over a socket as well."""
    async with scheduling(CLASSES_AHEAD) as made:
        for _ in range(3):
            await made.schedule(["a"])
            await made.rest(answered=True)
        asked = []
        plugin = made.host.plugins["slots", PROFILE]
        monkeypatch.setattr(plugin, "_bring", lambda *_: asked.append("at its turn"))
        await made.schedule(["a"])

    assert [] == asked
    assert 4 == len([name for _, name, *_ in made.reported if name in NODES])


async def test_a_pod_that_goes_while_its_kind_is_asked_about():
    """The question is about a pod like it, so nothing waits for a pod that is gone."""
    async with scheduling(CLASSES_AHEAD) as made:
        await made.schedule(["a", "b"])
        for placed, _ in list(made.placed):
            made.host.ask_ahead()
            made.host.pods.drop(placed.uid)
            made.cache.remove_pod(placed)
        made.placed.clear()
        await made.rest(answered=True)
        await made.schedule(["a", "b"])

    names = [name for _, name, *_ in made.reported]
    assert set(names) & set(NODES)


@pytest.mark.parametrize("classes_ahead", [0, CLASSES_AHEAD])
async def test_a_plugin_that_is_gone(classes_ahead):
    """Pods that come meanwhile fail as they do without asking ahead, and are placed once it is back."""
    async with scheduling(classes_ahead) as made:
        await made.schedule(["a"])
        await made.kill()
        await made.rest(answered=False)
        await made.schedule(["a"])
        gone = made.reported[-1][1]
        await made.start()
        await made.schedule(["a"])

    assert "" == gone
    assert made.reported[-2][1] in NODES or made.reported[-1][1] in NODES
