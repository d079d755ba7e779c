"""The table of pending pods on a real kube-apiserver, where there is one."""

from functools import partial

import pytest

from tests.e2e.real_table import real_table
from tests.explain.pending_pods import CASES
from tests.kube_scheduler import WITHOUT, kube_scheduler

pytestmark = pytest.mark.e2e

IMPOSSIBLE = {
    "an overhead that is too much by itself": "a pod's overhead is that of its RuntimeClass",
}
"""Cases that no real API server lets a user make, and why."""
WITHOUT_AN_EVENT = ("anti-affinity of a pod there", "no more volumes on the node")
"""Cases that no new node brings back by kube-scheduler's hints: the pod is tried in five minutes."""

TURNED_DOWN = [
    case
    for case in CASES
    if case.state == "Unschedulable"
    and case.by
    and case.id not in IMPOSSIBLE
    and not case.plugins()
    and "extenders" not in case.options
]


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """One control plane and one scheduler for all cases."""
    with real_table(tmp_path_factory.mktemp("table")) as found:
        yield found


@pytest.fixture
def built(table, case):
    """The cluster of a case."""
    if case.plugins() or "extenders" in case.options:
        pytest.skip("its plugins or extenders are objects of the test's own process")
    if case.id in IMPOSSIBLE:
        pytest.skip(IMPOSSIBLE[case.id])
    table.clear()
    case.build(table)
    return table


def kinds(found):
    return [proposal["kind"] for proposal in found["proposals"]]


def is_as_expected(case, found):
    nodes = found["nodes"] or {"refusals": [], "groups": []}
    first = nodes["refusals"] or [each for group in nodes["groups"][:1] for each in group["refusals"]]
    by = first[0]["plugin"] if first else ""
    return (
        case.state == found["state"]["kind"]
        and case.says in found["cause"]
        and case.by in ("", by)
        and list(case.helps) == kinds(found)
    )


def placed(found):
    """The node of the pod."""
    return found["state"]["node"]


def fits(found):
    """The node on which the pod fits best."""
    return next((node["name"] for node in found["nodes"]["scored"]), "")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_true_cause_stands_first(built, case):
    found = built.explained(lambda found: is_as_expected(case, found))

    assert is_as_expected(case, found), (found["state"]["kind"], found["cause"], kinds(found))


@pytest.fixture(scope="module")
def messages(tmp_path_factory):
    """The messages of the page, of the cases in which a pod is tried and turned down."""
    found = {}
    with real_table(tmp_path_factory.mktemp("ours")) as ours:
        for case in TURNED_DOWN:
            ours.clear()
            case.build(ours)
            page = ours.explained(partial(is_as_expected, case))
            found[case.id] = page["nodes"]["message"]
    return found


@pytest.fixture(scope="module")
def theirs(tmp_path_factory):
    """A control plane with kube-scheduler itself."""
    with real_table(tmp_path_factory.mktemp("theirs"), (kube_scheduler(),)) as found:
        yield found


@pytest.mark.skipif(kube_scheduler() is None, reason=WITHOUT)
@pytest.mark.parametrize("case", TURNED_DOWN, ids=lambda case: case.id)
def test_the_message_is_kube_schedulers(messages, theirs, case):
    """The condition that kube-scheduler writes begins with the page's message; preemption's words follow."""
    theirs.clear()
    case.build(theirs)

    said = theirs.condition(lambda message: message.startswith(messages[case.id]))

    assert said.startswith(messages[case.id])


@pytest.mark.parametrize("case", [case for case in CASES if case.helps], ids=lambda case: case.id)
def test_the_first_proposal_makes_the_pod_fit(built, case):
    """It is done through the API, and the pod is on a node then, or waits there for its volume."""
    found = built.explained(lambda found: is_as_expected(case, found))
    proposal = found["proposals"][0]
    built.apply(proposal)
    where = fits if case.id in WITHOUT_AN_EVENT else placed
    after = built.explained(lambda found: where(found) in proposal["nodes"])

    assert where(after) in proposal["nodes"], (proposal["sentence"], after["cause"])
