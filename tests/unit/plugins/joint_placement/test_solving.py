"""HiGHS behind a program: what it finds, and what bounds it."""

import random
import sys

import pytest

from berth.config.errors import BuildError
from berth.plugins.joint_placement.program import Program
from berth.plugins.joint_placement.solving import SearchBounds, Solver
from tests.unit.pod_groups.kit import member, node, stage

AMPLE = SearchBounds(branches=1000, seconds=60.0)


def knapsack(weights, worths, room):
    program = Program()
    columns = [program.column(worth, 1.0) for worth in worths]
    program.row(
        [(column, float(weight)) for column, weight in zip(columns, weights, strict=True)], upper=room
    )
    return program


def test_the_best_solution_is_found():
    """Of 3 and 4 for 5 and 6, or 7 for 10, with room for 7."""
    program = knapsack([3, 4, 7], [5, 6, 10], 7)

    assert [1, 1, 0] == [round(value) for value in Solver().solve(program, {}, AMPLE)]


def test_there_is_none_where_rows_contradict():
    """At least one and none at all."""
    program = Program()
    column = program.column(1.0, 1.0)
    program.row([(column, 1.0)], lower=1.0)
    program.row([(column, 1.0)], upper=0.0)

    assert Solver().solve(program, {}, AMPLE) is None


def test_a_start_is_kept_where_the_search_is_cut_off():
    """Hard to solve, and no branch allowed: what comes is no worse than the start, the same each time."""
    chance = random.Random(1)
    weights = [chance.randint(1000, 2000) for _ in range(40)]
    program = knapsack(weights, [weight + 1 for weight in weights], 20_011)
    start = {i: float(i < 9) for i in range(40)}
    first, second = [Solver().solve(program, start, SearchBounds(1, 60.0)) for _ in range(2)]

    assert sum(program.worth[:9]) <= sum(w * v for w, v in zip(program.worth, first, strict=True)) + 1e-6
    assert first == second


def test_without_the_solver_the_error_names_the_extra(monkeypatch):
    """As a profile that enables the plugin is built."""
    monkeypatch.setitem(sys.modules, "highspy", None)

    with pytest.raises(BuildError, match=r'"JointPlacement": .* pip install berth-scheduler\[joint\]'):
        stage([node("n0")], [member("a")])
