"""The conformance kit: what keeps the protocol passes."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from berth.cli import main
from berth.conformance import CHECKS, Options, Outcome, UnreachableError, chosen, verify
from berth.conformance.page import page
from tests.unit.conformance.broken import Fault, failed, verified

DOCS = Path(__file__).parents[3] / "docs"
NEED_MORE = {"trace/spans"}


async def test_reference():
    """A plugin that keeps the protocol passes every check that can be run on it."""
    results = await verified(Fault())

    assert {} == failed(results)
    assert {name for name, each in results.items() if each.outcome is Outcome.SKIP} == NEED_MORE


def test_page():
    """The page lists the checks that there are (`python -m berth.conformance.page > docs/conformance.md`)."""
    assert page() == (DOCS / "conformance.md").read_text()


def test_clauses():
    """Each check names a section of the protocol's page."""
    sections = {
        line[3:] for line in (DOCS / "protocol.md").read_text().splitlines() if line.startswith("## ")
    }

    assert {each.clause for each in CHECKS.values()} <= sections


def test_order():
    """A check runs after those that it builds upon."""
    order = list(CHECKS)

    assert [] == [
        (each.id, before)
        for each in CHECKS.values()
        for before in each.after
        if order.index(before) >= order.index(each.id)
    ]


async def test_nobody_there(tmp_path):
    """Where nobody listens there is nothing to check, which is not a failure of a check."""
    with pytest.raises(UnreachableError, match=r"p\.sock"):
        await verify(Options(f"unix:{tmp_path / 'p.sock'}"), chosen())


def run(*arguments):
    return CliRunner().invoke(main, ["plugin", "verify", *arguments])


def test_list():
    """`--list` names the checks that `--only` and `--skip` leave."""
    outcome = run("--list", "--only", "handshake/*", "--skip", "*/name")

    assert 0 == outcome.exit_code
    assert [line.split()[0] for line in outcome.output.splitlines()] == [
        name for name in CHECKS if name.startswith("handshake/") and name != "handshake/name"
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "ADDRESS"),
        (("unix:/nowhere/p.sock",), "/nowhere/p.sock"),
        (("--only", "nothing", "unix:/p.sock"), "no check matches"),
        (("--args", "{", "unix:/p.sock"), "--args"),
        (("--ca", "pyproject.toml", "host:1"), "--cert"),
    ],
)
def test_cannot_run(arguments, said):
    """What can't be run is told in a line, with exit code 2."""
    outcome = run(*arguments)

    assert 2 == outcome.exit_code
    assert said in outcome.output
