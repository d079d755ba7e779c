"""Sidecars take part in simulations: at their points, by their policy, in no time."""

import asyncio
import json
import shlex
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from berth.commands.simulate import simulate as command
from berth.objects.pods.pod import Pod
from berth.simulation.comparing.compare import Variant, compare
from berth.simulation.comparing.sweep import SweepInput, SweepRun, one, sweep
from berth.simulation.errors import PluginsError
from berth.simulation.placing.fill import fill
from berth.simulation.plugins import outside_plugins
from berth.simulation.plugins.plugin_settings import read_scheduler
from berth.simulation.running.engine import simulate
from berth.simulation.running.options import SimulationOptions
from tests.reaper import marks
from tests.sockets import listens
from tests.unit.scheduler_at_work import eventually
from tests.unit.simulation.kit import cluster, node, pod, profiles, thing, written

PROGRAM = Path(__file__).with_name("favourite_plugin.py")
NODES = [node(f"n{i}") for i in range(3)]
PATIENT = {"name": "favourite", "timeout": "60s"}
"""No call is late on a machine with other work."""
NAMED = {"multiPoint": {"enabled": [{"name": "favourite", "weight": 100}]}}


def entry(*version, **fields):
    """An entry that starts the plugin."""
    return {**PATIENT, "command": [sys.executable, str(PROGRAM), *version], **fields}


def plugin_list(*entries, **more):
    """A PluginList document."""
    return {"apiVersion": "berth.dev/v1alpha1", "kind": "PluginList", "plugins": list(entries), **more}


def scheduler(folder, *entries, name="scheduler.yaml", configuration=None, **more):
    """The options of a scheduler with that list of plugins behind its configuration."""
    configuration = configuration or profiles({"schedulerName": "default-scheduler", "plugins": NAMED})
    listed = plugin_list(*entries, **more)
    path = folder / name
    # A file that begins with a brace is JSON and has one document.
    path.write_text(f"# a scheduler\n{json.dumps(configuration)}\n---\n{json.dumps(listed)}\n")
    return path


def options(path, **more):
    """What `berth simulate --config` runs."""
    return SimulationOptions(*read_scheduler(str(path), ""), **more)


@pytest.fixture
def three(tmp_path):
    return cluster(tmp_path, *NODES, pod("p0"), pod("p1"))


@pytest.fixture(scope="module")
def placed(tmp_path_factory):
    """The outcome of two pods and a plugin that likes one of three nodes."""
    folder = tmp_path_factory.mktemp("placed")
    found = cluster(folder, *NODES, pod("p0"), pod("p1"))
    return simulate(found, options(scheduler(folder, entry("7", args={"best": "n1"}))))


def test_a_plugin_that_is_started_scores(placed):
    """Its opinion decides."""
    assert {"default/p0": "n1", "default/p1": "n1"} == placed.placed_on


def test_the_outcome_has_version_and_calls(placed):
    """An outcome says which plugins took part, and what became of their calls."""
    (use,) = placed.plugins

    assert ("favourite", "7", {}) == (use.name, use.version, use.failed)
    assert use.calls > 0


def test_no_virtual_time_passes_while_it_is_asked(placed):
    """Pods get their nodes at the moment at which they come."""
    assert 0.0 == placed.waits.longest


def test_the_same_seed_has_the_same_outcome(tmp_path):
    """Ties, ends and arrivals included, all but the folder of the socket."""
    times = [
        {
            "simulation.berth.dev/arrival-seconds": str(i // 2),
            "simulation.berth.dev/duration-seconds": str(3 + i),
        }
        for i in range(24)
    ]
    found = cluster(tmp_path, *NODES, *(pod(f"p{i:02}", annotations=each) for i, each in enumerate(times)))
    path = scheduler(tmp_path, entry(args={"shunned": "n2"}))

    first, second = (simulate(found, options(path, seed=4)) for _ in range(2))

    assert first == second
    assert 24 == len(first.placements)


def test_the_failure_policy_is_followed_and_failures_are_counted(tmp_path):
    """Where a failure fails, the pod waits; where it is passed over, it is placed; both say how often."""
    found = cluster(tmp_path, *NODES, pod("p0", labels={"app": "breaks"}), pod("p1"))
    failing = simulate(found, options(scheduler(tmp_path, entry()), max_seconds=5.0))
    passing = simulate(found, options(scheduler(tmp_path, entry(failurePolicy={"filter": "Ignore"}))))

    assert ["default/p0"] == [each.pod for each in failing.pending]
    assert sum(failing.plugins[0].failed.values()) > 0
    assert (2, []) == (len(passing.placements), passing.pending)
    assert passing.plugins[0].passed_over > 0


def test_what_a_plugin_says_by_itself_comes_before_time_passes(tmp_path):
    """A pod that waits at Permit goes on at the plugin's word, not when its time is over."""
    outcome = simulate(
        cluster(tmp_path, *NODES, pod("p0", labels={"hold": "yes"})),
        options(scheduler(tmp_path, entry())),
    )

    assert {"default/p0"} == outcome.placed_on.keys()
    assert outcome.waits.longest < 60.0


def test_a_promise_that_virtual_time_cuts_off_is_no_verdict(tmp_path):
    """A pod that a timer of the plugin would let go on is pending, and the outcome names the plugin."""
    too_large = pod("p1", containers=[{"name": "c", "resources": {"requests": {"cpu": "9000"}}}])
    lacks = pod("p2", labels={"needs": "a map"})
    there = written(tmp_path / "c.json", *NODES, pod("p0", labels={"hold": "for long"}), too_large, lacks)
    arguments = [str(there), "--config", str(scheduler(tmp_path, entry()))]

    outcome = json.loads(CliRunner().invoke(command, [*arguments, "-o", "json"]).stdout)
    text = CliRunner().invoke(command, arguments).stdout

    verdicts = {each["pod"]: each["noVerdict"] for each in outcome["pending"]}
    assert {"default/p0": "favourite", "default/p1": "", "default/p2": ""} == verdicts
    assert "no verdict on 1 pending pod: plugin favourite" in text


def test_a_plugin_that_never_ends_to_speak_holds_up_no_time(tmp_path, monkeypatch):
    """Virtual time passes after so many messages at one moment."""
    monkeypatch.setattr(outside_plugins, "MAX_MOVES", 3)
    found = cluster(tmp_path, *NODES, pod("p0", labels={"hold": "chatting"}))

    outcome = simulate(found, options(scheduler(tmp_path, entry())))

    assert (5.0, []) == (outcome.seconds, outcome.placements)


@pytest.mark.parametrize(("maps", "lacking"), [(["settings"], []), ([], ["maps"])])
def test_further_kinds_are_those_of_the_input(tmp_path, maps, lacking):
    """A plugin sees the objects that it watches, which are not left out; that there are none is said."""
    documents = [thing("Map", name, "example.com/v1") for name in maps]
    documents += [thing("Map", "old", "example.com/v1alpha1"), thing("Secret", "s")]
    found = cluster(tmp_path, *NODES, pod("p0", labels={"needs": "settings"}), *documents)

    outcome = simulate(found, options(scheduler(tmp_path, entry())))

    assert bool(maps) == bool(outcome.placements)
    assert lacking == outcome.plugins[0].not_in_input
    assert {"Map": 1, "Secret": 1} == outcome.left_out


def test_an_entry_may_join_profiles_itself(tmp_path, three):
    """A plugin takes part in the profiles of its entry, whatever they name."""
    bare = profiles({"schedulerName": "default-scheduler"})
    path = scheduler(
        tmp_path,
        entry(args={"shunned": "n0"}, profiles=["default-scheduler"]),
        configuration=bare,
    )

    assert "n0" not in simulate(three, options(path)).placed_on.values()


def test_fill_asks_plugins(tmp_path):
    """Copies go where the plugin lets them; what stops the next one has its reason."""
    found = cluster(tmp_path, *NODES)
    path = scheduler(tmp_path, entry(args={"shunned": "n2"}))
    copy = next(iter(cluster(tmp_path, pod("p", cpu="2")).of(Pod).values()))

    result = fill(found, [copy], options(path))

    assert {"n0": 2, "n1": 2} == result.nodes
    assert "1 node(s) were shunned" in result.stopped_by.message
    assert result.plugins[0].failed == {}


def test_versions_of_a_plugin_side_by_side(tmp_path, three):
    """Each row has its own plugin, and pods that differ are explained by its scores."""
    one, two = (
        scheduler(tmp_path, entry(version, args={"best": best}), name=f"{version}.yaml")
        for version, best in (("1", "n0"), ("2", "n2"))
    )

    result = compare({"one": Variant(three, options(one)), "two": Variant(three, options(two))})

    assert ["1", "2"] == [summary.plugins[0].version for summary in result.variants]
    assert {"two": 2} == result.differing
    first = result.differences[0].first
    assert first.scores["n0"].parts["favourite"] > first.scores["n2"].parts.get("favourite", 0)


async def _attached(folder, work):
    """What the work comes to beside a plugin process that is there already, at the socket that it gets."""
    socket = folder / "f.sock"
    environment = {"BERTH_PLUGIN_ADDRESS": f"unix:{socket}", "PATH": "", **marks()}
    process = await asyncio.create_subprocess_exec(sys.executable, str(PROGRAM), env=environment)
    try:
        await eventually(lambda: listens(socket))
        return await asyncio.to_thread(work, f"unix:{socket}")
    finally:
        process.kill()
        await process.wait()


def test_a_plugin_that_is_there_is_attached(tmp_path_factory, three, monkeypatch):
    """It is asked over its socket, and left running: the next simulation asks it again."""
    monkeypatch.setattr(outside_plugins, "READY_SECONDS", 60.0)
    folder = tmp_path_factory.mktemp("private")
    folder.chmod(0o700)

    def work(address):
        path = scheduler(folder, {**PATIENT, "address": address, "args": {"best": "n2"}})
        return [simulate(three, options(path)).placed_on for _ in range(2)]

    found = asyncio.run(_attached(folder, work))

    assert [{"default/p0": "n2", "default/p1": "n2"}] * 2 == found


@pytest.mark.parametrize(
    ("entries", "said"),
    [
        pytest.param(
            [entry(shadow=True)], r"plugins\[0\].shadow: plugin favourite: .*take the entry", id="shadow"
        ),
        pytest.param([entry(profiles=["other"])], r"plugins\[0\].profiles: .*no profile other", id="profile"),
        pytest.param(
            [entry() | {"command": ["/nowhere/plugin"]}],
            r"plugins\[0\].command: plugin favourite: /nowhere/plugin: No such file.*give a program",
            id="no program",
        ),
        pytest.param(
            [entry() | {"command": [sys.executable, "-c", "print('no licence')"]}],
            r"plugins\[0\].command: .*ended with code 0: no licence; correct the command",
            id="ends at once",
        ),
        pytest.param(
            [entry(args={"worst": "n0"})],
            r"plugins\[0\]: plugin favourite refuses: .*worst.*; correct the entry",
            id="arguments",
        ),
    ],
)
def test_what_cannot_be_simulated_is_refused(tmp_path, three, entries, said):
    """The error names the file, the field and what to do."""
    path = scheduler(tmp_path, *entries)

    with pytest.raises(PluginsError, match=f"scheduler.yaml: {said}"):
        simulate(three, options(path))


def test_runs_of_a_sweep_start_their_own_plugins(tmp_path):
    """A run of another command is another run, whatever else is the same."""
    subject = SweepInput((str(written(tmp_path / "c.json", *NODES, pod("p0"))),))
    path, other = scheduler(tmp_path, entry("1")), tmp_path / "plugins.yaml"
    other.write_text(json.dumps(plugin_list(entry("2"))))
    runs = [SweepRun(str(path), 0), SweepRun(f"{path},{other}", 0)]

    swept = sweep(
        subject, runs, tmp_path / "results", lambda subject, runs: [(r, one(subject, r)) for r in runs]
    )

    assert ["1", "2"] == [summary.plugins[0].version for summary in swept.runs]


def test_the_command_says_what_became_of_calls(tmp_path):
    """Text names the plugin, its version and command, and how many calls failed; --plugins takes a list."""
    path = scheduler(tmp_path, entry("3", args={"best": "n1"}))
    there = written(tmp_path / "c.json", *NODES, pod("p0"))

    alone = CliRunner().invoke(command, [str(there), "--config", str(path)])
    beside = CliRunner().invoke(command, ["compare", "default", str(path), "--input", str(there)])

    assert (0, 0) == (alone.exit_code, beside.exit_code), alone.output + beside.output
    assert f"favourite 3 ({sys.executable} {PROGRAM} 3): " in alone.stdout
    assert " calls, 0 failed" in alone.stdout
    assert f"{path}: favourite 3 (" in beside.stdout


@pytest.mark.parametrize("axes", [[], ["--sweep", "seed=0", "--jobs", "1"]])
def test_compare_reaches_plugins_by_options(tmp_path, axes):
    """One option is for every configuration that uses the plugin, over whatever list that has it."""
    path, listed = scheduler(tmp_path), tmp_path / "plugins.yaml"
    listed.write_text(json.dumps(plugin_list(entry("1"))))
    other = written(tmp_path / "old.json", plugin_list(entry("2")))
    there = written(tmp_path / "c.json", *NODES, pod("p0"))
    names = ["default", str(path), f"{path},{other}"]
    arguments = ["compare", *names, "--input", str(there), "--plugins", str(listed), "-o", "json", *axes]
    way = f"favourite={shlex.join([sys.executable, str(PROGRAM), '3'])}"

    by_lists = CliRunner().invoke(command, arguments)
    by_option = CliRunner().invoke(command, [*arguments, "--plugin", way])

    assert (0, 0) == (by_lists.exit_code, by_option.exit_code), by_lists.output + by_option.output
    assert [[], ["1"], ["2"]] == versions(by_lists)
    assert [[], ["3"], ["3"]] == versions(by_option)


def test_an_option_is_enough_for_a_plugin(tmp_path):
    """One that a profile enables needs no entry in a list; beside a list, it comes as well."""
    way = f"favourite={shlex.join([sys.executable, str(PROGRAM), '3'])}"
    there = written(tmp_path / "c.json", *NODES, pod("p0"))
    config = profiles({"schedulerName": "default-scheduler", "plugins": NAMED})
    listed = written(tmp_path / "plugins.yaml", plugin_list(entry("2") | {"name": "other"}))
    arguments = [str(there), "--config", str(written(tmp_path / "config.json", config)), "-o", "json"]

    for more in ([], ["--plugins", str(listed)]):
        result = CliRunner().invoke(command, [*arguments, "--plugin", way, *more])
        assert 0 == result.exit_code, result.output
        assert ["3"] == [plugin["version"] for plugin in json.loads(result.stdout)["plugins"]]


def test_an_option_for_what_no_profile_enables(tmp_path):
    """The error says what to write in the configuration."""
    there = written(tmp_path / "c.json", *NODES, pod("p0"))

    result = CliRunner().invoke(command, [str(there), "--plugin", "favourite=a"])

    assert 2 == result.exit_code
    assert "enable favourite in a profile, under plugins.multiPoint.enabled" in result.stderr


def test_what_fails_of_an_option_is_named_by_it(tmp_path):
    """An option that is all there is of a plugin is the place of its faults."""
    config = profiles({"schedulerName": "default-scheduler", "plugins": NAMED})
    path = written(tmp_path / "config.json", config)

    settings = read_scheduler(str(path), "", ways=["favourite=a"])

    assert "--plugin favourite" == settings.plugins.place(settings.plugins.sidecars[0], "args")


def versions(result):
    """Of the plugins of each row of a comparison or sweep."""
    found = json.loads(result.stdout)
    rows = found.get("variants") or found["runs"]
    return [[plugin["version"] for plugin in row["plugins"]] for row in rows]


def test_compare_refuses_a_plugin_that_no_configuration_uses(tmp_path):
    """The error names the option and the plugins that there are."""
    path = scheduler(tmp_path, entry("1"))
    arguments = ["compare", "default", str(path), "--input", "openb", "--plugin", "other=a"]

    result = CliRunner().invoke(command, arguments)

    assert 2 == result.exit_code
    assert (
        f"--plugin other: no profile of default, {path} uses a plugin of that name; there are favourite"
        in result.stderr
    )


def test_runs_side_by_side_share_no_plugin(tmp_path):
    """A plugin that is attached is shown one cluster at a time."""
    path = scheduler(tmp_path, {"name": "favourite", "address": "127.0.0.1:1"})

    result = CliRunner().invoke(command, ["compare", str(path), "--input", "openb", "--sweep", "seed=0..1"])

    assert 2 == result.exit_code
    assert (
        "plugins[0].address: plugin favourite: runs side by side would share it; add --jobs 1"
        in result.stderr
    )
