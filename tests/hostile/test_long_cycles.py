"""Cycles that lists of pods make long: they give everything else its turn, and end with their budgets."""

import asyncio

import pytest

from berth.cycle.budgets import LEAST_SECONDS, LEAST_SECONDS_OF_DEBTORS
from berth.cycle.debts import LONGEST_PAUSE_SECONDS
from berth.framework.attempts.cycle_budget import CpuTime, CycleMeter, OverBudgetError
from berth.plugins.node_resources_fit import NodeResourcesFit
from tests.hostile.cluster import Cluster, waiting
from tests.unit.preemption.kit import node, placed, preemptor, stage

LOOK_SECONDS = 0.001
VICTIMS = 40


class Ticking:
    """A clock on which each look takes some CPU: time is work, counted."""

    def __init__(self):
        self.seconds = 0.0

    def monotonic(self):
        self.seconds += LOOK_SECONDS
        return self.seconds

    def cpu(self):
        return self.seconds


async def dry_run(limit_seconds):
    """How many turns others have during a dry run of preemption on a node with many pods."""
    turns = []

    async def breathe():
        turns.append(True)

    meter = CycleMeter(limit_seconds, CpuTime(Ticking()), breathe)
    crowd = [placed(f"p{i}", "100m", 1, "n1") for i in range(VICTIMS)]
    there = stage([node("n1", cpu="4")], crowd)
    request = await there.request(preemptor("2"))
    request.state.meter = meter
    await meter.timed(there.preemption.preempt(request))
    return len(turns)


async def test_dry_runs_of_preemption_give_others_their_turn():
    assert await dry_run(1000.0) > VICTIMS


async def test_dry_runs_of_preemption_end_with_the_budget():
    with pytest.raises(OverBudgetError, match="scheduling cycle exceeded its budget"):
        await dry_run(0.05)


GREEDY = 200
LITTLE_SECONDS = 2 * LEAST_SECONDS_OF_DEBTORS
"""More than pods of a debtor may use, and much less than others may."""


class Burst:
    """A cluster in which each pod of one namespace takes all of its budget, and how often those are tried."""

    def __init__(self, monkeypatch):
        self.cluster, self.tried, self.bound = Cluster(4), 0, []
        usual = NodeResourcesFit.pre_filter

        def toiling(plugin, state, pod, nodes):
            if pod.namespace == "greedy":
                self.tried += 1
                little = LITTLE_SECONDS if pod.name.startswith("little") else 0.0
                self.cluster.clock.seconds += little or 1.1 * state.meter.limit_seconds
            return usual(plugin, state, pod, nodes)

        monkeypatch.setattr(NodeResourcesFit, "pre_filter", toiling)

    def add(self, name, namespace="default"):
        self.cluster.core.pod_handler.on_add(waiting(name, namespace=namespace))

    def run(self):
        """Try all that is ready."""
        queue = self.cluster.core.queue
        queue.flush()
        while (record := queue.pop()) is not None:
            asyncio.run(self.cluster.core.schedule_one.schedule(record))
            if self.cluster.core.cache.get_pod(record.pod.uid) is not None:
                self.bound.append(record.pod.name)
        self.cluster.forget_writes()


@pytest.fixture
def burst(monkeypatch):
    made = Burst(monkeypatch)
    for i in range(GREEDY):
        made.add(f"greedy-{i}", "greedy")
    yield made
    made.cluster.close()


def test_others_wait_for_one_cycle_however_many_pods_take_long(burst):
    """The pods of one namespace come first in the queue, and each of them would use all that it may."""
    began = burst.cluster.clock.seconds
    burst.add("ordinary")
    burst.run()

    assert ["ordinary"] == burst.bound
    assert burst.tried == 1
    assert burst.cluster.clock.seconds - began < 2 * LEAST_SECONDS


def test_of_a_namespace_that_went_over_one_pod_a_second_is_tried_at_most(burst):
    burst.run()
    for _ in range(20):
        burst.cluster.clock.seconds += 1
        burst.run()

    assert 10 < burst.tried <= 21


def test_pods_that_are_held_back_for_another_come_back_once_that_one_is_deleted(monkeypatch):
    """A namespace that owes for one pod has small budgets for all of them: a hold outlives no cause."""
    burst = Burst(monkeypatch)
    hog = waiting("hog", namespace="greedy")
    burst.cluster.core.pod_handler.on_add(hog)
    burst.run()
    burst.add("little", "greedy")
    burst.cluster.clock.seconds += LONGEST_PAUSE_SECONDS
    burst.run()
    held = burst.cluster.core.queue.record("greedy", "little").held_until - burst.cluster.clock.monotonic()
    burst.cluster.core.pod_handler.on_delete(hog)
    burst.cluster.clock.seconds += LONGEST_PAUSE_SECONDS + 1
    burst.run()

    assert held > LONGEST_PAUSE_SECONDS
    assert ["little"] == burst.bound
    burst.cluster.close()
