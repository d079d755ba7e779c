"""`berth simulate consolidate` prints who moves where and for whom, and says what waits still."""

import json

import pytest
from click.testing import CliRunner

from berth.commands.simulate import simulate
from tests.unit.descheduling.kit import policy
from tests.unit.descheduling.strategies.test_consolidation import PACKING, gpus, on, waiting
from tests.unit.simulation.kit import written


@pytest.fixture
def files(tmp_path):
    """A cluster whose room is in pieces, and a scheduler that packs."""
    jobs = waiting("job", 8), waiting("larger", 9)
    written(
        tmp_path / "cluster.json", gpus("n0", 8), gpus("n1", 8), on("a", "n0", 1), on("b", "n1", 5), *jobs
    )
    (tmp_path / "packing.json").write_text(json.dumps(PACKING))
    return tmp_path


def called(files, *arguments):
    given = ["consolidate", str(files / "cluster.json"), f"--config={files}/packing.json", *arguments]
    return CliRunner().invoke(simulate, given)


def test_a_table(files):
    """A row for each move, and what has no room still."""
    done = called(files)

    assert (3, "") == (done.exit_code, done.stderr)
    assert done.stdout.splitlines() == [
        "2 nodes, 3 pods: 1 pod to be moved, 1 waiting pod placed by it",
        "",
        "move       from  to  so that",
        "default/a  n0    n1  default/job fits on n0",
        "",
        "still waiting:",
        (
            "  pod default/larger: it would not fit if up to 20 pods of no higher priority "
            "moved to other nodes"
        ),
    ]


def test_the_whole_plan(files):
    """-o json is the plan that `berth deschedule` carries out."""
    found = json.loads(called(files, "-o", "json").stdout)

    assert "DeschedulingPlan" == found["kind"]
    assert [("default/a", "n0", "n1", {"default/job": "n0"})] == [
        (each["pod"], each["from"], each["to"], each["makesRoomFor"]) for each in found["moves"]
    ]


def test_a_policy_of_ones_own(files):
    """--policy bounds it; one without the strategy is refused."""
    written(files / "bounded.json", policy(("Consolidation", {}), maxNoOfPodsToEvictPerNamespace=0))
    written(files / "other.json", policy("RemoveDuplicates"))

    bounded = called(files, f"--policy={files}/bounded.json")
    other = called(files, f"--policy={files}/other.json")

    assert (3, True) == (bounded.exit_code, "0 pods to be moved" in bounded.stdout)
    assert 2 == other.exit_code
    assert "no profile enables Consolidation; add it to plugins.balance.enabled" in other.stderr


def test_everything_fits(files):
    """Exit code 0 where nothing waits afterwards."""
    written(
        files / "cluster.json",
        gpus("n0", 8),
        gpus("n1", 8),
        on("a", "n0", 1),
        on("b", "n1", 5),
        waiting("job", 8),
    )

    assert 0 == called(files).exit_code
