"""Recordings of a plugin at work, put to the same plugin and to others."""

import asyncio
import json

import numpy as np
import pytest
from click.testing import CliRunner

from berth.cli.main import main
from berth.recordings.calls.frames import framed
from berth.replay import (
    AnswerChange,
    ReplayError,
    UnusableRecordingError,
    as_text,
    read_recording,
    replay_result,
)
from berth_plugin_proto import recording_pb2
from berth_sdk import Plugin
from tests.unit.out_of_tree.points.placing import Trial
from tests.unit.replay.kit import Teams, a_run, at_work, begun, replayed, serving, tried, written


class Changed(Teams):
    """Has another opinion of one pod on one node."""

    version = "2"

    def filter(self, pod, node):
        if (pod.name, node.name) == ("b", "n1"):
            return "not on a Friday"
        return super().filter(pod, node)


class Scores(Teams):
    """Scores one node otherwise."""

    def score(self, pod, node):
        return 50 if node.name == "blue" else super().score(pod, node)


class Reserves(Teams):
    """Does not take one pod."""

    def reserve(self, pod, _node):
        return "full" if pod.name == "a" else None


class Fails(Teams):
    """Breaks over one pod."""

    def filter(self, pod, node):
        if pod.name == "b":
            raise ValueError("broken")
        return super().filter(pod, node)


class OnlyFilters(Plugin):
    """Has no scores any more."""

    name = "teams"
    configure = Teams.configure
    filter = Teams.filter


def said(outcome):
    """Each difference in a line: call, pod, and each change."""
    return [
        (each.call, each.pod, *(f"{c.kind} {c.name}: {c.was} -> {c.now}" for c in each.changes))
        for each in outcome.differences
    ]


class Opens(Teams):
    """Passes nodes between two times."""

    uses_clock = True

    def __init__(self, opens, closes=0.0):
        self.opens, self.closes = opens, closes

    def filter(self, _pod, _node):
        now = self.clock.now()
        return None if self.opens <= now and not (self.closes and now >= self.closes) else "closed"


async def test_the_times_of_a_recording_are_kept(tmp_path):
    """A plugin that uses the clock is asked at the times at which it was asked, whatever the time is now."""
    plugin = Opens(0.0)
    async with at_work(plugin) as harness:
        recording = begun(harness)
        harness.add_nodes("n1")
        await tried(harness, "a")
        plugin.opens = plugin.clock.now() + 3600
        await tried(harness, "b")
        recording.end(1)
        path = await written(recording, tmp_path / "r")
    turn = plugin.opens - 3600

    same = await replayed(path, Opens(0.0, closes=turn))
    earlier = await replayed(path, Opens(0.0, closes=1.0))

    assert (2, []) == (same.compared, said(same))
    assert [] != said(earlier)


async def test_same_plugin(tmp_path):
    """The same plugin gives the same answers: every call is compared, none differs."""
    outcome = await replayed(await a_run(tmp_path / "r"), Teams())

    assert ([], [], 5) == (outcome.differences, outcome.warnings, outcome.compared)
    assert {"FilterScore": 3, "Reserve": 2} == {
        name: count for name, (count, _, _) in outcome.latencies().items()
    }


async def test_twice_to_one_process(tmp_path):
    """What one replay leaves in the plugin does not show in the next."""
    path, plugin = await a_run(tmp_path / "r"), Teams()

    assert [[], []] == [said(await replayed(path, plugin)) for _ in range(2)]


@pytest.mark.parametrize(
    ("plugin", "differences"),
    [
        (Changed(), [("FilterScore", "default/b", "node n1: passes -> UNSCHEDULABLE: not on a Friday")]),
        (Scores(), [("FilterScore", "default/c", "score blue: 4 -> 50")]),
        (Reserves(), [("Reserve", "default/a", "status : SUCCESS -> UNSCHEDULABLE: full")]),
    ],
    ids=["verdict", "score", "reserve"],
)
async def test_changed_plugin(tmp_path, plugin, differences):
    """Exactly the answers that changed are named, by pod and by node, whatever row the node is in."""
    assert differences == said(await replayed(await a_run(tmp_path / "r"), plugin))


class Racks(Teams):
    """A pod group may go to the even nodes or to all, where it has that many points."""

    def __init__(self, points=(1, 2), name="even"):
        self.points, self.even = points, name

    def generate_placements(self, _group, _pod, nodes):
        even = np.arange(len(nodes)) % 2 == 0
        return {self.even: even, "all": even | True}

    def score_placements(self, _group, _pod, _nodes, proposed):
        return self.points[: len(proposed)]


@pytest.mark.parametrize(
    ("plugin", "differences"),
    [
        (Racks(), []),
        (Racks(points=(1, 7)), [("ScorePlacements", "score on-1: 2 -> 7")]),
        (
            Racks(name="two"),
            [
                (
                    "GeneratePlacements",
                    "placements : even, all -> two, all",
                    "placement even: n0, n2 -> nothing",
                    "placement two: nothing -> n0, n2",
                )
            ],
        ),
    ],
    ids=["same", "score", "placement"],
)
async def test_placements_of_groups(tmp_path, plugin, differences):
    """Where a group may go, and how good each place is, is put to the plugin again and compared."""
    async with at_work(Racks()) as harness:
        recording, trial = begun(harness), Trial(harness)
        await trial.placements()
        await trial.scores("n0", "n1")
        recording.end(1)
        path = await written(recording, tmp_path / "r")
    outcome = await replayed(path, plugin)

    assert (2, {}) == (outcome.compared, outcome.left_out)
    assert differences == [(call, *found) for call, _, *found in said(outcome)]


async def test_many_changes(tmp_path, monkeypatch):
    """Every call that differs is named, but of what is kept of them there is a bound."""
    monkeypatch.setattr(replay_result, "MAX_CHANGES", 3)

    class Closed(Teams):
        def filter(self, _pod, _node):
            return "closed"

    outcome = await replayed(await a_run(tmp_path / "r"), Closed())

    assert ["default/a", "default/b", "default/c"] == [each.pod for each in outcome.differences]
    assert [(3, 1), (1, 3), (1, 3)] == [(len(each.changes), each.more) for each in outcome.differences]
    assert "  ... and 3 more" in as_text(outcome)


async def test_ignored(tmp_path):
    """What the user does not care about is no difference."""
    path = await a_run(tmp_path / "r")

    assert [] == said(await replayed(path, Scores(), ignore=frozenset({"scores"})))


async def test_a_call_that_fails(tmp_path):
    """A call that fails now is a difference, and the replay goes on after it."""
    outcome = await replayed(await a_run(tmp_path / "r"), Fails())

    ((call, pod, change),) = said(outcome)
    assert ("FilterScore", "default/b", 5) == (call, pod, outcome.compared)
    assert "broken" in change


async def test_a_call_that_failed(tmp_path):
    """A bug that is repaired is a difference, too."""
    outcome = await replayed(await a_run(tmp_path / "r", Fails()), Teams())

    ((_, pod, change),) = said(outcome)
    assert pod == "default/b"
    assert change.endswith("broken -> SUCCESS")


async def test_a_point_that_is_gone(tmp_path):
    """What the plugin does not announce any more is reported once, and its calls are left out."""
    outcome = await replayed(await a_run(tmp_path / "r"), OnlyFilters())

    assert ("Handshake", "") == said(outcome)[0][:2]
    assert (
        AnswerChange("extension point", "Reserve", "announced", "nothing") in outcome.differences[0].changes
    )
    assert 2 == outcome.left_out["Reserve is not announced any more"]


async def test_another_plugin(tmp_path):
    """A recording of one plugin is not put to another."""
    other = Teams()
    other.name = "other"

    with pytest.raises(ReplayError, match="the plugin calls itself 'other', the list calls it 'teams'"):
        await replayed(await a_run(tmp_path / "r"), other)


async def test_refused_arguments(tmp_path):
    """A plugin that refuses the arguments can't be compared."""

    class Strict(Teams):
        def configure(self, _arguments, _profile):
            raise ValueError("a: no such argument")

    with pytest.raises(
        ReplayError, match=r"refuses the recorded arguments of profile default-scheduler: .*a: no"
    ):
        await replayed(await a_run(tmp_path / "r"), Strict())


async def test_nothing_recorded(tmp_path):
    """A recording without calls is no proof of anything."""
    async with at_work(Teams()) as harness:
        recording = begun(harness)
        recording.end(1)
        path = await written(recording, tmp_path / "r")

    with pytest.raises(UnusableRecordingError, match="holds no call with an answer"):
        await replayed(path, Teams())


async def test_text(tmp_path):
    """The report says which pod and node, what was and what is, and how long answers took."""
    outcome = await replayed(await a_run(tmp_path / "r"), Changed())
    lines = as_text(outcome).splitlines()

    at = lines.index("FilterScore of default/b, attempt 1, generation 2")
    assert "  node n1: was passes, is UNSCHEDULABLE: not on a Friday" == lines[at + 1]
    assert lines[-1] == "5 calls compared: 4 same, 1 different"
    assert any(line.startswith("FilterScore") and line.split()[1] == "3" for line in lines[at + 2 :])


async def command(path, plugin, *options):
    """What `berth plugin replay` says with that plugin."""
    async with serving(plugin) as address:
        line = ["plugin", "replay", str(path), address, *options]
        return await asyncio.to_thread(CliRunner().invoke, main, line)


@pytest.mark.parametrize(("plugin", "code"), [(Teams(), 0), (Changed(), 1)], ids=["same", "changed"])
async def test_exit_code(tmp_path, plugin, code):
    """Exit code 0 where nothing differs, 1 where something does; JSON says all of it."""
    result = await command(await a_run(tmp_path / "r"), plugin, "-o", "json")
    report = json.loads(result.output)

    assert (code, code) == (result.exit_code, report["counts"]["different"])
    assert {"recorded", "now", "calls"} == report["milliseconds"]["FilterScore"].keys()


async def test_exit_code_of_what_is_none(tmp_path):
    """Exit code 2 and a sentence where there is nothing to compare."""
    path = tmp_path / "r"
    path.write_text("no recording")
    result = await command(path, Teams())

    assert 2 == result.exit_code
    assert "is no recording of a plugin: make one with `berth plugin record`" in result.output


async def test_an_address_without_a_listener(tmp_path):
    """A plugin that does not run is named, with what to do."""
    path = await a_run(tmp_path / "r")
    line = ["plugin", "replay", str(path), f"unix:{tmp_path}/p.sock"]
    result = await asyncio.to_thread(CliRunner().invoke, main, line)

    assert 2 == result.exit_code
    assert "start the plugin first" in result.output


async def test_a_step_that_only_the_stream_brings(tmp_path, monkeypatch):
    """A call whose state came on the stream after it was sent is replayed against that state."""
    monkeypatch.setattr("berth.out_of_tree.cluster_state.state_feed.MAX_CARRIED_BYTES", 0)
    path = await a_run(tmp_path / "r")

    assert ([], 5) == (said(outcome := await replayed(path, Teams())), outcome.compared)


async def test_a_step_that_is_a_transfer(tmp_path, monkeypatch):
    """A step too large for a delta is replayed as the transfer that it was."""
    monkeypatch.setattr("berth.out_of_tree.cluster_state.state_feed.MAX_DELTA_BYTES", 100)
    path = await a_run(tmp_path / "r")

    assert ([], 5) == (said(outcome := await replayed(path, Teams())), outcome.compared)


async def test_a_call_about_what_was(tmp_path):
    """A call about nodes that have moved since can't be repeated, and is no difference."""
    path = await a_run(tmp_path / "r")
    file = read_recording(path)
    first = next(entry for entry in file.entries if entry.HasField("call"))
    file.entries.remove(first)
    header = recording_pb2.RecordingEntry(header=file.header)
    path.write_bytes(b"".join(map(framed, [header, *file.entries, first])))
    outcome = await replayed(path, Teams())

    assert ([], 4) == (outcome.differences, outcome.compared)
    assert {"it was about nodes that had moved since": 1} == outcome.left_out


async def test_a_second_attempt(tmp_path):
    """Attempts of one pod are distinguished."""
    async with at_work(Teams()) as harness:
        recording = begun(harness)
        for attempt in (1, 2):
            await tried(harness, "a", attempt, labels={"team": "red"})
        recording.end(1)
        path = await written(recording, tmp_path / "r")

    class Later(Teams):
        def filter(self, pod, _node):
            return "too late" if self.seen(pod) else None

        def seen(self, pod):
            self.__dict__.setdefault("attempts", []).append(pod.name)
            return len(self.attempts) > 3

    outcome = await replayed(path, Later())
    assert [2] == [each.attempt for each in outcome.differences]
