"""Groups that take back what others borrowed, in real processes: no pod is evicted in vain."""

import json
import os
import signal
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
import yaml

from berth.client.errors import NotFoundError
from berth.demo.processes import Child, program
from tests.e2e.api_servers import api_server_called
from tests.e2e.faults import REPOSITORY, faulty_cluster

pytestmark = pytest.mark.e2e
CORES, NODES = 8, 3
KINDS = [REPOSITORY / f"kustomize/third-party-crds/{name}.yaml" for name in ("elasticquotas", "podgroups")]
OBJECTS = "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/{}/{}"
PROFILE = """
profiles:
- schedulerName: default-scheduler
  plugins:
    multiPoint: {enabled: [{name: queues}]}
    queueSort: {disabled: [{name: PrioritySort}], enabled: [{name: queues}]}
    postFilter: {disabled: [{name: DefaultPreemption}]}
"""
WATCHED = ("ElasticQuota", "CoschedulingPodGroup")
LIST = """
apiVersion: berth.dev/v1alpha1
kind: PluginList
plugins:
- {{name: queues, address: "unix:{socket}", extensionPoints: [queueSort, filter, postFilter, reserve]}}
"""
GROUPS = "/apis/scheduling.k8s.io/v1beta1/namespaces/a/podgroups"
GANG = {
    "apiVersion": "scheduling.k8s.io/v1beta1",
    "kind": "PodGroup",
    "metadata": {"name": "gang", "namespace": "a"},
    "spec": {"schedulingPolicy": {"gang": {"minCount": 3}}},
}
MIN = {"a": 16, "b": 8}
BORROWED = 6
"""How many pods of two cores make room for the three of four cores."""


class Replica:
    """A scheduler and its plugin, started and killed together."""

    def __init__(self, cluster, name, folder, watched=WATCHED):
        self.cluster, self.name, self.folder, self.watched = cluster, name, folder, watched
        self.plugin = None

    async def start(self, *flags):
        socket, listed = self.folder / f"{self.name}.sock", self.cluster.folder / f"{self.name}-plugins.yaml"
        listed.write_text(LIST.format(socket=socket))
        command = [program("berth-queues"), "--address", f"unix:{socket}", "--kinds", *self.watched]
        self.plugin = await Child.start(self.name, command, self.cluster.log(f"{self.name}-queues"))
        await self.cluster.start_scheduler(self.name, f"--plugins={listed}", *flags, elect=True, rest=PROFILE)

    async def kill(self):
        os.kill(self.plugin.pid, signal.SIGKILL)
        await self.cluster.kill(self.name)
        await self.plugin.stop()

    def leads(self):
        return "became leader" in self.cluster.log(self.name).read_text()


def node(number):
    resources = {"cpu": str(CORES), "memory": "64Gi", "pods": "110"}
    status = {"capacity": resources, "allocatable": resources}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"n{number}"}, "status": status}


def written(kind, namespace, name, spec):
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": kind, "metadata": metadata, "spec": spec}


def pod(namespace, name, cores):
    labels = {"scheduling.x-k8s.io/pod-group": "gang"} if namespace == "a" else {}
    container = {"name": "main", "image": "image", "resources": {"requests": {"cpu": str(cores)}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 1},
    }


async def create(cluster, path, document):
    await cluster.api.call("POST", path, json.dumps(document).encode())


async def create_of_new_kind(cluster, path, document):
    """Create an object as soon as its kind, which was just defined, is served."""

    async def created():
        with suppress(NotFoundError):
            await create(cluster, path, document)
            return True
        return False

    await cluster.until(created, path)


def placed(cluster, namespace):
    return [
        each
        for each in cluster.pods()
        if each["metadata"]["namespace"] == namespace and each["spec"].get("nodeName")
    ]


def leaving(cluster):
    """How many pods of b are gone, or ending."""
    there = [each for each in placed(cluster, "b") if "deletionTimestamp" not in each["metadata"]]
    return 12 - len(there)


STEPS = {
    "first eviction": lambda cluster: leaving(cluster) >= 1,
    "all evicted": lambda cluster: leaving(cluster) >= BORROWED,
    "first placed": lambda cluster: len(placed(cluster, "a")) >= 1,
}


async def crowded(cluster):
    """Three nodes full of pods of b, which borrows what a leaves."""
    await divided(cluster)
    group = written("PodGroup", "a", "gang", {"minMember": 3})
    await create_of_new_kind(cluster, OBJECTS.format("a", "podgroups"), group)


async def divided(cluster):
    """Three nodes, and quotas for a and b."""
    for kind in KINDS:
        document = yaml.safe_load(kind.read_text(encoding="utf-8"))
        await create(cluster, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", document)
    for number in range(NODES):
        await create(cluster, "/api/v1/nodes", node(number))
    for name, least in MIN.items():
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        await create(cluster, "/api/v1/namespaces", namespace)
        quota = written("ElasticQuota", name, "quota", {"min": {"cpu": least}})
        await create_of_new_kind(cluster, OBJECTS.format(name, "elasticquotas"), quota)


@pytest.mark.parametrize("name", ["in memory", "real"])
@pytest.mark.parametrize("step", STEPS)
async def test_leader_killed(tmp_path, step, name):
    """Just the pods leave that the group needs, it is placed, and nothing has more than it may."""
    real = api_server_called(name).real
    with tempfile.TemporaryDirectory(prefix="berth-") as sockets:
        async with faulty_cluster(tmp_path, room=110, kubelets=True, real=real) as cluster:
            await crowded(cluster)
            replicas = [Replica(cluster, name, Path(sockets)) for name in ("one", "other")]
            try:
                await _reclaim(cluster, replicas, step)
            finally:
                for each in replicas:
                    await each.plugin.stop()

            assert 12 - BORROWED == len(placed(cluster, "b"))
            for number in range(NODES):
                there = [each for each in cluster.pods() if each["spec"].get("nodeName") == f"n{number}"]
                assert sum(map(cores, there)) <= CORES
            assert [] == cluster.witness.wrongs


async def _reclaim(cluster, replicas, step):
    leader, standby = replicas
    await leader.start()
    await cluster.ready(leader.name)
    await cluster.until(leader.leads, "the first leads")
    for number in range(12):
        await create(cluster, "/api/v1/namespaces/b/pods", pod("b", f"b{number}", 2))
    await cluster.until(lambda: len(placed(cluster, "b")) == 12, "b has borrowed")
    await standby.start()
    await cluster.ready(standby.name)
    for number in range(3):
        await create(cluster, "/api/v1/namespaces/a/pods", pod("a", f"a{number}", 4))
    await cluster.until(lambda: STEPS[step](cluster), step)
    await leader.kill()
    await leader.start()
    await cluster.until(lambda: len(placed(cluster, "a")) == 3, "the group is placed")
    await cluster.until(lambda: leaving(cluster) == BORROWED == 12 - len(placed(cluster, "b")), "b ended")


async def test_a_group_that_is_queued_as_a_unit(tmp_path):
    """From 1.37 on the plugin proposes for the group as a whole; just the pods leave that it needs."""
    with tempfile.TemporaryDirectory(prefix="berth-") as sockets:
        async with faulty_cluster(tmp_path, room=110, kubelets=True, release="1.37") as cluster:
            await divided(cluster)
            replica = Replica(cluster, "one", Path(sockets), ("ElasticQuota", "PodGroup/v1beta1"))
            try:
                await replica.start("--release=1.37", "--feature-gates=GenericWorkload=true")
                await cluster.ready(replica.name)
                for number in range(12):
                    await create(cluster, "/api/v1/namespaces/b/pods", pod("b", f"b{number}", 2))
                await cluster.until(lambda: len(placed(cluster, "b")) == 12, "b has borrowed")
                await create(cluster, GROUPS, GANG)
                for number in range(3):
                    member = pod("a", f"a{number}", 4)
                    member["spec"]["schedulingGroup"] = {"podGroupName": "gang"}
                    await create(cluster, "/api/v1/namespaces/a/pods", member)
                await cluster.until(lambda: len(placed(cluster, "a")) == 3, "the group is placed")
            finally:
                await replica.plugin.stop()

            assert 12 - BORROWED == len(placed(cluster, "b"))
            found = f"pod group preemption: found a placement for podgroup, preempting {BORROWED} victims"
            assert found in cluster.log(replica.name).read_text()


def cores(document):
    return int(document["spec"]["containers"][0]["resources"]["requests"]["cpu"])
