"""A turn of many pods decides as turns of one pod each.

Events come between turns; what a pod sees of those before it in its turn is what they took. Where some fit
nowhere, a turn's length decides when they are tried again, so here all of them fit.
"""

import math
import random

import pytest

from berth.objects.label_selector import LabelSelector
from berth.objects.pods.pod_spec import Affinity, PodAffinity, PodAffinityTerm, TopologySpreadConstraint
from berth.scheduler.loop import scheduling_loop
from tests.scenarios.kit.cluster import Cluster

SEEDS = range(12)
ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
ROUNDS, NODES, PODS = 4, 40, 12


def asks(chance):
    """What a pod asks for: an amount, and sometimes to be spread or to be alone."""
    app = {"app": f"a{chance.randrange(3)}"}
    spread = TopologySpreadConstraint(1, ZONE, "DoNotSchedule", LabelSelector(app))
    alone = PodAffinityTerm(LabelSelector(app), topology_key=HOST)
    apart = Affinity(pod_anti_affinity=PodAffinity((alone,)))
    kinds = ({}, {"topology_spread_constraints": (spread,)}, {"affinity": apart})
    return {"cpu": f"{chance.randrange(1, 5) * 250}m", "labels": app, **chance.choice(kinds)}


async def played(seed):
    """Where every pod went, and in which order they were tried."""
    chance, cluster = random.Random(seed), Cluster(seed=seed)
    for number in range(NODES):
        labels = {ZONE: f"z{number % 2}", HOST: f"n{number}"}
        cluster.add_node(f"n{number}", labels=labels, cpu=str(chance.randrange(4, 16)))
    for round_number in range(ROUNDS):
        for number in range(PODS):
            cluster.add_pod(f"p{round_number}-{number}", **asks(chance))
        await cluster.run()
        assert (round_number + 1) * PODS == len(cluster.tried)
        cluster.delete_pod(f"p{round_number}-{chance.randrange(PODS)}")
        await cluster.tick(chance.randrange(1, 40))
    return cluster.bound, cluster.tried


@pytest.mark.parametrize("seed", SEEDS)
async def test_a_turn_of_many_pods_decides_as_one_pod_after_the_other(seed, monkeypatch):
    monkeypatch.setattr(scheduling_loop, "TURN_SECONDS", math.inf)
    together = await played(seed)
    monkeypatch.setattr(scheduling_loop, "TURN_PODS", 1)
    assert await played(seed) == together


async def test_a_turn_takes_many_pods_before_anything_else_has_its_own(monkeypatch):
    """The bindings of a turn's pods begin when it is over."""
    monkeypatch.setattr(scheduling_loop, "TURN_SECONDS", math.inf)
    cluster = Cluster()
    cluster.add_node("n0", cpu="64")
    for number in range(scheduling_loop.TURN_PODS + 1):
        cluster.add_pod(f"p{number}")
    tried = []
    cluster.recorder.on_event = lambda: tried.append(len(cluster.tried))
    await cluster.run()

    assert scheduling_loop.TURN_PODS + 1 == len(cluster.bound)
    assert scheduling_loop.TURN_PODS <= tried[0]
