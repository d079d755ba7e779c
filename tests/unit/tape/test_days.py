"""Days by chance are recorded and replayed: nothing differs, and what was changed is found."""

import gzip
import json
import re

import pytest
from click.testing import CliRunner

from berth.commands.simulate import simulate as command
from berth.config.loading import load
from berth.cycle import budgets
from berth.recordings.core.header import FORMAT
from berth.simulation.errors import InputError, PluginsError
from berth.simulation.recordings.replay import replay
from berth.simulation.recordings.tape_file import open_tape
from tests.unit.simulation.kit import profiles, written
from tests.unit.tape.kit import record

SMALL = {"nodes_count": 8, "pods_count": 30}
WEIGHTED = profiles(
    {
        "schedulerName": "default-scheduler",
        "plugins": {"multiPoint": {"enabled": [{"name": "NodeResourcesFit", "weight": 20}]}},
    }
)


@pytest.fixture(autouse=True, scope="module")
def _budgets_that_a_slow_reading_keeps_within():
    """A reading of the day's clock takes 0.2 s now and then: cycles end within their budgets all the same."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(budgets, "LEAST_SECONDS", 0.25)
        yield


@pytest.fixture(scope="module")
def day(tmp_path_factory):
    """A recorded day."""
    path = tmp_path_factory.mktemp("day") / "day.tape.gz"
    record(path, "placing", 1, **SMALL)
    return path


def lines(path):
    return gzip.decompress(path.read_bytes()).splitlines(keepends=True)


def changed(path, change):
    """The recording with its lines as the function makes them."""
    path.write_bytes(gzip.compress(b"".join(change(lines(path)))))
    return path


def run(*arguments):
    return CliRunner().invoke(command, ["replay", *map(str, arguments)])


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("subject", ["placing", "preemption", "volumes", "devices", "profiles", "everything"])
def test_every_decision_is_made_again(subject, asynchronous, tmp_path):
    path = tmp_path / "day.tape.gz"
    record(path, subject, 2, gates={"SchedulerAsyncAPICalls": asynchronous}, **SMALL)
    found = replay(path)
    assert (found.differences, found.warnings) == ([], [])
    assert min(found.events, found.attempts, found.writes) > 30


def test_a_day_has_failed_writes_and_cycles_in_several_steps(tmp_path):
    path = tmp_path / "day.tape.gz"
    record(path, "preemption", 2, **SMALL)
    recorded = lines(path)
    assert any(b'"ConflictError"' in line for line in recorded)
    assert any(b'"TimeoutError"' in line for line in recorded)
    assert any(line.startswith(b'{"i":"step"') and b'"decided"' in line for line in recorded)
    assert any(line.startswith(b'{"i":"follow"') for line in recorded)
    assert any(line.startswith(b'{"i":"timer"') for line in recorded)


def test_with_another_weight_differences_are_explained(day):
    found = replay(day, load(json.dumps(WEIGHTED)))
    assert not found.broken
    assert found.compared > 30
    assert 0 < found.different < found.compared
    assert len(found.differences) == min(found.different, 10)
    for different in found.differences:
        assert different.recorded == f"placed on {different.recorded_node}"
        assert different.now == f"placed on {different.node}"
        nodes = {different.recorded_node, different.node}
        assert different.recorded_scores.keys() == different.scores.keys() == nodes
        was, now = different.recorded_scores, different.scores
        assert was[different.recorded_node].total >= was[different.node].total
        assert now[different.recorded_node].total < now[different.node].total
        for node in nodes:
            assert now[node].parts["NodeResourcesFit"] == 20 * was[node].parts["NodeResourcesFit"]


@pytest.mark.parametrize("subject", ["preemption", "volumes", "devices", "profiles"])
def test_the_same_configuration_would_decide_nothing_otherwise(subject, tmp_path):
    path = tmp_path / "day.tape.gz"
    record(path, subject, 3, **SMALL)
    with open_tape(path) as reading:
        recorded = reading.header.loaded()
    found = replay(path, recorded)
    assert (found.broken, found.different) == (False, 0)
    assert found.compared > 30


def test_no_more_differences_are_kept_than_shown(day):
    found = replay(day, load(json.dumps(WEIGHTED)), shown=1)
    assert found.different > len(found.differences) == 1


def with_another_node(found):
    """The first binding of a cycle names another node."""
    at = next(i for i, line in enumerate(found) if b'"bind"' in line and line.startswith(b'{"i":"cycle"'))
    line = json.loads(found[at])
    line["o"][0][4] = "another"
    found[at] = json.dumps(line).encode() + b"\n"
    return found


def without_a_pod(found):
    """The first event that brings a pod without a node is gone."""
    at = next(i for i, line in enumerate(found) if b'"add","Pod"' in line and b'"nodeName"' not in line)
    return [*found[:at], *found[at + 1 :]]


def with_another_answer(found):
    """The first write that failed has landed."""
    at = next(i for i, line in enumerate(found) if b'"ConflictError"' in line)
    line = json.loads(found[at])
    line["a"][1] = None
    found[at] = json.dumps(line).encode() + b"\n"
    return found


def test_a_binding_that_was_changed_in_the_file_is_found(day, tmp_path):
    copy = tmp_path / "copy.tape.gz"
    copy.write_bytes(day.read_bytes())
    found = replay(changed(copy, with_another_node))
    (different,) = found.differences
    assert found.broken
    assert different.recorded == "bound to another"
    assert different.now == f"bound to {different.node}"
    assert different.scores["another"].message == "no such node"
    assert different.scores[different.node].total > 0


@pytest.mark.parametrize("change", [without_a_pod, with_another_answer])
def test_an_input_that_was_changed_in_the_file_makes_a_difference(change, day, tmp_path):
    copy = tmp_path / "copy.tape.gz"
    copy.write_bytes(day.read_bytes())
    found = replay(changed(copy, change))
    assert found.broken
    assert len(found.differences) == found.different == 1


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ({"i": "another"}, "no input 'another' of 0 arguments"),
        ({"i": "_note", "a": [1]}, "no input '_note' of 1 arguments"),
        ({"i": "event", "a": ["add", "Node"]}, "no input 'event' of 2 arguments"),
        ({"i": "event", "a": ["add", "Another", {}]}, "'Another'"),
        ({"i": "event", "a": ["add", "Node", {"metadata": 1}]}, "Node: "),
        ({"i": "step", "a": [[]]}, "Expected `int`"),
        ({"i": "answer", "a": [1, ["x"], None, None]}, "Expected `array`"),
        ({"i": "pop", "n": ["x"]}, "Expected `int`"),
        ({"i": "flush", "o": [[]]}, "no output"),
        ({"i": "flush", "o": [["decided"]]}, "no output"),
        ({"i": "flush", "o": [["decided", "a", "b", "", [1], ""]]}, "no output"),
        ({"i": "flush", "o": [["call", 1, "bind", "a"]]}, "no output"),
        ({"i": "pop", "n": [10**18]}, "n: found a time that no clock reads"),
        ({"i": "end"}, "Expected `str`, got `null`"),
        ([], "Expected `object`"),
    ],
)
def test_a_line_that_is_no_span_is_refused(line, says, day, tmp_path):
    copy = tmp_path / "copy.tape.gz"
    copy.write_bytes(day.read_bytes())
    with pytest.raises(InputError, match=re.escape(says)):
        replay(changed(copy, lambda found: [found[0], json.dumps(line).encode() + b"\n", *found[1:]]))


def test_a_profile_that_is_gone_is_a_difference(tmp_path):
    path = tmp_path / "day.tape.gz"
    record(path, "profiles", 2, **SMALL)
    found = replay(path, load(None))
    assert {different.now for different in found.differences} == {"no node"}
    messages = {score.message for each in found.differences for score in each.scores.values()}
    assert messages <= {"no profile other-0", "no profile other-1", "no profile other-2"}
    assert messages


def test_of_a_file_that_is_cut_off_the_whole_lines_are_replayed(day, tmp_path):
    cut = tmp_path / "cut.tape.gz"
    cut.write_bytes(day.read_bytes()[: day.stat().st_size // 2])
    found = replay(cut)
    assert found.differences == []
    assert found.attempts > 0
    assert found.warnings == [f"{cut} is cut off: what is there was replayed"]


def test_what_is_no_recording_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"is no recording: make one with `berth scheduler --record-to DIR`"):
        replay(written(tmp_path / "pods.json", {"kind": "Pod"}))


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        replay(tmp_path / "none")


@pytest.mark.parametrize(
    ("format", "remedy"),
    [
        pytest.param(FORMAT - 1, r"replay it with berth 9\.0, or record anew", id="earlier"),
        pytest.param(FORMAT + 1, r"replay it with berth 9\.0 or newer", id="later"),
    ],
)
def test_another_format_is_refused(format, remedy, day, tmp_path):  # noqa: A002 - the header's word
    def other(found):
        header = json.loads(found[0]) | {"format": format, "version": "9.0"}
        return [json.dumps(header).encode() + b"\n", *found[1:]]

    copy = tmp_path / "copy.tape.gz"
    copy.write_bytes(day.read_bytes())
    with pytest.raises(InputError, match=f"has format {format}.*{remedy}"):
        replay(changed(copy, other))


def test_extenders_are_refused(day):
    extended = profiles(extenders=[{"urlPrefix": "http://localhost:1", "filterVerb": "filter"}])
    with pytest.raises(PluginsError, match="HTTP extender"):
        replay(day, load(json.dumps({key: value for key, value in extended.items() if key != "profiles"})))


def test_the_command_says_that_all_is_the_same(day):
    result = run(day)
    assert result.exit_code == 0
    assert result.output.splitlines()[1].startswith("the same: ")


def test_the_command_shows_differences(day, tmp_path):
    result = run(day, "--config", written(tmp_path / "weighted.json", WEIGHTED))
    assert result.exit_code == 1
    assert " would be different" in result.output
    assert "      recorded: " in result.output
    assert "      now: " in result.output


def test_the_command_prints_json(day, tmp_path):
    result = run(day, "--config", written(tmp_path / "weighted.json", WEIGHTED), "-o", "json")
    assert json.loads(result.output)["differences"][0]["scores"]


def test_the_command_refuses_what_is_no_recording(tmp_path):
    result = run(written(tmp_path / "pods.json", {"kind": "Pod"}))
    assert result.exit_code == 2
    assert "is no recording" in result.output


def test_feature_gates_without_a_configuration_are_refused(day):
    result = run(day, "--feature-gates", "GenericWorkload=true")
    assert result.exit_code == 2
    assert "add --config" in result.output
