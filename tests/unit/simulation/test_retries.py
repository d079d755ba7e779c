"""Pods of groups are tried again without an event, but not for ever."""

import random

import pytest

from berth.config import load, parse_feature_gates
from berth.simulation.running.engine import simulate
from berth.simulation.running.options import SimulationOptions
from berth.simulation.running.retries import WITH_CHOICE, WITHOUT_CHOICE, CountedChance, goes_round
from tests.unit.simulation.kit import GANGS, cluster, gang, node, pod

GATES = parse_feature_gates([f"{gate}=true" for gate in GANGS])


def outcome(tmp_path, *documents):
    """What comes of a cluster with groups."""
    return simulate(cluster(tmp_path, *documents), SimulationOptions(load(None, gates=GATES)))


def test_a_gang_without_a_choice_is_given_up_at_once(tmp_path):
    """On one node another attempt comes to the same."""
    group, members = gang("g", 5)

    found = outcome(tmp_path, node("n0"), group, *members)

    assert {WITHOUT_CHOICE, WITHOUT_CHOICE + 1} >= {each.attempts for each in found.pending}
    assert 5 == len(found.pending)


def test_a_gang_with_a_choice_is_tried_a_number_of_times(tmp_path):
    """Among equal nodes another choice may be the one by which it fits."""
    group, members = gang("g", 9)

    found = outcome(tmp_path, node("n0"), node("n1"), group, *members)

    assert {WITH_CHOICE, WITH_CHOICE + 1} >= {each.attempts for each in found.pending}


def test_gangs_wait_for_what_is_yet_to_happen(tmp_path):
    """Room that comes after a quarter of an hour is used."""
    group, members = gang("g", 4)
    leaving = pod("p0", cpu="2", nodeName="n0", annotations={"simulation.berth.dev/duration-seconds": "900"})

    found = outcome(tmp_path, node("n0"), leaving, group, *members)

    assert 4 == len(found.placements)
    assert 900 <= min(each.at_seconds for each in found.placements)


def test_what_comes_of_others_makes_another_attempt_worth_it(tmp_path):
    """A gang that waits for a gang's room is tried anew after each change."""
    first, runs_a_while = gang("a", 2)
    second, waits = gang("b", 3)
    for each in runs_a_while:
        each["metadata"]["annotations"] = {"simulation.berth.dev/duration-seconds": "300"}
        each["spec"]["priority"] = 10

    found = outcome(tmp_path, node("n0"), first, second, *runs_a_while, *waits)

    assert 5 == len(found.placements)


def test_chance_is_the_same_when_it_is_counted():
    """The numbers are those of the seed; one of one is no choice."""
    counted, plain = CountedChance(3), random.Random(3)

    drawn = [counted.randrange(n) for n in (1, 7, 1, 9)]

    assert [plain.randrange(n) for n in (1, 7, 1, 9)] == drawn
    assert 2 == counted.drawn


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("profiles: [{schedulerName: a}]", False, id="every node"),
        pytest.param("percentageOfNodesToScore: 30", True, id="a share"),
        pytest.param("profiles: [{schedulerName: a, percentageOfNodesToScore: 30}]", True, id="of a profile"),
        pytest.param(
            "profiles: [{schedulerName: a, plugins: {multiPoint: {disabled: [{name: '*'}], enabled: "
            "[{name: PrioritySort}, {name: DefaultBinder}]}}}]",
            True,
            id="no scores",
        ),
    ],
)
def test_searches_that_go_round(text, expected):
    """The next search begins where the last one ended, where not every node is looked at."""
    head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"

    assert expected == goes_round(load(head + text))
