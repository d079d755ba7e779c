"""A scheduler process and a control plane in one event loop: from a pod created to a pod bound."""

import asyncio
from collections import Counter
from contextlib import asynccontextmanager

import pytest

from berth.config import load
from berth.sandbox import SandboxOptions, serve
from berth.sandbox.rest import Deletion
from berth.scheduler.process import run
from berth.scheduler.process_options import ProcessOptions
from tests.suite import PATIENCE_SECONDS
from tests.unit.snapshot.facts import facts

LEASES = "leases.coordination.k8s.io"

CONFIGURATION = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {{kubeconfig: {kubeconfig}}}
leaderElection: {{leaderElect: {elect}}}
delayCacheUntilActive: {delayed}
podInitialBackoffSeconds: 1
"""


def node(name, cpu="8"):
    resources = {"cpu": cpu, "memory": "64Gi", "pods": "20"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"capacity": resources, "allocatable": resources},
    }


def pod(name, cpu="1"):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "containers": [{"name": "c", "image": "app:1", "resources": {"requests": {"cpu": cpu}}}],
        },
    }


class Cluster:
    """The sandbox, and the core of the scheduler that works on it."""

    def __init__(self, sandbox):
        self.sandbox = sandbox
        self.core = self.process = None
        self.records = []
        self.ready = asyncio.Event()
        self.stop = asyncio.Event()

    def on_ready(self, core):
        self.core = core
        self.leases_when_ready = self.objects(LEASES)
        self.ready.set()

    def create(self, *documents):
        self.sandbox.load(documents)

    def delete(self, plural, name):
        rest, resource = self.sandbox.api.rest, self.sandbox.api.catalogue.get("", "v1", plural)
        entry = rest.read(resource, "default", name)
        rest.delete(resource, entry, Deletion(grace_seconds=0))

    def objects(self, name):
        documents = [entry.decode() for entry in self.sandbox.store.collection(name).entries()]
        return {document["metadata"]["name"]: document for document in documents}

    def pods(self):
        return self.objects("pods")

    def bound(self):
        found = {name: document["spec"].get("nodeName") for name, document in self.pods().items()}
        return {name: on for name, on in found.items() if on}

    def settled(self):
        """Whether the scheduler has seen every binding that it made."""
        cache = self.core.cache
        return cache.assumed_count() == 0 and cache.pod_count() == len(self.bound())


async def eventually(claim):
    """Let client and server talk until the claim holds."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not claim():  # noqa: ASYNC110 - looks into the server's state, which has no event
            await asyncio.sleep(0.01)


@asynccontextmanager
async def scheduling(tmp_path, *documents, elect=False, delayed=False, profiles="", shards=()):
    """A scheduler at work on a sandbox that holds these objects; it has to end in order."""
    async with await serve(SandboxOptions(kubelets=False)) as sandbox:
        cluster = Cluster(sandbox)
        cluster.create(*documents)
        path = tmp_path / "kubeconfig"
        sandbox.write_kubeconfig(path)
        text = CONFIGURATION.format(kubeconfig=path, elect=str(elect).lower(), delayed=str(delayed).lower())
        settings = ProcessOptions(load(text + profiles), shards=shards, seed=1)
        process = cluster.process = asyncio.create_task(
            run(settings, cluster.stop, on_record=cluster.records.append, on_ready=cluster.on_ready)
        )
        try:
            await eventually(lambda: process.done() or cluster.ready.is_set())
            assert cluster.ready.is_set(), process.result()
            yield cluster
            cluster.stop.set()
            async with asyncio.timeout(PATIENCE_SECONDS):
                await process
        finally:
            process.cancel()
            await asyncio.gather(process, return_exceptions=True)


async def test_every_pod_is_bound_once(tmp_path):
    """200 pods on 50 nodes: nothing overcommitted, nothing bound twice, the table equals a rebuilt one."""
    nodes = [node(f"n{i}") for i in range(50)]
    async with scheduling(tmp_path, *nodes, *(pod(f"old{i}") for i in range(100))) as cluster:
        cluster.create(*(pod(f"new{i}") for i in range(100)))
        await eventually(lambda: len(cluster.bound()) == 200)
        await eventually(cluster.settled)

        assert max(Counter(cluster.bound().values()).values()) <= 8
        results = Counter((record.pod.name, record.result) for record in cluster.records)
        assert {(name, "scheduled"): 1 for name in cluster.bound()} == results
        shared = cluster.core
        shared.cache.update_snapshot(shared.snapshot)
        assert facts(shared.cache.fresh_snapshot()) == facts(shared.snapshot)
        assert (0, 0, 0, 0) == shared.queue.sizes()
        assert [] == list(shared.queue.in_flight())


async def test_an_unschedulable_pod_is_bound_once_a_node_comes(tmp_path):
    """Until then its condition says why."""
    async with scheduling(tmp_path, node("small", cpu="1")) as cluster:
        cluster.create(pod("big", cpu="4"))
        await eventually(lambda: cluster.pods()["big"].get("status", {}).get("conditions"))
        [condition] = cluster.pods()["big"]["status"]["conditions"]
        assert ("PodScheduled", "False", "Unschedulable") == (
            condition["type"],
            condition["status"],
            condition["reason"],
        )
        assert condition["message"].startswith("0/1 nodes are available: 1 Insufficient cpu.")

        cluster.create(node("large", cpu="8"))
        await eventually(lambda: cluster.bound() == {"big": "large"})


async def test_a_pod_that_is_deleted_leaves_nothing_behind(tmp_path):
    """Bound or still on its way: its room is free again."""
    async with scheduling(tmp_path, node("n", cpu="4")) as cluster:
        cluster.create(*(pod(f"p{i}") for i in range(4)))
        cluster.delete("pods", "p0")
        await eventually(lambda: len(cluster.bound()) == 3)
        cluster.delete("pods", "p1")
        await eventually(lambda: "p1" not in cluster.pods() and cluster.settled())

        assert 2000 == cluster.core.cache.node_info("n").requested["cpu"]
        assert (0, 0, 0, 0) == cluster.core.queue.sizes()


async def test_a_leader_schedules_and_gives_its_lease_back(tmp_path):
    async with scheduling(tmp_path, node("n"), pod("p"), elect=True) as cluster:
        await eventually(lambda: cluster.bound() == {"p": "n"})
        assert cluster.objects(LEASES)["kube-scheduler"]["spec"]["holderIdentity"]
        cluster.stop.set()
        await eventually(lambda: not cluster.objects(LEASES)["kube-scheduler"]["spec"].get("holderIdentity"))


@pytest.mark.parametrize("delayed", [True, False])
async def test_a_standby_knows_everything_unless_configured_to_wait(tmp_path, delayed):
    """With delayCacheUntilActive nothing is listed before the lease is held."""
    held = {"holderIdentity": "other", "leaseDurationSeconds": 1, "renewTime": "2026-01-01T00:00:00.000000Z"}
    lease = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "kube-scheduler", "namespace": "kube-system"},
        "spec": held,
    }
    async with scheduling(tmp_path, node("n"), pod("p"), lease, elect=True, delayed=delayed) as cluster:
        holder = cluster.leases_when_ready["kube-scheduler"]["spec"]["holderIdentity"]
        assert delayed == (holder != "other")
        await eventually(lambda: cluster.bound() == {"p": "n"})


async def test_a_loop_that_breaks_ends_the_process_and_lets_the_lease_go(tmp_path):
    """A process that no longer schedules must not keep others from it."""

    class BrokenError(Exception):
        pass

    def broken(_shard: str):
        raise BrokenError

    async def with_a_broken_loop():
        async with scheduling(tmp_path, node("n"), elect=True) as cluster:
            cluster.core.queue.pop = broken
            cluster.create(pod("p"))
            await eventually(cluster.process.done)
            assert not cluster.objects(LEASES)["kube-scheduler"]["spec"].get("holderIdentity")

    with pytest.raises(BrokenError):
        await with_a_broken_loop()


async def test_stopping_before_the_first_list_is_complete(tmp_path):
    """An API server that cannot be reached does not keep the process from ending."""
    async with await serve(SandboxOptions(kubelets=False)) as sandbox:
        path = tmp_path / "kubeconfig"
        sandbox.write_kubeconfig(path)
    stop = asyncio.Event()
    settings = ProcessOptions(load(CONFIGURATION.format(kubeconfig=path, elect="false", delayed="false")))
    process = asyncio.create_task(run(settings, stop))
    stop.set()
    async with asyncio.timeout(PATIENCE_SECONDS):
        await process
