"""`make check`: which tests are nearest to a file."""

from tests.check import MAX_FILES, ROOT, imported, modules, near_tests, nearest

MODULE = ROOT / "core/scheduler/src/berth/evaluation/caching/top_scores.py"


def test_what_a_file_imports():
    text = "from berth.queue import nominator\nimport berth.cli\nfrom berth.demo.pace import (\n  Pace)\n"

    assert {"berth.queue", "berth.queue.nominator", "berth.cli"} <= imported(text)
    assert "berth.demo.pace" in imported(text)


def test_the_namesake_comes_first():
    near = nearest()["berth.evaluation.caching.top_scores"]

    assert ROOT / "tests/unit/evaluation/caching/test_top_scores.py" == near[0]


def test_files_of_tests_are_run_themselves():
    own = ROOT / "tests/unit/test_check.py"
    found = near_tests([MODULE, own])

    assert own == found[0]
    assert ROOT / "tests/unit/evaluation/caching/test_top_scores.py" in found
    assert len(found) <= MAX_FILES + 1


def test_nearly_every_module_has_tests_on_the_map():
    near = nearest()

    assert modules().keys() == near.keys()
    assert sum(bool(tests) for tests in near.values()) > 0.9 * len(near)
