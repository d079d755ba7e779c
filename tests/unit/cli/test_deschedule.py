"""`berth deschedule` prints a plan, and names what is wrong in one line."""

import json

import pytest
from click.testing import CliRunner

from berth.commands.deschedule import deschedule
from tests.failures.reporting import reports
from tests.unit.descheduling.kit import node, policy, running
from tests.unit.simulation.kit import written


@pytest.fixture
def files(tmp_path):
    """A policy and a cluster with one pod to move and one that stays."""
    tainted = node("n0", taints=[{"key": "old", "value": "x", "effect": "NoSchedule"}])
    pods = running("a", "n0"), running("b", "n0", owner="")
    written(tmp_path / "cluster.json", tainted, node("n1"), *pods)
    written(tmp_path / "policy.yaml", policy("RemovePodsViolatingNodeTaints"))
    return tmp_path


def called(files, *arguments, policy_file="policy.yaml"):
    return CliRunner().invoke(deschedule, ["--policy", str(files / policy_file), *arguments])


def test_a_plan_as_text(files):
    """Who moves where, what it gains, and who stays and why."""
    done = called(files, str(files / "cluster.json"))

    assert (0, "") == (done.exit_code, done.stderr)
    assert done.stdout.splitlines() == [
        "2 nodes, 2 pods: 1 to be evicted, 1 that stands badly stays",
        "",
        "1. default/a: n0 -> n1",
        "   RemovePodsViolatingNodeTaints: it does not tolerate n0's taint old:NoSchedule",
        "   gain: untolerated taints 1 there, 0 on n1",
        "",
        "left alone:",
        "  default/b on n0 (RemovePodsViolatingNodeTaints): it does not tolerate n0's taint old:NoSchedule",
        "      it has no owner, which would make it anew",
    ]


def test_a_plan_as_json(files):
    """The whole plan, for programs."""
    found = json.loads(called(files, str(files / "cluster.json"), "-o", "json").stdout)

    assert ("DeschedulingPlan", ["default/a"]) == (found["kind"], [each["pod"] for each in found["moves"]])
    assert ("n0", "n1") == (found["moves"][0]["from"], found["moves"][0]["to"])


@reports(
    "deschedule-input", answer="`berth deschedule`: one line with file or flag, and what to do; exit status 2"
)
@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["{}/cluster.json", "--execute"], "--execute: INPUT is no cluster to evict from; leave INPUT out"),
        (["{}/cluster.json", "--context=x"], "--kubeconfig and --context have no meaning here"),
        (["{}/absent.json"], "absent.json: "),
        (["{}/cluster.json", "--config={}/absent"], "absent"),
        (["--kubeconfig={}/absent"], "absent"),
    ],
)
def test_bad_input(files, arguments, complaint):
    """Exit code 2 and one line."""
    done = called(files, *(each.format(files) for each in arguments))

    assert 2 == done.exit_code
    assert complaint in done.stderr
    assert 1 == done.stderr.count("\n")


@reports(
    "deschedule-input", answer="`No such file or directory`, with the file of the policy; exit status `2`"
)
def test_a_policy_that_there_is_not(files):
    """The file is named."""
    done = called(files, str(files / "cluster.json"), policy_file="absent.yaml")

    assert (2, True) == (done.exit_code, "absent.yaml: No such file or directory; give" in done.stderr)
