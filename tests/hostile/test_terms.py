"""Terms about other pods: a pod pays for its own by their number, others for those of placed pods once."""

import asyncio

import pytest

from berth.framework.attempts.cycle_budget import CpuTime, CycleMeter
from berth.framework.attempts.cycle_state import CycleState
from berth.framework.attempts.pacing import paced
from tests.hostile.deciding import HOST, REQUIRED, a_core, a_pod, decide, place, remove
from tests.hostile.test_long_cycles import Ticking
from tests.hostile.test_shapes_of_pods import pod_affinity, pod_anti_affinity, preferred_terms
from tests.hostile.work import calls

LITTLE = 0.02
"""Seconds of CPU: a clock that is looked at once for so many terms tells of more."""
EVERYBODY = {"namespaceSelector": {}, "labelSelector": {}}


def everybody_by_selector(n):
    """Anti-affinity terms of which each means any pod."""
    absent = ({"matchExpressions": [{"key": f"k{i}", "operator": "DoesNotExist"}]} for i in range(n))
    return [{**EVERYBODY, "topologyKey": HOST, "labelSelector": selector} for selector in absent]


def everybody_by_key(n):
    return [{**EVERYBODY, "topologyKey": f"level-{i}"} for i in range(n)]


def beside(terms):
    """A core with a placed pod that has these anti-affinity terms."""
    core = a_core()
    place(core, a_pod("hostile", affinity={"podAntiAffinity": {REQUIRED: terms}}))
    return core


def next_pod(core, name="next", app="x"):
    return lambda: decide(core, a_pod(name, labels={"app": app}))


@pytest.mark.parametrize("shape", [pod_affinity, pod_anti_affinity, preferred_terms])
def test_a_pod_is_asked_about_each_of_its_terms_once(shape):
    """Each term costs the same however many there are: 1.5 MB of required affinity took 88 s."""
    costs = []
    for n in (500, 4000):
        core, pod = a_core(), a_pod(**shape(n))
        costs.append(calls(lambda core=core, pod=pod: decide(core, pod)) / n)

    assert costs[1] < 1.2 * costs[0]


@pytest.mark.parametrize("terms", [everybody_by_selector, everybody_by_key])
def test_a_placed_pod_costs_others_the_same_however_many_terms_it_has(terms):
    """Once it is known that some of them mean a class of pods."""
    few, many = beside(terms(2)), beside(terms(4000))
    for core in (few, many):
        next_pod(core, "first")()

    assert calls(next_pod(many)) < 1.2 * calls(next_pod(few))


def test_a_new_pod_with_terms_costs_others_its_own_terms_alone():
    """What is known of the terms that were there before stays known."""
    core = beside(everybody_by_selector(12_000))
    next_pod(core, "first")()
    place(core, a_pod("one-more", affinity={"podAntiAffinity": {REQUIRED: everybody_by_key(3)}}))

    assert calls(next_pod(core)) < 12_000 / 2


def test_terms_that_are_gone_cost_nothing():
    core = a_core()
    next_pod(core, "before")()
    alone = calls(next_pod(core))
    hostile = a_pod("hostile", affinity={"podAntiAffinity": {REQUIRED: everybody_by_selector(4000)}})
    remove(core, place(core, hostile))
    next_pod(core, "first")()

    assert calls(next_pod(core)) < 1.2 * alone


def test_long_work_gives_others_their_turn_and_ends_with_its_budget():
    turns = []

    async def breathe():
        turns.append(True)

    def steps():
        for _ in range(1000):
            yield
        return "done"

    async def work(meter):
        return await paced(meter, "Plugin", steps())

    meter = CycleMeter(1000.0, CpuTime(Ticking()), breathe)

    assert "done" == asyncio.run(_timed(meter, work(meter)))
    assert len(turns) > 100


async def _timed(meter, work):
    return await meter.timed(work)


def test_what_placed_pods_cause_is_not_charged_to_the_pod_that_is_looked_at():
    """A cycle in which each look at the clock takes time goes on, however long their terms take."""
    core = beside(everybody_by_selector(4000))
    plugin = core.framework.plugins.by_name["InterPodAffinity"]
    meter = CycleMeter(LITTLE, CpuTime(Ticking()), _no_turn)

    async def asked():
        answer = plugin.pre_filter(CycleState(meter), a_pod("next"), core.snapshot)
        return answer if not hasattr(answer, "__await__") else await answer

    asyncio.run(_timed(meter, asked()))

    assert meter.used_seconds < LITTLE
    assert ["default"] == list(meter.others_seconds)


async def _no_turn():
    pass
