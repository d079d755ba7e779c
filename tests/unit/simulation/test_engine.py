"""A simulation ends, says what came of every pod, and says it again."""

import json

import pytest
from click.testing import CliRunner

from berth.commands.simulate import simulate as command
from berth.config.catalogue import ExtensionPoint
from berth.config.loading import load
from berth.simulation.errors import InputError, PluginsError
from berth.simulation.running.engine import simulate
from berth.simulation.running.options import SimulationOptions
from tests.chance.cluster import draw
from tests.unit.simulation.kit import cluster, node, outcome, pod, profiles, thing, written


@pytest.mark.parametrize("subject", ["everything", "devices", "volumes"])
def test_the_same_seed_gives_the_same_outcome(tmp_path, subject):
    """Everything that is reported is the same, times and messages included."""
    drawn = draw(subject, 3, nodes_count=8, pods_count=30)
    found = cluster(tmp_path, *drawn.objects, *drawn.pods)

    first = outcome(found, drawn.configuration, seed=7)

    assert first.placements
    assert first == outcome(found, drawn.configuration, seed=7)


def test_a_pod_that_fits_nowhere_is_pending(tmp_path):
    """The reason is kube-scheduler's message."""
    found = outcome(cluster(tmp_path, node("n0", cpu="1"), pod("small"), pod("large", cpu="8")))

    (pending,) = found.pending
    assert {"default/small": "n0"} == found.placed_on
    assert "default/large" == pending.pod
    assert "Unschedulable" == pending.reason
    assert pending.message.startswith("0/1 nodes are available: 1 Insufficient cpu.")


def test_more_important_pods_preempt(tmp_path):
    """Victims are reported with whom they had to go for, and budgets count down."""
    high = thing("PriorityClass", "high", "scheduling.k8s.io/v1", value=1000)
    running = [{**pod(f"low{i}", cpu="2", nodeName="n0"), "status": {"phase": "Running"}} for i in range(2)]

    found = outcome(
        cluster(tmp_path, high, node("n0"), *running, pod("p0", cpu="2", priorityClassName="high"))
    )

    assert {"default/p0": "n0"} == found.placed_on
    assert [("n0", "default/p0")] == [(each.node, each.by) for each in found.preemptions]


def test_gated_pods_say_so(tmp_path):
    """A pod with a scheduling gate is never tried."""
    (pending,) = outcome(cluster(tmp_path, node("n0"), pod("p0", schedulingGates=[{"name": "wait"}]))).pending

    assert ("SchedulingGated", 0) == (pending.reason, pending.attempts)


def test_pods_of_other_schedulers_say_so(tmp_path):
    """The profiles that there are stand in the message."""
    (pending,) = outcome(cluster(tmp_path, node("n0"), pod("p0", schedulerName="other"))).pending

    assert "NoProfile" == pending.reason
    assert "default-scheduler" in pending.message


def test_a_pod_ends_once(tmp_path, caplog):
    """Its end and its removal are one event, as of a watch of live pods."""
    runs = {"simulation.berth.dev/duration-seconds": "60"}

    result = outcome(cluster(tmp_path, node("n0"), pod("p0", annotations=runs)))

    assert ({"default/p0": "n0"}, 0) == (result.placed_on, result.utilization["cpu"].requested)
    assert [] == caplog.messages


def test_a_pod_that_ends_makes_room(tmp_path):
    """The next pod gets the node when the first one's duration is over, in virtual time."""
    runs = {"simulation.berth.dev/duration-seconds": "3600"}
    found = outcome(
        cluster(tmp_path, node("n0", cpu="1"), pod("a", annotations=runs), pod("b", annotations=runs))
    )

    first, second = sorted(found.placements, key=lambda each: each.at_seconds)
    assert 0.0 == first.wait_seconds
    assert 3600 <= second.wait_seconds < 3700
    assert second.wait_seconds == found.waits.longest


def test_pods_arrive_in_their_time(tmp_path):
    """A pod is created when its annotation says, and a node as well."""
    found = outcome(
        cluster(
            tmp_path,
            node("n0", annotations={"simulation.berth.dev/arrival-seconds": "100"}),
            pod("p0", annotations={"simulation.berth.dev/arrival-seconds": "50"}),
        )
    )

    (placement,) = found.placements
    assert 100 <= placement.at_seconds < 120
    assert placement.at_seconds - 50 == pytest.approx(placement.wait_seconds)


def test_gangs_are_placed_whole_or_not_at_all(tmp_path):
    """Pods of a group whose gang does not fit stay pending, all of them."""
    group = thing(
        "PodGroup", "g", "scheduling.k8s.io/v1alpha2", spec={"schedulingPolicy": {"gang": {"minCount": 3}}}
    )
    members = [pod(f"m{i}", cpu="2", schedulingGroup={"podGroupName": "g"}) for i in range(3)]
    arguments = ["-o", "json", "--feature-gates", "GenericWorkload=true,GangScheduling=true"]

    small = CliRunner().invoke(
        command, [str(written(tmp_path / "a.json", group, node("n0"), *members)), *arguments]
    )
    large = CliRunner().invoke(
        command, [str(written(tmp_path / "b.json", group, node("n0", cpu="8"), *members)), *arguments]
    )

    assert (0, 3) == (
        len(json.loads(small.stdout)["placements"]),
        len(json.loads(large.stdout)["placements"]),
    )


@pytest.mark.parametrize(
    ("documents", "code"),
    [
        pytest.param([node("n0"), pod("p0")], 0, id="all placed"),
        pytest.param([node("n0"), pod("p0", cpu="100")], 3, id="some pending"),
        pytest.param([node("n0"), node("n0")], 2, id="bad input"),
    ],
)
@pytest.mark.parametrize("output", ["text", "json", "yaml"])
def test_exit_codes(tmp_path, documents, code, output):
    """A pipeline can tell what came of it."""
    result = CliRunner().invoke(command, [str(written(tmp_path / "c.json", *documents)), "-o", output])

    assert code == result.exit_code, result.output
    assert ("Error: " in result.stderr) == (code == 2)


def test_a_wrong_configuration_is_bad_input(tmp_path):
    """The error is the one that the scheduler would give at its start."""
    config = tmp_path / "config.yaml"
    config.write_text(
        json.dumps(profiles({"schedulerName": ""}, percentageOfNodesToScore=200)), encoding="utf-8"
    )

    result = CliRunner().invoke(
        command, [str(written(tmp_path / "c.json", node("n0"))), "--config", str(config)]
    )

    assert 2 == result.exit_code
    assert "percentageOfNodesToScore" in result.stderr


def test_times_that_are_none_are_refused(tmp_path):
    """An annotation that is no number of seconds is named."""
    wrong = pod("p0", annotations={"simulation.berth.dev/arrival-seconds": "soon"})

    with pytest.raises(InputError, match=r"Pod default/p0.*arrival-seconds.*'soon'"):
        outcome(cluster(tmp_path, wrong))


def test_a_plugin_without_an_entry_is_refused(tmp_path):
    """A profile that names a plugin of no list is refused by name."""
    plugins = {"multiPoint": {"enabled": [{"name": "gpu-share"}]}}
    document = profiles({"schedulerName": "s", "plugins": plugins})
    points = {"gpu-share": frozenset({ExtensionPoint.SCORE})}
    loaded = load(json.dumps(document), out_of_tree=points)

    with pytest.raises(PluginsError, match="profile s: plugin gpu-share"):
        simulate(cluster(tmp_path, node("n0")), SimulationOptions(loaded))
