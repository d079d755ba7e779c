"""Pods that fit nowhere, what makes each of them fit, and events of the same sort that do not.

All of it happens on one cluster, a case after another. Used by the tests, which count attempts, and by the
benchmark, which looks at the clock.
"""

import asyncio
import time
from dataclasses import dataclass

from berth.client.resources import NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS

HOST = "kubernetes.io/hostname"
RESOURCES = {"cpu": "4", "memory": "16Gi", "pods": "500"}
ATTEMPTS = "scheduler_schedule_attempts_total"
HANDLED = "scheduler_event_handling_duration_seconds_count"
AFTER_FLUSH = "scheduler_pod_scheduled_flushed_total"
AT_ONCE = 16

# As kube-scheduler has it, any change of taints brings a pod back that most other plugins rejected. So that
# none but TaintToleration rejects the pod that waits for a taint to go, no node is without taints.
DEDICATED = {"key": "dedicated", "value": "", "effect": "NoSchedule"}
TOLERATED = {"key": "dedicated", "operator": "Exists"}


def node(name, taints=(), **labels):
    """A node of four CPUs."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {HOST: name, **labels}},
        "spec": {"taints": list(taints)},
        "status": {"capacity": RESOURCES, "allocatable": RESOURCES},
    }


def pod(name, cpu="10m", labels=None, **spec):
    """A pod in the default namespace."""
    container = {"name": "c", "image": "app:1", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": labels or {}},
        "spec": {"containers": [container], "tolerations": [TOLERATED], **spec},
    }


def claim(name, **spec):
    """A claim of a class whose volumes are bound at once, by a controller."""
    wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"storageClassName": "at-once", **wanted, **spec},
    }


VOLUME = {
    "apiVersion": "v1",
    "kind": "PersistentVolume",
    "metadata": {"name": "volume"},
    "spec": {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "at-once",
        "hostPath": {"path": "/data"},
        "claimRef": {"namespace": "default", "name": "mine"},
    },
}
AT_ONCE_CLASS = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "at-once"},
    "provisioner": "example.com/by-hand",
    "volumeBindingMode": "Immediate",
}
MAINTENANCE = {"key": "maintenance", "value": "0", "effect": "NoSchedule"}
NEAR_TARGET = {
    "podAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": [
            {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": "target"}}}
        ]
    }
}


def surroundings():
    """What is there before any pod waits."""
    return [
        AT_ONCE_CLASS,
        node("plain", [DEDICATED]),
        node("full", [DEDICATED]),
        node("tainted", [MAINTENANCE]),
        claim("other"),
        claim("mine"),
        pod("big", "3", nodeName="full"),
        pod("bystander", nodeName="plain"),
    ]


@dataclass(frozen=True)
class Case:
    """A pod that waits; `nudge(cluster, i)` is the i-th event that does not help it, `help(cluster)` does."""

    name: str
    waiting: dict
    nudge: object
    help: object


def labels(resource, name, namespace="", **values):
    """A patch of an object's labels, as a call on a cluster."""
    return lambda cluster: cluster.patch(resource, name, {"metadata": {"labels": values}}, namespace)


def taints(*values):
    """A patch of the tainted node's taints, as a call on a cluster."""
    return lambda cluster: cluster.patch(NODES, "tainted", {"spec": {"taints": list(values)}})


def bind_claim(cluster):
    """What a volume controller writes to a claim that it has bound."""
    annotations = {"pv.kubernetes.io/bind-completed": "yes", "pv.kubernetes.io/bound-by-controller": "yes"}
    patch = {"metadata": {"annotations": annotations}, "spec": {"volumeName": "volume"}}
    return cluster.patch(PERSISTENT_VOLUME_CLAIMS, "mine", patch, "default")


CASES = (
    Case(
        "node added",
        pod("wants-pool", nodeSelector={"pool": "new"}),
        lambda cluster, i: labels(NODES, "plain", pool=f"old-{i}")(cluster),
        lambda cluster: cluster.create(NODES, [node("new", [DEDICATED], pool="new")]),
    ),
    Case(
        "node label changed",
        pod("wants-disk", nodeSelector={"disk": "ssd"}),
        lambda cluster, i: labels(NODES, "plain", disk=f"hdd-{i}")(cluster),
        labels(NODES, "plain", disk="ssd"),
    ),
    Case(
        "taint removed",
        pod("wants-tainted", nodeSelector={HOST: "tainted"}, tolerations=[]),
        lambda cluster, i: taints({**MAINTENANCE, "value": str(i + 1)})(cluster),
        taints(),
    ),
    Case(
        "pod deleted",
        pod("wants-room", "2", nodeSelector={HOST: "full"}),
        lambda cluster, i: labels(PODS, "big", "default", turn=str(i))(cluster),
        lambda cluster: cluster.delete(PODS, "big", "default"),
    ),
    Case(
        "claim bound",
        pod("wants-claim", volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "mine"}}]),
        lambda cluster, i: labels(PERSISTENT_VOLUME_CLAIMS, "other", "default", turn=str(i))(cluster),
        bind_claim,
    ),
    Case(
        "affinity's target arrives",
        pod("wants-target", affinity=NEAR_TARGET),
        lambda cluster, i: labels(PODS, "bystander", "default", app=f"other-{i}")(cluster),
        lambda cluster: cluster.create(PODS, [pod("target", labels={"app": "target"}, nodeName="plain")]),
    ),
)


class Pods:
    """When each pod was seen on a node, and which say that they fit nowhere."""

    def __init__(self):
        self.bound_at, self.rejected = {}, set()

    def look(self, kind, document):
        """Take an event in."""
        name = document["metadata"]["name"]
        conditions = document.get("status", {}).get("conditions", ())
        if any(c["type"] == "PodScheduled" and c.get("reason") == "Unschedulable" for c in conditions):
            self.rejected.add(name)
        if kind != "DELETED" and document["spec"].get("nodeName"):
            self.bound_at.setdefault(name, time.monotonic())


@dataclass(frozen=True)
class Counts:
    """What the scheduler has counted: attempts, events handled, pods that only a flush brought back."""

    attempts: int
    handled: int
    flushed: int

    @classmethod
    async def of(cls, cluster):
        """As of now."""
        metrics = await cluster.metrics(ATTEMPTS, HANDLED, AFTER_FLUSH)
        return cls(*(int(total(metrics, name)) for name in (ATTEMPTS, HANDLED, AFTER_FLUSH)))


def total(metrics, name):
    """The sum of a metric over its labels."""
    return sum(value for series, value in metrics.items() if series.partition("{")[0] == name)


async def prepare(cluster):
    """Make what waiting pods find, but for what helps them."""
    await cluster.create(PERSISTENT_VOLUMES, [VOLUME])


async def wait_until_rejected(cluster, pods, case):
    """Submit the pod, and let the scheduler find that it fits nowhere."""
    await cluster.create(PODS, [case.waiting])
    await cluster.reach(lambda: case.waiting["metadata"]["name"] in pods.rejected)


async def storm(cluster, case, size):
    """Let that many events pass that are no help, until the scheduler has looked at every one."""
    before = await Counts.of(cluster)
    for first in range(0, size, AT_ONCE):
        await asyncio.gather(*(case.nudge(cluster, i) for i in range(first, min(first + AT_ONCE, size))))
    while (await Counts.of(cluster)).handled < before.handled + size:
        pass  # The scheduler is busy answering that very question.


async def help_out(cluster, pods, case):
    """Let the event pass that helps; seconds from its answer until the pod is seen on a node."""
    await case.help(cluster)
    helped = time.monotonic()
    name = case.waiting["metadata"]["name"]
    await cluster.reach(lambda: name in pods.bound_at)
    return pods.bound_at[name] - helped
