"""Plugins with timers play a day in virtual time: gangs give up and come back, and use decays."""

import json
import math
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from berth.commands.simulate import simulate as command
from berth.simulation.plugins import outside_plugins
from berth.simulation.plugins.plugin_settings import read_scheduler
from berth.simulation.plugins.real_time_loop import RealTimeLoop
from berth.simulation.running.engine import simulate
from berth.simulation.running.options import SimulationOptions
from tests.go_toolchain import ROOT, build
from tests.unit.simulation.kit import cluster, node, pod, profiles, written

PROGRAM = Path(__file__).with_name("timed_plugin.py")
HOUR = 3600.0
MINUTES = 300.0


def scheduler(folder, name, *arguments, args=None, command=None):
    """The options of a scheduler with that plugin, started by its command."""
    started = command or [sys.executable, str(PROGRAM), name, *arguments]
    entry = {"name": name.lower(), "timeout": "60s", "command": started, "args": args or {}}
    enabled = {"multiPoint": {"enabled": [{"name": name.lower()}]}}
    configuration = profiles({"schedulerName": "default-scheduler", "plugins": enabled})
    listed = {"apiVersion": "berth.dev/v1alpha1", "kind": "PluginList", "plugins": [entry]}
    path = folder / f"{name}.yaml"
    path.write_text(f"# a scheduler\n{json.dumps(configuration)}\n---\n{json.dumps(listed)}\n")
    return path


def played(folder, documents, name, **args):
    """What becomes of them with that plugin."""
    options = SimulationOptions(*read_scheduler(str(scheduler(folder, name, args=args)), ""))
    return simulate(cluster(folder, node("n0", cpu="64"), *documents), options)


def arriving(name, seconds):
    return pod(name, annotations={"simulation.berth.dev/arrival-seconds": f"{seconds:g}"})


def at(outcome):
    """When each pod was bound, in virtual seconds."""
    return {each.pod.partition("/")[2]: each.at_seconds for each in outcome.placements}


def half_used(count, half_life, limit=2.0):
    """When pods that all are there from the beginning are placed, by the rule worked out in this process."""
    now, used, times = 0.0, 0.0, []
    for _ in range(count):
        if used + 1 > limit:
            now += half_life * math.log2(used / (limit - 1))
            used = limit - 1
        used += 1
        times.append(round(now, 3))
    return times


@pytest.mark.parametrize("half_life", [6 * HOUR, HOUR / 10], ids=["a day", "the same day in minutes"])
def test_use_decays_in_virtual_time(tmp_path, half_life):
    """A pod is placed at the moment at which its namespace may have another one, as worked out by hand."""
    outcome = played(tmp_path, [pod(f"p{i}") for i in range(6)], "Quota", half_life_seconds=half_life)

    assert half_used(6, half_life) == pytest.approx(sorted(at(outcome).values()), abs=0.002)
    assert outcome.seconds >= 4 * half_life
    assert (True, []) == (outcome.plugins[0].clock, outcome.pending)


def test_a_gang_gives_up_and_comes_back(tmp_path, monkeypatch):
    """Its pods wait at Permit for ten minutes, back off for half an hour, and go on together in the end.

    The plugin is said the time where something happens, and not at each of the seconds between.
    """
    runs = []
    run = RealTimeLoop.run
    monkeypatch.setattr(RealTimeLoop, "run", lambda self, work: (runs.append(work), run(self, work))[1])
    late = arriving("c", 3 * HOUR)
    outcome = played(tmp_path, [pod("a"), pod("b"), late], "Gang")

    assert len(runs) < 1_000
    assert {"a", "b", "c"} == at(outcome).keys()
    # Permit at 0, 2,400, 4,800, 7,200 and 9,600 s; the third comes while they back off, until 12,000 s.
    assert [12_000.0] * 3 == pytest.approx(list(at(outcome).values()), abs=0.002)


def test_the_same_seed_has_the_same_outcome(tmp_path):
    """What plugins say by their timers comes at a moment of virtual time, whatever the machine's load is."""
    documents = [pod("a"), pod("b"), arriving("c", HOUR)]

    first, second = (played(tmp_path, documents, "Gang") for _ in range(2))

    assert first == second


def test_a_gang_that_never_is_complete_has_a_verdict(tmp_path, monkeypatch):
    """It is over once its timers have brought nothing so often; that is said, and it is no verdict then."""
    monkeypatch.setattr(outside_plugins, "MAX_WAKES", 6)
    outcome = played(tmp_path, [pod("a"), pod("b")], "Gang")

    assert ["gang", "gang"] == [each.no_verdict for each in outcome.pending]


def test_a_timer_that_is_too_far_away_is_not_waited_for(tmp_path):
    """A plugin that lets a pod go on in a year has no verdict on it, and the simulation ends."""
    outcome = played(tmp_path, [pod(f"p{i}") for i in range(3)], "Quota", half_life_seconds=365 * 24 * HOUR)

    assert (2, 0.0) == (len(outcome.placements), outcome.seconds)
    assert ["quota"] == [each.no_verdict for each in outcome.pending]


def test_the_end_of_a_day_is_a_verdict(tmp_path):
    """Pods that wait for their turn when the time is over that was asked for are pending."""
    path = scheduler(tmp_path, "Quota")
    options = SimulationOptions(*read_scheduler(str(path), ""), max_seconds=24 * HOUR)
    documents = [node("n0", cpu="64"), *(pod(f"p{i}") for i in range(9))]

    outcome = simulate(cluster(tmp_path, *documents), options)

    assert 24 * HOUR == outcome.seconds
    assert (6, [""] * 3) == (len(outcome.placements), [each.no_verdict for each in outcome.pending])


@pytest.fixture(scope="module")
def coscheduling(tmp_path_factory):
    """The plugin's program."""
    folder = ROOT / "out-of-tree-plugins/coscheduling"
    return build(".", tmp_path_factory.mktemp("coscheduling") / "coscheduling", folder=folder)


def test_a_plugin_in_go_backs_off_in_virtual_time(tmp_path, coscheduling):
    """A gang for which there is no room backs off, and is placed within ten seconds of there being room."""
    group = {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "default"},
        "spec": {"minMember": 3},
    }
    labels = {"scheduling.x-k8s.io/pod-group": "g"}
    ends = {"simulation.berth.dev/duration-seconds": f"{MINUTES:g}"}
    in_the_way = pod("before", cpu="2", annotations=ends, nodeName="n0")
    documents = [node("n0"), group, in_the_way, *(pod(name, labels=labels) for name in "abc")]
    path = scheduler(tmp_path, "coscheduling", command=[str(coscheduling)])
    options = SimulationOptions(*read_scheduler(str(path), ""))

    outcome = simulate(cluster(tmp_path, *documents), options)

    assert {"a", "b", "c"} == at(outcome).keys()
    # The back-off is ten seconds, and so is the queue's own for a pod that was tried in vain so often.
    assert all(MINUTES <= bound <= MINUTES + 20 for bound in at(outcome).values())


def test_a_plugin_without_the_clock_has_no_verdict(tmp_path):
    """The text says what its author can do about it."""
    there = written(tmp_path / "c.json", node("n0"), pod("a"), pod("b"))
    path = scheduler(tmp_path, "Gang", "wall")

    text = CliRunner().invoke(command, [str(there), "--config", str(path)]).stdout

    assert "no verdict on 2 pending pods: plugin gang" in text
    assert "read the time from the SDK's clock, and say so (docs/protocol.md, Time)" in text
