"""What queues use, borrow and wait for while a day passes, read of the plugin queues itself."""

import json
import sys

import pytest
from click.testing import CliRunner

from berth.commands.simulate import simulate as command
from berth.simulation.comparing.queue_plots import over_time, plot_queues
from berth.simulation.plugins.plugin_settings import read_scheduler
from berth.simulation.queue_shares import samples as module
from berth.simulation.queue_shares.queue_text import queue_lines
from berth.simulation.queue_shares.samples import QueueSample, QueueState, Samples, summarized
from berth.simulation.running.engine import simulate
from berth.simulation.running.options import SimulationOptions
from tests.unit.observer.kit import a_node, a_pod, bound, observer_file
from tests.unit.simulation.kit import cluster, node, pod, profiles, thing, written

HOUR = 3600.0
OWNER, GUEST = "Queue owner", "Queue guest"


def queue(name, **spec):
    return thing("Queue", name, "queues.berth.dev/v1alpha1", spec=spec)


def tree(owner, guest):
    """Two queues that divide the nodes, each with that many cores as its quota."""
    return [
        queue("company", capacity="Nodes"),
        queue("owner", parent="company", quota={"cpu": owner}, namespaces=["owner"]),
        queue("guest", parent="company", quota={"cpu": guest}, namespaces=["guest"]),
    ]


def coming(namespace, number, hours, lasts=24.0):
    annotations = {
        "simulation.berth.dev/arrival-seconds": f"{hours * HOUR:g}",
        "simulation.berth.dev/duration-seconds": f"{lasts * HOUR:g}",
    }
    found = pod(f"{namespace}{number}", annotations=annotations)
    found["metadata"]["namespace"] = namespace
    return found


DAY = [
    node("n0"),
    *(thing("Namespace", name) for name in ("owner", "guest")),
    *(coming("guest", i, 0) for i in range(4)),
    *(coming("owner", i, 6) for i in range(3)),
]
"""The guest has all four cores for six hours; then the owner wants three."""


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory):
    """A configuration whose list starts the plugin."""
    plugins = {
        "multiPoint": {"enabled": [{"name": "queues"}]},
        "queueSort": {"disabled": [{"name": "PrioritySort"}], "enabled": [{"name": "queues"}]},
        "postFilter": {"disabled": [{"name": "DefaultPreemption"}]},
    }
    started = [sys.executable, "-m", "berth_queues", "--kinds", "Queue"]
    points = ["queueSort", "filter", "postFilter", "reserve"]
    entry = {"name": "queues", "command": started, "extensionPoints": points, "timeout": "60s"}
    listed = {"apiVersion": "berth.dev/v1alpha1", "kind": "PluginList", "plugins": [entry]}
    configuration = profiles({"schedulerName": "default-scheduler", "plugins": plugins})
    path = tmp_path_factory.mktemp("queues") / "queues.yaml"
    path.write_text(f"# a scheduler\n{json.dumps(configuration)}\n---\n{json.dumps(listed)}\n")
    return str(path)


@pytest.fixture(scope="module")
def outcome(scheduler, tmp_path_factory):
    """What becomes of the day where the owner has three of four cores, with a sample every hour."""
    found = cluster(tmp_path_factory.mktemp("day"), *DAY, *tree("3", "1"))
    return simulate(found, SimulationOptions(*read_scheduler(scheduler, ""), queues_every=HOUR))


def at(outcome, hours):
    """The queues at that hour, as those that pods are of have it."""
    return next(each.queues for each in outcome.queues if each.at_seconds == hours * HOUR)


def test_what_is_lent_is_borrowed_and_taken_back(outcome):
    """The guest borrows three cores until the owner comes; then each has its quota."""
    before, after = at(outcome, 5), at(outcome, 7)

    assert (4000, {"cpu": 3000}) == (before[GUEST].used["cpu"], before[GUEST].borrowed)
    assert (1000, {}) == (after[GUEST].used["cpu"], after[GUEST].borrowed)
    assert (0, 3000) == (before[OWNER].used.get("cpu", 0), after[OWNER].used["cpu"])
    assert (3000, 1000) == (after[OWNER].fair_share["cpu"], after[GUEST].fair_share["cpu"])
    assert "Queue company" == after[GUEST].parent


def test_what_the_plugin_counts_is_what_happened(outcome):
    """Pods placed and evicted, and their waits, are those of the simulation's own record."""
    found = summarized(outcome.queues)
    for name, namespace in ((OWNER, "owner/"), (GUEST, "guest/")):
        placed = [each for each in outcome.placements if each.pod.startswith(namespace)]
        evicted = [each for each in outcome.preemptions if each.pod.startswith(namespace)]
        assert (len(placed), len(evicted)) == (found[name].placed, found[name].evicted)
        assert max(each.wait_seconds for each in placed) == pytest.approx(found[name].longest_wait_seconds)

    assert 3 == found[GUEST].evicted


def test_samples_do_not_prolong_a_simulation(outcome):
    """The last one is of the end, and none is later than the last pod's."""
    assert outcome.seconds == outcome.queues[-1].at_seconds
    assert all(0 == each.used.get("cpu", 0) for each in outcome.queues[-1].queues.values())


def test_the_text_has_queues(outcome):
    """A row for each queue and resource, and one for what became of its pods."""
    lines = list(queue_lines(outcome.queues))
    rows = [line.split()[2:] for line in lines if line.startswith(OWNER)]
    pods = [line.split()[2:] for line in lines if line.startswith(GUEST)][-1]

    # Three cores for 24 of 30 hours.
    assert ["cpu", "3", "2.4", "3", "2.4"] == rows[0][:5]
    assert ["4", "0", "3"] == pods[:3]


def recorded(path):
    """An observer's file of a day on which the owner's pods waited until the guest's had ended."""
    guests, owners = (
        [a_pod(f"{name}{i}", namespace=name) for i in range(count)]
        for name, count in (("guest", 4), ("owner", 3))
    )
    listed = [a_node("n0"), *(thing("Namespace", name) for name in ("owner", "guest"))]
    events = [("Add", each) for each in listed]
    events += [event for each in guests for event in (("Add", each), ("Update", bound(each, "n0")))]
    events += [("Add", each) for each in owners] + [("Update", listed[0])] * 5
    events += [("Delete", each) for each in guests]
    return observer_file(path, *events)


def test_two_trees_on_one_recorded_day(scheduler, tmp_path):
    """Compared by queue: with a larger quota the guest loses fewer pods, and the owner waits."""
    day = recorded(tmp_path / "day.cluster.gz")
    today, proposed = (
        str(written(tmp_path / name, *tree(*quotas)))
        for name, quotas in (("today.json", ("3", "1")), ("proposed.json", ("2", "2")))
    )
    arguments = ["compare", scheduler, "--input", str(day), "--objects", today, "--objects", proposed]
    arguments += ["--queues-every", "1", "--explain", "0", "-o", "json"]

    result = CliRunner().invoke(command, arguments)

    first, second = json.loads(result.stdout)["variants"]
    assert (today, proposed) == (first["name"], second["name"])
    assert (3, 2) == tuple(each["queues"][GUEST]["evicted"] for each in (first, second))
    assert 0 == first["queues"][OWNER]["longestWaitSeconds"] < second["queues"][OWNER]["longestWaitSeconds"]


def test_objects_of_the_scheduler_are_no_variant(tmp_path):
    """A node in such a file is refused, and it is said where it belongs."""
    there = str(written(tmp_path / "nodes.json", node("n1")))
    day = str(written(tmp_path / "day.json", node("n0"), pod("p")))

    result = CliRunner().invoke(command, ["compare", "default", "--input", day, "--objects", there])

    assert 2 == result.exit_code
    assert f"{there}: found a Node, which the scheduler itself reads; give it with --input" in result.stderr


def test_without_the_plugin_there_are_no_queues(tmp_path):
    """It is said what to add."""
    day = str(written(tmp_path / "day.json", node("n0"), pod("p")))

    result = CliRunner().invoke(command, ["run", day, "--queues-every", "60"])

    assert (2, True) == (result.exit_code, "add --plugin queues=berth-queues" in result.stderr)


def state(used, **fields):
    return {"a": QueueState(parent="all", quota={"cpu": 4}, used={"cpu": used}, **fields)}


def test_a_sample_holds_until_the_next():
    """Means are over time, not over samples."""
    found = summarized([QueueSample(0.0, state(2)), QueueSample(30.0, state(6)), QueueSample(40.0, state(0))])

    assert (3.0, 6) == (found["a"].resources["cpu"].used, found["a"].resources["cpu"].max_used)


def test_samples_are_bounded(monkeypatch):
    """Where there would be too many, every second one goes, and the next ones come half as often."""
    monkeypatch.setattr(module, "MAX_SAMPLES", 4)
    taken = Samples(10.0)
    while taken.due < 1000.0:
        taken.take(taken.due, state(1))

    assert len(taken.taken) <= 4
    assert [0.0, taken.every] == [each.at_seconds for each in taken.taken[:2]]


def test_plots(tmp_path, capsys):
    """A PNG file, and blocks in the terminal: the highest is the most that any queue used."""
    taken = [QueueSample(i * HOUR, state(used, waiting=used)) for i, used in enumerate((0, 4, 8, 1))]

    plot_queues(taken, str(tmp_path / "queues.png"))
    plot_queues(taken, "-")

    assert (tmp_path / "queues.png").read_bytes().startswith(b"\x89PNG")
    assert ["cpu used (dashed: fair share)", "pods waiting"] == [each.title for each in over_time(taken)]
    assert "\u2584\u2588\u2588" in capsys.readouterr().out
