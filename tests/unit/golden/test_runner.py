"""The runner itself, on the vectors of this repository."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.golden.differences import differences, without
from tests.golden.run import check, run
from tests.golden.vectors import Vector, families, read

OWN = Path(__file__).parents[2] / "vectors"


@pytest.mark.parametrize("name", list(families(OWN)))
def test_own_vectors(name):
    """Every vector of ours passes."""
    (family,) = run(OWN, [name], 1)

    assert [] == [(result.name, result.differences) for result in family.results if not result.passed]
    assert family.complete


def wrong(value):
    """Each way to change one leaf of the value."""
    if isinstance(value, dict):
        for key in value:
            for changed in wrong(value[key]):
                yield {**value, key: changed}
    elif isinstance(value, list) and value:
        for i, item in enumerate(value):
            for changed in wrong(item):
                yield [*value[:i], changed, *value[i + 1 :]]
    else:
        yield "something else"


@pytest.mark.parametrize("name", list(families(OWN)))
def test_any_wrong_value_is_found(name):
    """A vector fails as soon as a single value in it is another."""
    vector = next(read(families(OWN)[name]))

    for expected in wrong(vector.expected):
        assert not check(Vector(vector.scenario, expected)).passed, expected


def test_what_was_not_expected_inside_a_part():
    """Nodes that turn up in an answer and were not expected are a difference."""
    assert ["filter.P.n1: expected (absent), got {}"] == list(
        differences({"filter": {"P": {}}}, {"filter": {"P": {"n1": {}}}, "more": 1})
    )


def test_without_missing_plugins():
    """What a missing plugin has a say in is left out, and its share of the sums."""
    rejected = {"n1": {"code": "Unschedulable", "plugin": "B"}}
    scores = {"A": {"nodes": {"n0": [1, 1, 1]}}, "B": {"nodes": {"n0": [5, 5, 10]}}}
    expected = {"filter": {"A": {}, "B": "Skip"}, "scores": scores, "total": {"n0": 11}, "best": ["n0"]}

    assert {"filter": {"A": {}}, "scores": {"A": scores["A"]}, "total": {"n0": 1}, "best": ["n0"]} == without(
        expected, {"B"}
    )
    assert {"filter": {"A": {}}} == without(expected | {"nodeStatus": rejected}, {"B"})


def test_unknown_kinds_and_broken_answers_do_not_pass():
    """A vector that cannot be answered is reported, not skipped."""
    assert "dance" == check(Vector({"name": "v", "kind": "dance"}, {})).unknown_kind
    assert not check(Vector({"name": "v", "kind": "schedule"}, {})).passed


def command(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "tests.golden", *map(str, arguments)],
        cwd=OWN.parents[1],
        capture_output=True,
        text=True,
        check=False,
    )


def test_command(tmp_path):
    """A line a family, the first differences below, and 1 on any difference."""
    vector = next(read(families(OWN)["waiting"]))
    answers = (vector.expected, {"order": []})
    lines = [{"scenario": vector.scenario, "expected": expected} for expected in answers]
    (tmp_path / "waiting.jsonl").write_text("\n".join(map(json.dumps, lines)))
    result = command("--dir", tmp_path, "--show", "1")

    assert 1 == result.returncode
    family, difference = result.stdout.splitlines()
    assert "waiting 1/2" == family
    assert difference.startswith("  waiting-order: order: expected [], got ['default/c'")


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--dir", "/no/such/folder"), "no such folder: /no/such/folder\n"),
        (("--dir", OWN, "--family", "nope"), f"no such family in {OWN}: nope\n"),
    ],
)
def test_bad_input(arguments, text):
    """A folder or a family that is not there is one line and exit code 2."""
    result = command(*arguments)

    assert (2, text) == (result.returncode, result.stderr)
