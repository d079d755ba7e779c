"""PreEnqueue, PostFilter, Bind and preemption's dry run of a plugin process, in a whole scheduler."""

import asyncio
import sys
import tempfile
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from berth.client import Api, load_endpoint
from berth.client.resources import PODS
from berth.client.wire import encode
from tests.sockets import served
from tests.unit.client.conftest import transport_to
from tests.unit.scheduler_at_work import eventually, node, scheduling

PROGRAM = Path(__file__).with_name("points_plugin.py")
BINDER = ("DefaultBinder",)
"""Comes after the plugin in these profiles: it would bind every pod before it otherwise."""


class SchedulerAtWork:
    """A sandbox with a scheduler on it, and what the plugin has done."""

    def __init__(self, sandbox, folder):
        self._sandbox, self._folder = sandbox, folder

    def create(self, name, cpu="1", priority=0, on=None, **labels):
        """A pod that ends at once when it is deleted."""
        container = {"name": "c", "image": "app:1", "resources": {"requests": {"cpu": cpu}}}
        spec = {"containers": [container], "terminationGracePeriodSeconds": 0, "priority": priority}
        metadata = {"name": name, "namespace": "default", "labels": labels}
        spec |= {"nodeName": on} if on else {}
        self._sandbox.load([{"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}])

    def node_of(self, name):
        """The pod's node; None where it has none, or is gone."""
        nodes = {each["metadata"]["name"]: each["spec"].get("nodeName") for each in self._pods()}
        return nodes.get(name)

    async def bound(self, *names):
        """Wait until all of them are; their nodes."""
        await eventually(lambda: all(map(self.node_of, names)))
        return [self.node_of(name) for name in names]

    def names(self):
        """The pods that there are."""
        return {each["metadata"]["name"] for each in self._pods()}

    def notes(self, reason):
        """What events of that reason say."""
        found = (entry.decode() for entry in self._sandbox.store.collection("events").entries())
        return [each.get("note") or each["message"] for each in found if each["reason"] == reason]

    def done(self):
        """The plugin's lines."""
        file = self._folder / "DONE"
        return file.read_text().splitlines() if file.exists() else []

    async def label(self, name, **labels):
        """Change a pod's labels."""
        endpoint = load_endpoint(kubeconfig=str(self._folder / "kubeconfig"), environ={})
        async with transport_to(endpoint) as transport:
            await Api(transport).patch(PODS, "default", name, encode({"metadata": {"labels": labels}}))

    def _pods(self):
        return [entry.decode() for entry in self._sandbox.store.collection("pods").entries()]


@asynccontextmanager
async def at_work(*nodes, without=(), last=()):
    """The plugin as a process, a scheduler, and nodes of four cores."""
    with tempfile.TemporaryDirectory(prefix="berth-") as name:
        folder = Path(name)
        socket, kubeconfig = folder / "p.sock", folder / "kubeconfig"
        plugin = await asyncio.create_subprocess_exec(sys.executable, PROGRAM, socket, kubeconfig)
        try:
            await served(socket, plugin)
            profile = {"sidecars": {"points": f"unix:{socket}"}, "without": without, "last": last}
            async with scheduling(kubeconfig, *map(node, nodes), **profile) as (sandbox, _):
                yield SchedulerAtWork(sandbox, folder)
        finally:
            plugin.terminate()
            await plugin.wait()


async def test_pre_enqueue():
    """A pod that the gate holds back is not tried, while others are; it goes on once the gate lets it."""
    async with at_work("n0") as cluster:
        cluster.create("held", gate="closed")
        cluster.create("other")
        await cluster.bound("other")
        assert cluster.node_of("held") is None
        await cluster.label("held", gate="open")

        assert ["n0"] == await cluster.bound("held")
        assert [] == cluster.notes("FailedScheduling")


async def test_post_filter():
    """The pod that the plugin names is evicted, and the node promised to the pod that it made room for."""
    async with at_work("n0", "n1", without=["DefaultPreemption"]) as cluster:
        cluster.create("stays", "4", on="n0")
        cluster.create("goes", "4", on="n1", evictable="yes")
        cluster.create("waits", "4")

        assert ["n1"] == await cluster.bound("waits")
        assert {"stays", "waits"} == cluster.names()
        assert ["room for waits on n1", "waits is promised n1"] == cluster.done()[:2]
        await eventually(lambda: 1 == len(cluster.notes("Preempted")))


async def test_no_pod_to_evict():
    """Where the plugin finds no victims, the pod waits, with the plugin's reason among the others."""
    async with at_work("n0", without=["DefaultPreemption"]) as cluster:
        cluster.create("stays", "4", on="n0")
        cluster.create("waits", "4")
        await eventually(lambda: cluster.notes("FailedScheduling"))
        (note,) = cluster.notes("FailedScheduling")

    assert "0/1 nodes are available: 1 Insufficient cpu." in note
    assert "no pod is evictable" in note


async def test_bind():
    """The plugin binds its own pods, and leaves the others to the next binder."""
    async with at_work("n0", without=BINDER, last=BINDER) as cluster:
        cluster.create("own", binder="own")
        cluster.create("other")

        assert ["n0", "n0"] == await cluster.bound("own", "other")
        assert ["binds own"] == cluster.done()


async def test_bind_fails():
    """A binding that the plugin did not get done is tried again, and the pod's room is its own meanwhile."""
    async with at_work("n0", without=BINDER, last=BINDER) as cluster:
        cluster.create("own", "3", binder="own", fails="once")
        await cluster.bound("own")

        assert any("not this time" in note for note in cluster.notes("FailedScheduling"))
        assert ["binds own"] == cluster.done()


@pytest.mark.parametrize("nodes", [2, 8])
async def test_dry_run(nodes):
    """Preemption asks about all nodes at once: when they are empty, and whenever a pod of each comes back."""
    names = [f"n{i}" for i in range(nodes)]
    async with at_work(*names) as cluster:
        for name in names:
            for number in range(4):
                cluster.create(f"low-{name}-{number}", on=name)
        cluster.create("high", "2", priority=10)
        await cluster.bound("high")

        assert [f"overlays {nodes}"] * 5 == [line for line in cluster.done() if line.startswith("overlays")][
            :5
        ]
