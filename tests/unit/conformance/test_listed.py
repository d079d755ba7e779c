"""Candidates that are listed: what the kit's checks of them find, and in which plugins they ask at all."""

import pytest

from berth.conformance import CHECKS, CheckOutcome
from berth_plugin_proto import common_pb2
from tests.unit.conformance.broken import Fault, failed, verified
from tests.unit.conformance.faults_of_calls import answered
from tests.unit.conformance.faults_of_listing import CALLS, TAKEN, WRONG_ENTRIES, asked_by_list, takes
from tests.unit.conformance.listing import lists, scored_parts
from tests.unit.conformance.reference import Slots

LISTED = [
    f"{subject}/{claim}"
    for subject in CALLS
    for claim in ("listed-candidates", "nothing-listed", "wrong-indices")
]


def those(*names):
    return [CHECKS[name] for name in names]


@pytest.mark.parametrize("subject", CALLS)
@pytest.mark.parametrize("entries", WRONG_ENTRIES)
async def test_wrong_entries(subject, entries):
    """Entries of other nodes than the listed ones, or more of them, are found."""
    name = f"{subject}/listed-candidates"
    results = await verified(asked_by_list(CALLS[subject], WRONG_ENTRIES[entries]), those(name))

    assert {name} == set(failed(results))


async def test_wrong_scores_beside_right_verdicts():
    """Both parts of FilterScore's answer are compared."""

    async def answer(_server, request, proceed):
        response = await proceed(request)
        for part in scored_parts(response):
            part.scores.all = 7
        return response

    name = "filter-score/listed-candidates"
    results = await verified(asked_by_list("FilterScore", answer), those(name))

    assert {name} == set(failed(results))


@pytest.mark.parametrize("subject", CALLS)
@pytest.mark.parametrize("words", TAKEN)
async def test_wrong_lists(subject, words):
    """A plugin that refuses all wrong lists but one fails over that one."""
    name = f"{subject}/wrong-indices"
    results = await verified(asked_by_list(CALLS[subject], takes(TAKEN[words])), those(name))

    assert {name} == set(failed(results))
    assert f"{words} refused with INVALID_ARGUMENT" in failed(results)[name]


async def test_not_announced():
    """A plugin that does not announce listed candidates is never asked so, and its checks say why."""
    asked = []

    async def call(_server, name, request, proceed):
        asked.append(lists(request))
        response = await proceed(request)
        if name == "Handshake":
            response.capabilities.listed_candidates = False
        return response

    results = await verified(Fault(call))

    assert {(CheckOutcome.SKIP, "not announced: listed_candidates")} == {
        (results[name].outcome, results[name].text) for name in LISTED
    }
    assert asked
    assert not any(asked)


class FeasibleOnly(Slots):
    """Wants to score exactly the nodes that pass, and breaks over others."""

    score_needs_feasible = True

    def score_nodes(self, pod, nodes):
        codes = self.filter_nodes(pod, nodes)
        assert not any(codes[row] for row, _ in nodes.asked())
        return super().score_nodes(pod, nodes)


async def test_scores_of_feasible_nodes():
    """A plugin that wants to score feasible nodes is asked about these by list, not by FilterScore."""
    results = await verified(Fault(plugin=FeasibleOnly), those(*LISTED))

    assert {} == failed(results)
    assert {name for name, each in results.items() if each.outcome is CheckOutcome.SKIP} == {
        name for name in LISTED if name.startswith("filter-score/")
    }


def skips(_server, _request, response):
    response.status.code = common_pb2.CODE_SKIP
    response.ClearField("verdicts")


async def test_a_plugin_without_entries():
    """Where no pod has verdicts, a wrong list need not be looked at: the check says so."""
    name = "filter/wrong-indices"
    results = await verified(answered({"Filter"}, skips), those("filter/listed-candidates", name))

    assert {} == failed(results)
    assert results[name].text.startswith("Filter answers SUCCESS for none of the pods")
