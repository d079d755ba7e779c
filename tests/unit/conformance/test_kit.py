"""The conformance kit: what keeps the protocol passes."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from berth.cli.main import main
from berth.conformance import CHECKS, CheckOutcome, PluginUnreachableError, VerifyOptions, chosen, verify
from berth.conformance.page import page
from berth_sdk import Action, EventInterest, Plugin, Reason
from tests.unit.conformance.broken import Fault, failed, verified

DOCS = Path(__file__).parents[3] / "docs"
TOO_SMALL = Reason("node(s) had fewer than 8 CPUs")
NEED_MORE = {"trace/spans"}


async def test_reference():
    """A plugin that keeps the protocol passes every check that can be run on it."""
    results = await verified(Fault())

    assert {} == failed(results)
    assert {name for name, each in results.items() if each.outcome is CheckOutcome.SKIP} == NEED_MORE


class BigNodes(Plugin):
    """Turns down small nodes for every pod alike."""

    name = "big-nodes"
    events = (EventInterest("Node", (Action.ADD, Action.UPDATE_NODE_ALLOCATABLE)),)
    pod_fields = ()
    node_local = True

    def filter(self, _pod, node):
        return None if node.allocatable("cpu") >= 8000 else TOO_SMALL


async def needs_no_pod(_server, name, request, proceed):
    """Answer as where every call brings a pod that can be read."""
    if name == "Filter":
        request.call.pod.object = b'{"metadata": {}, "spec": {}}'
    return await proceed(request)


async def test_a_plugin_that_reads_no_pod():
    """A plugin that says so need not ask for a pod's object, nor look into one."""
    results = await verified(Fault(needs_no_pod, plugin=BigNodes))

    assert {} == failed(results)


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


async def test_an_address_without_a_listener(tmp_path):
    """Without a listener there is nothing to check, which is not a failure of a check."""
    with pytest.raises(PluginUnreachableError, match=r"p\.sock"):
        await verify(VerifyOptions(f"unix:{tmp_path / 'p.sock'}"), chosen())


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
    """What can't be run is reported in a line, with exit code 2."""
    outcome = run(*arguments)

    assert 2 == outcome.exit_code
    assert said in outcome.output
