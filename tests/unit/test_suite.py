"""What the suite keeps to."""

import re
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from hypothesis.statistics import collector, describe_statistics

from tests.suite import filtered_too_much, own_share_first, reasons_of_skips, slow_ones_first


@pytest.mark.parametrize(("kept", "too_much"), [(40, True), (60, False)])
def test_a_strategy_that_filters_most_of_what_it_draws(kept, too_much):
    """Hypothesis's own statistics say so, in the words that are looked for."""
    found = []

    @settings(suppress_health_check=[HealthCheck.filter_too_much], database=None, derandomize=True)
    @given(st.randoms(use_true_random=False))
    def filtering(chance):
        assume(chance.randrange(100) < kept)

    with collector.with_value(lambda counts: found.append(describe_statistics(counts))):
        filtering()

    assert [too_much] == [filtered_too_much(each) for each in found]


def test_exploring_tries_other_examples():
    """Also where the variable CI is set: Hypothesis's own profile for it would be derandomized."""
    assert not settings.get_profile("explore").derandomize
    assert settings.get_profile("suite").derandomize


def test_nothing_was_drawn():
    assert not filtered_too_much("")


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_slow_ones_come_first(workers):
    """Each worker's part begins with its share: what compiles, then what waits, then all else as it was."""
    compiling, plain = ModuleType("compiling"), ModuleType("plain")
    compiling.build = SimpleNamespace(__module__="tests.rust_toolchain")
    waiting = [SimpleNamespace(nodeid=f"tests/e2e/test_{i}.py::test", module=plain) for i in range(6)]
    compiled = [SimpleNamespace(nodeid=f"tests/unit/test_{i}.py::test", module=compiling) for i in range(6)]
    quick = [SimpleNamespace(nodeid=f"tests/unit/quick_{i}.py::test", module=plain) for i in range(6)]
    ordered = slow_ones_first([*quick, *waiting, *compiled], workers)
    size = len(ordered) // workers
    parts = [ordered[size * worker : size * (worker + 1)] for worker in range(workers)]

    assert [*quick] == [item for item in ordered if item in quick]
    for part in parts:
        third = size // 3
        assert all(item in compiled for item in part[:third])
        assert all(item in waiting for item in part[third : 2 * third])


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_a_slow_module_has_one_worker(workers):
    """What its tests share is started once; all workers have as many tests."""
    plain = ModuleType("plain")
    tests = [
        (f"tests/{folder}_{i}.py", j) for folder in ("e2e/test", "quick") for i in range(9) for j in "abcd"
    ]
    items = [SimpleNamespace(nodeid=f"{file}::test_{name}", module=plain) for file, name in tests]
    ordered = slow_ones_first(items, workers)
    size = len(ordered) // workers
    parts = [ordered[size * worker : size * (worker + 1)] for worker in range(workers)]
    files = [{item.nodeid.partition("::")[0] for item in part if "e2e" in item.nodeid} for part in parts]

    assert {len(items)} == {len(set(map(id, ordered))), len(ordered)}
    assert 9 == sum(map(len, files))


def test_each_worker_begins_with_its_own_share():
    """And takes what is the others' afterwards, so that all have the same modules."""
    taken = [own_share_first("abcdefgh", f"gw{worker}", 3) for worker in range(3)]

    assert ["abcdefgh", "cdefghab", "fghabcde"] == ["".join(each) for each in taken]


def test_reasons_of_skips():
    """One line each, however many tests have it."""
    reports = [
        SimpleNamespace(longrepr=("f", i, reason)) for i, reason in enumerate(["a", "Skipped: b", "b"])
    ]

    assert ["SKIPPED [2] b", "SKIPPED [1] a"] == reasons_of_skips(reports)


def test_one_deadline_for_all():
    """What is sure to come is waited for as long as `PATIENCE_SECONDS`: less fails on a busy machine."""
    own = re.compile(
        r"(?:asyncio\.timeout\(|\bwait_for\([^\n,]*, |(?:process|thread)\.(?:wait|join)\()(\d+)\)"
    )
    files = [path for path in Path(__file__).parents[1].rglob("*.py") if "benchmarks" not in path.parts]
    found = [(path.name, line) for path in files for line in own.findall(path.read_text(encoding="utf-8"))]

    assert [] == [each for each in found if each[1] != "0"]
