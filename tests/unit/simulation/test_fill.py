"""Fill counts what scheduling one by one would place."""

import json
import re
from itertools import islice

import pytest
from click.testing import CliRunner

from berth.commands.simulate import simulate as command
from berth.config.loading import load
from berth.simulation.errors import InputError
from berth.simulation.placing.fill import fill, in_turn
from berth.simulation.reading.inputs import read_pods
from berth.simulation.running.options import SimulationOptions
from tests.benchmarks.fill import differences
from tests.unit.simulation.kit import APART, APP, SPREAD, ZONE, cluster, gang, node, pod, written


def filled(tmp_path, nodes, *pods, **options):
    found = cluster(tmp_path, *nodes)
    return fill(
        found,
        read_pods(written(tmp_path / "pods.json", *pods), found),
        SimulationOptions(load(None)),
        **options,
    )


@pytest.mark.parametrize("seed", range(12))
def test_the_count_is_that_of_one_by_one(tmp_path, seed):
    """On a cluster by chance as many copies are placed, on the same nodes, for the same reason at the end."""
    assert [] == differences(seed, tmp_path)


@pytest.mark.parametrize(
    ("spec", "count"),
    [
        pytest.param({}, 12, id="by cpu"),
        pytest.param({"topologySpreadConstraints": [SPREAD]}, 9, id="spread over zones of unequal size"),
        pytest.param({"affinity": APART}, 3, id="one a node"),
    ],
)
def test_constraints_count(tmp_path, spec, count):
    """Spreading and affinity among the copies limit them."""
    nodes = [node("n0", labels={ZONE: "a"}), node("n1", labels={ZONE: "a"}), node("n2", labels={ZONE: "b"})]

    found = filled(tmp_path, nodes, pod("p", labels=APP, **spec))

    assert count == found.count == sum(found.nodes.values()) == sum(found.by_label[ZONE].values())
    assert found.stopped_by.message.startswith("0/3 nodes are available: ")


def test_mixtures_keep_their_weights(tmp_path):
    """Pods come in turn, as often as their weights say."""
    heavy = pod("heavy", annotations={"simulation.berth.dev/weight": "3"})

    found = filled(tmp_path, [node("n0", cpu="8")], heavy, pod("light"))

    assert {"default/heavy": 6, "default/light": 2} == found.pods


@pytest.mark.parametrize("verb", ["drain", "remove-node"])
def test_drained_pods_come_first(tmp_path, verb):
    """What a drained node's pods need on the others is not free for copies; what fits nowhere is listed."""
    big, small = pod("big", cpu="4", nodeName="n0"), pod("small", cpu="2", nodeName="n0")
    daemon = pod("daemon", nodeName="n0")
    daemon["metadata"]["ownerReferences"] = [
        {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d"}
    ]
    nodes = [node("n0", cpu="8"), node("n1"), node("n2", unschedulable=True)]
    folder = written(tmp_path / "cluster.json", *nodes, small, big, daemon, pod("held", nodeName="n1"))
    copy = written(tmp_path / "pod.json", pod("copy"))

    result = CliRunner().invoke(
        command, ["fill", str(copy), str(folder), "--what-if", f"{verb} n0", "-o", "json"]
    )

    found = json.loads(result.stdout)
    assert (1, {"n1": 1}) == (found["count"], found["nodes"])
    assert (2, ["default/big"]) == (found["evicted"], [each["pod"] for each in found["evictedPending"]])
    assert {"allocatable": 4000, "requested": 4000, "percent": 100.0} == found["utilization"]["cpu"]


def test_turns_are_even():
    """No pod waits for all of another's turns."""
    assert [0, 0, 1, 0, 0, 0, 1, 0] == list(islice(in_turn([3, 1]), 8))


def test_no_more_than_asked_for(tmp_path):
    """A limit that is reached is no reason against another copy."""
    found = filled(tmp_path, [node("n0")], pod("p"), most=2)

    assert (2, None) == (found.count, found.stopped_by)


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(pod("p", schedulingGates=[{"name": "g"}]), id="gated"),
        pytest.param(pod("p", schedulerName="other"), id="no profile"),
        pytest.param(pod("p", annotations={"simulation.berth.dev/weight": "-1"}), id="weight"),
        pytest.param(node("n1"), id="no pod"),
    ],
)
def test_pods_that_cannot_be_copied_are_refused(tmp_path, wrong):
    """The error names pod and field."""
    with pytest.raises(InputError, match="Pod"):
        filled(tmp_path, [node("n0")], wrong)


def test_command(tmp_path):
    """The command says how many fit and why no more; it exits with 3 where --most were wanted."""
    arguments = [str(written(tmp_path / "p.json", pod("p"))), str(written(tmp_path / "c.json", node("n0")))]

    result = CliRunner().invoke(command, ["fill", *arguments])
    whole = CliRunner().invoke(command, ["fill", *arguments, "-o", "json"])
    wanted = [
        CliRunner().invoke(command, ["fill", *arguments, f"--most={most}"]).exit_code for most in (4, 5)
    ]

    assert (0, [0, 3]) == (result.exit_code, wanted), result.output
    assert result.stdout.startswith("4 more fit\n")
    assert "1 Insufficient cpu" in result.stdout
    assert 4 == json.loads(whole.stdout)["count"]


def test_before_and_after_a_drain(tmp_path):
    """What fits without the change stands beside what fits with it, in the text and as JSON."""
    there = [node("n0"), node("n1"), pod("held", cpu="1", nodeName="n0")]
    files = [str(written(tmp_path / "p.json", pod("p"))), str(written(tmp_path / "c.json", *there))]
    drain = ["--what-if", "drain n0"]

    text = CliRunner().invoke(command, ["fill", *files, *drain]).stdout
    assert text.startswith("3 more fit\nbefore them 1 pod evicted by --what-if, 1 placed on another node\n")
    lines = [re.sub(r" {2,}", "  ", line) for line in text.splitlines()]
    assert (
        "kubectl drain: Pods that declare no controller (use --force to override): default/held" == lines[2]
    )
    assert [
        "variant  more fit  nodes in use",
        "without --what-if  7  2",
        "with --what-if  3  1",
        "the same in all: cpu % 100.00, memory % 0.00",
    ] == lines[4:8]
    assert "1 node in use" in lines
    assert "cpu  4  4  100.0" in lines
    found = json.loads(CliRunner().invoke(command, ["fill", *files, *drain, "-o", "json"]).stdout)
    assert (3, 7, 1) == (found["count"], found["before"]["count"], found["evicted"])
    assert (["n1"], ["n0", "n1"]) == (found["nodesInUse"], found["before"]["nodesInUse"])


def test_changes_in_the_midst_are_refused(tmp_path):
    """Copies are placed at one moment: a change that comes later would not be counted."""
    files = [str(written(tmp_path / "p.json", pod("p"))), str(written(tmp_path / "c.json", node("n0")))]

    result = CliRunner().invoke(command, ["fill", *files, "--what-if", "after 60 drain n0"])

    assert 2 == result.exit_code
    assert "'after 60 drain n0': this is about one moment: leave `after SECONDS` out" in result.stderr


def test_before_and_after_a_drain_of_all(tmp_path):
    """A simulation says what became of the evicted pods, and what it is without the change."""
    there = [node("n0"), node("n1", cpu="2"), *(pod(f"p{i}", nodeName="n0") for i in range(3))]
    file = str(written(tmp_path / "c.json", *there))

    lines = CliRunner().invoke(command, ["run", file, "--what-if", "drain n0"]).stdout.splitlines()
    assert "3 pods evicted by --what-if: 2 placed on another node, 1 pending" in lines
    table = [line.split() for line in lines[lines.index("") + 1 :][:3]]
    assert ["variant", "placed", "pending", "cpu", "%"] == table[0][:5]
    assert ["without", "--what-if", "0", "0", "50.00"] == table[1][:5]
    assert ["with", "--what-if", "2", "1", "100.00"] == table[2][:5]
    found = json.loads(
        CliRunner().invoke(command, ["run", file, "--what-if", "drain n0", "-o", "json"]).stdout
    )
    assert ["default/p0", "default/p1", "default/p2"] == found["evicted"]
    assert (0, 1) == (found["before"]["pending"], found["before"]["nodesInUse"])


@pytest.mark.parametrize(("free", "placed"), [("3", 3), ("2", 0)])
def test_an_evicted_group_is_placed_as_a_whole(tmp_path, free, placed):
    """Its pods find nodes together, or none of them does."""
    group, members = gang("g", 3)
    there = [
        node("n0"),
        node("n1", cpu=free),
        group,
        *({**each, "spec": {**each["spec"], "nodeName": "n0"}} for each in members),
    ]
    files = [str(written(tmp_path / "p.json", pod("p"))), str(written(tmp_path / "c.json", *there))]
    gates = ["--feature-gates", "GenericWorkload=true,GangScheduling=true"]

    text = CliRunner().invoke(command, ["fill", *files, *gates, "--what-if", "drain n0", "-o", "json"]).stdout

    found = json.loads(text)
    assert (3, 3 - placed) == (found["evicted"], len(found["evictedPending"]))
    assert int(free) - placed == found["count"]
