"""Configurations are compared pod by pod, and where they part it is said why."""

import json

import pytest
from click.testing import CliRunner
from msgspec.structs import replace

from berth.commands.simulate import simulate as command
from berth.config.loading import load
from berth.simulation.comparing.compare import Variant, compare, weighed
from berth.simulation.errors import InputError
from berth.simulation.running.options import SimulationOptions
from berth.simulation.text import comparison_lines, summary_lines
from tests.unit.simulation.kit import cluster, node, outcome, pod, profiles, written

PACKING = profiles(
    {
        "schedulerName": "default-scheduler",
        "pluginConfig": [
            {
                "name": "NodeResourcesFit",
                "args": {
                    "scoringStrategy": {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 1}]}
                },
            }
        ],
    }
)


@pytest.fixture
def found(tmp_path):
    return cluster(
        tmp_path, node("large", cpu="16"), node("small", cpu="4"), pod("p0", cpu="2"), pod("p1", cpu="2")
    )


def compared(found):
    options = {
        "spreading": SimulationOptions(load(None)),
        "packing": SimulationOptions(load(json.dumps(PACKING))),
    }
    return compare({name: Variant(found, each) for name, each in options.items()})


def test_differences_are_explained_by_scores(found):
    """Each variant's choice scored highest for it, of both nodes."""
    result = compared(found)

    assert {"packing": 2} == result.differing
    for each in result.differences:
        assert ("large", "small") == (each.first.node, each.other.node)
        for choice in (each.first, each.other):
            best = max(choice.scores, key=lambda name: choice.scores[name].total)
            assert choice.node == best
            assert choice.scores[best].total == sum(choice.scores[best].parts.values())


def test_a_variant_does_not_differ_from_itself(found):
    """The same configuration under another name puts every pod on the same node."""
    result = compare(dict.fromkeys("ab", Variant(found, SimulationOptions(load(None)))))

    assert ({"b": 0}, []) == (result.differing, result.differences)


def test_variants_are_summed_up(found):
    """A row has what its outcome has."""
    spreading, packing = compared(found).variants

    assert (2, 0, 0) == (spreading.placed, spreading.pending, packing.preempted)
    assert 20.0 == spreading.utilization["cpu"].percent


def test_nodes_in_use(tmp_path, found):
    """It is said which nodes one variant uses and another leaves empty; a DaemonSet's pod uses none."""
    result = compared(found)

    assert [1, 1] == [each.nodes_in_use for each in result.variants]
    assert ({"packing": ["large"]}, {"packing": ["small"]}) == (result.emptied, result.newly_used)

    daemon = pod("d", nodeName="n0")
    daemon["metadata"]["ownerReferences"] = [
        {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "d"}
    ]
    static = pod("s", nodeName="n1", annotations={"kubernetes.io/config.mirror": "1"})
    there = cluster(tmp_path, node("n0"), node("n1"), node("n2"), daemon, static, pod("p", nodeName="n2"))
    assert ["n2"] == outcome(there).nodes_in_use


def test_what_differs_is_shown(found):
    """The table has the columns that differ, one line has the others; of equal variants there is one line."""
    lines = list(comparison_lines(compared(found)))
    assert lines[0].startswith("the same in all: placed 2, pending 0, preempted 0, nodes in use 1, ")
    assert "  nodes that spreading uses and packing does not, 1: large" in lines
    assert "  nodes that packing uses and spreading does not, 1: small" in lines

    rows = [replace(each, nodes_in_use=number) for number, each in enumerate(compared(found).variants)]
    assert [["variant", "nodes", "in", "use"], ["spreading", "0"], ["packing", "1"]] == [
        line.split() for line in list(summary_lines(rows))[:3]
    ]
    equal = list(
        comparison_lines(compare(dict.fromkeys("ab", Variant(found, SimulationOptions(load(None))))))
    )
    assert ["", "b puts every pod where a does"] == equal[1:]


def test_weights_of_plugins(found):
    """A weight that outdoes the others decides."""
    heavy = weighed(load(json.dumps(PACKING)), "NodeResourcesFit", 0)

    assert {"default/p0": "large", "default/p1": "large"} == outcome_of(found, heavy)
    with pytest.raises(InputError, match="Nothing: no profile"):
        weighed(load(None), "Nothing", 1)


def outcome_of(found, loaded):
    from berth.simulation.running.engine import simulate  # noqa: PLC0415 - a name that the command has as well

    return simulate(found, SimulationOptions(loaded)).placed_on


def test_fragmentation_is_what_no_pod_can_use(tmp_path):
    """Free cpu on a node where the only kind of pod does not fit is lost."""
    there = cluster(tmp_path, node("n0", cpu="3"), node("n1", cpu="1"), pod("p0", cpu="2"))

    assert {"cpu": 100.0} == outcome(there).fragmentation


@pytest.mark.parametrize("output", ["text", "json"])
def test_command(tmp_path, output):
    """The command compares files, and the defaults."""
    packing = tmp_path / "packing.yaml"
    packing.write_text(json.dumps(PACKING), encoding="utf-8")
    there = written(tmp_path / "c.json", node("large", cpu="16"), node("small"), pod("p0", cpu="2"))

    result = CliRunner().invoke(
        command, ["compare", "default", str(packing), "--input", str(there), "-o", output]
    )

    assert 0 == result.exit_code, result.output
    assert "large" in result.stdout
    assert "NodeResourcesFit" in result.stdout
