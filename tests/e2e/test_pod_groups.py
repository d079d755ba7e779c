"""Gangs that fit only one at a time, watched event by event."""

from collections import Counter

import pytest

from berth.client.resources import POD_GROUPS, PODS
from tests.e2e.default_cluster import CONFIGURATION, default_cluster
from tests.e2e.seen import items
from tests.kube_scheduler import EITHER

pytestmark = pytest.mark.e2e

GANGS = 40
SIZE = 30
NODES = 6
FLAGS = ("--feature-gates=GenericWorkload=true,GangScheduling=true",)
# Gangs that wait look for room every second, so that the last ones do not take long.
PATIENT = CONFIGURATION + "podMaxBackoffSeconds: 1\n"
WORKS_FOR = {"sandbox.berth.dev/run-seconds": "0.02"}
SCHEDULED = 'scheduler_podgroup_schedule_attempts_total{profile="default-scheduler",result="scheduled"}'


def node(name):
    """A node for as many pods as make a gang together with the other nodes."""
    resources = {"cpu": str(SIZE // NODES), "memory": "64Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"capacity": resources, "allocatable": resources},
    }


def group(name):
    """A gang that needs all of its pods."""
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": SIZE}}},
    }


def members(gang):
    """Its pods: one CPU each, for a moment."""
    container = {"name": "c", "image": "app:1", "resources": {"requests": {"cpu": "1"}}}
    return [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"{gang}-{i}", "namespace": "default", "annotations": WORKS_FOR},
            "spec": {"containers": [container], "schedulingGroup": {"podGroupName": gang}},
        }
        for i in range(SIZE)
    ]


class Placements:
    """How far each gang has come, event by event: its pods that ever had a node, and those that are done."""

    def __init__(self):
        self.node_of = {}
        self.placed, self.done = Counter(), Counter()
        self.most_partial = 0
        self.moved = []

    def look(self, kind, document):
        """Take an event in."""
        del kind
        name, gang = document["metadata"]["name"], document["spec"]["schedulingGroup"]["podGroupName"]
        on = document["spec"].get("nodeName")
        if not on:
            return
        if name not in self.node_of:
            self.node_of[name] = on
            self.placed[gang] += 1
            partial = sum(1 for count in self.placed.values() if count < SIZE)
            self.most_partial = max(self.most_partial, partial)
        elif self.node_of[name] != on:
            self.moved.append(name)
        if document["status"]["phase"] == "Succeeded":
            self.done[gang] += 1


async def conditions(cluster):
    """What each group's owner reads: (status, reason, message)."""
    groups = await items(cluster, POD_GROUPS)
    return {
        group["metadata"]["name"]: (condition["status"], condition["reason"], condition["message"])
        for group in groups
        for condition in group["status"]["conditions"]
    }


@pytest.mark.parametrize("scheduler", EITHER)
async def test_gangs_take_turns(tmp_path, scheduler, api_server):
    """All get through, and at no moment are two of them placed in part."""
    names = [f"gang-{i}" for i in range(api_server.fraction(GANGS, 4))]
    placements = Placements()
    nodes = [node(f"n{i}") for i in range(NODES)]
    async with (
        default_cluster(tmp_path, nodes, PATIENT, FLAGS, scheduler=scheduler, server=api_server) as cluster,
        cluster.watching(placements.look),
    ):
        await cluster.create(POD_GROUPS, [group(name) for name in names])
        for name in names:
            await cluster.create(PODS, members(name))
        await cluster.reach(lambda: placements.done.total() >= len(names) * SIZE)
        metrics = await cluster.metrics(SCHEDULED.partition("{")[0])
        reported = await conditions(cluster)

    assert dict.fromkeys(names, SIZE) == placements.placed
    assert 1 == placements.most_partial
    assert [] == placements.moved
    assert len(names) == metrics[SCHEDULED]
    assert dict.fromkeys(names, ("True", "Scheduled", "")) == reported
