"""Sweeps do every combination once, and go on where they stopped."""

import json

import pytest
from click.testing import CliRunner

from berth.commands.simulate import simulate as command
from berth.simulation.comparing.sweep import (
    SweepError,
    SweepInput,
    SweepRun,
    in_processes,
    one,
    runs_of,
    sweep,
)
from berth.simulation.errors import SimulationError
from tests.unit.simulation.kit import node, pod, written


@pytest.fixture
def subject(tmp_path):
    nodes = [node("large", cpu="16"), node("small")]
    return SweepInput((str(written(tmp_path / "c.json", *nodes, pod("p0"), pod("p1"))),))


class Worker:
    """Does runs here, and fails where it is asked to."""

    def __init__(self, fails_after=100):
        self.did = []
        self.fails_after = fails_after

    def __call__(self, subject, runs):
        for run in runs:
            if len(self.did) == self.fails_after:
                raise SweepError("cut off")
            self.did.append(run)
            yield run, one(subject, run)


def test_every_combination():
    """Configurations by weights by seeds."""
    runs = runs_of(["a", "b"], ["seed=0..2", "NodeResourcesFit=1,5"], 9)

    assert 12 == len(set(runs))
    assert SweepRun("a", 0, (("NodeResourcesFit", 1),)) == runs[0]


@pytest.mark.parametrize(
    "axes",
    [
        ["seed"],
        ["seed=a"],
        ["seed=0..1", "seed=2"],
        ["=1"],
        ["A=-1"],
        ["seed=0..99999"],
        ["seed=1..0"],
        ["A=0..999", "B=0..999"],
    ],
)
def test_what_is_no_axis_is_refused(axes):
    """The error quotes it or says the limit."""
    with pytest.raises(SweepError, match="--sweep: "):
        runs_of(["a"], axes, 0)


def test_a_sweep_goes_on_where_it_stopped(tmp_path, subject):
    """Runs that stand in the results are not repeated, and a line that was cut off is."""
    results, runs = tmp_path / "results.jsonl", runs_of(["default"], ["seed=0..3"], 0)
    with pytest.raises(SweepError, match="cut off"):
        sweep(subject, runs, results, Worker(fails_after=3))
    results.write_bytes(results.read_bytes()[:-10])

    again = Worker()
    found = sweep(subject, runs, results, again)

    assert runs[2:] == again.did
    assert [run.name for run in runs] == [each.name for each in found.runs]
    assert found == sweep(subject, runs, results, Worker(fails_after=0))


def test_another_input_is_another_run(tmp_path, subject):
    """Results are known by what the files hold."""
    results, runs = tmp_path / "results.jsonl", runs_of(["default"], ["seed=0"], 0)
    sweep(subject, runs, results, Worker())
    written(tmp_path / "c.json", node("other"))

    again = Worker()
    sweep(subject, runs, results, again)

    assert runs == again.did


def test_other_files_are_no_results(tmp_path, subject):
    """A file that is something else is not written to."""
    results = tmp_path / "notes.txt"
    results.write_text("my notes\nmore\n", encoding="utf-8")

    with pytest.raises(SweepError, match=r"notes.txt:1: no line of a sweep"):
        sweep(subject, runs_of(["default"], ["seed=0"], 0), results, Worker())


def test_processes_do_the_same(subject):
    """Runs in processes of their own come to what they come to here."""
    runs = runs_of(["default"], ["NodeResourcesFit=0,9"], 1)

    found = dict(in_processes(1)(subject, runs))

    assert {run: one(subject, run) for run in runs} == found


def test_failures_are_errors(subject):
    """A plugin that no profile has is named."""
    with pytest.raises(SimulationError, match="Nothing"):
        sweep(subject, runs_of(["default"], ["Nothing=1"], 0), None, Worker())


def test_command_plots(tmp_path, subject):
    """Rows are printed, and plotted to a file."""
    pytest.importorskip("matplotlib")
    picture = tmp_path / "plot.png"
    arguments = ["compare", "default", "--input", *subject.inputs, "--plot", str(picture), "-o", "json"]

    result = CliRunner().invoke(command, arguments)

    assert 0 == result.exit_code, result.output
    assert ["default"] == [each["name"] for each in json.loads(result.stdout)["variants"]]
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_command_plots_in_the_terminal(subject):
    """Bars are printed after the rows."""

    result = CliRunner().invoke(command, ["compare", "default", "--input", *subject.inputs, "--plot", "-"])

    assert 0 == result.exit_code, result.output
    assert "cpu requested (%)" in result.stdout


def test_plots_have_a_format(subject):
    """A file of another kind is refused."""
    result = CliRunner().invoke(
        command, ["compare", "default", "--input", *subject.inputs, "--plot", "a.txt"]
    )

    assert 2 == result.exit_code
    assert ".png" in result.stderr
