"""Equal members of a group are one question, and get the answers that they would get as strangers."""

import random

import msgspec
import pytest

from berth.objects.label_selector import LabelSelector
from berth.objects.pods.pod_spec import TopologySpreadConstraint
from tests.scenarios.pod_groups.kit import TOPOLOGY, Groups

SPREAD = TopologySpreadConstraint(1, "zone", "DoNotSchedule", LabelSelector({"app": "x"}))


async def placed(seed, *, remembering):
    """Who goes where in a cluster drawn by chance, with and without anything being remembered."""
    chance = random.Random(seed)
    cluster = Groups(gates=TOPOLOGY, seed=seed)
    algorithm = cluster.core.schedule_one.real.algorithm
    if not remembering:
        msgspec.structs.force_setattr(algorithm, "cache", None)
    for i in range(chance.randrange(2, 8)):
        cluster.add_node(f"n{i}", cpu=str(chance.randrange(1, 5)), labels={"zone": chance.choice("ab")})
    for name in "gh":
        count = chance.randrange(1, 8)
        needed = chance.choice([None, count, 1])
        cluster.add_group(name, needed, topology=chance.choice([None, "zone"]))
        cpu, spread = str(chance.randrange(1, 3)), chance.random() < 0.4
        for i in range(count):
            cluster.add_member(
                f"{name}{i}",
                name,
                cpu=cpu,
                labels={"app": "x"},
                topology_spread_constraints=(SPREAD,) if spread else (),
            )
    await cluster.tick(5)
    reused = algorithm.cache.outcomes["reused"] if remembering else 0
    return cluster.bound, {name: cluster.group_condition(name) for name in "gh"}, reused


@pytest.mark.parametrize("seed", range(12))
async def test_remembered_answers_hold_on_trial(seed):
    """A group goes where it goes if every member is worked out from nothing."""
    bound, conditions, _ = await placed(seed, remembering=True)
    again, same, _ = await placed(seed, remembering=False)

    assert (again, same) == (bound, conditions)


async def test_answers_are_remembered_on_trial():
    """The members of a gang are asked about as one question."""
    cluster = Groups()
    cluster.add_node(cpu="4")
    cluster.add_node("n1", cpu="4")
    cluster.add_gang(4, *"abcd", cpu="1")
    await cluster.run()

    assert 0 < cluster.core.schedule_one.real.algorithm.cache.outcomes["reused"]
