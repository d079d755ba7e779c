"""The PostFilter phase."""

import pytest

from berth.evaluation.points.post_filtering import run_post_filters
from berth.framework.attempts.diagnosis import Diagnosis
from berth.framework.interface import CLEAR_NOMINATION, KEEP_NOMINATION, NominatingInfo, NominatingMode
from berth.framework.status import SUCCESS, Code, Status, failed, unresolvable, unschedulable
from berth.testing.builders import make_node
from berth.testing.clusters import table
from tests.fakes import PostFilters, attempt_at

N1 = NominatingInfo(NominatingMode.OVERRIDE, "n1")
N2 = NominatingInfo(NominatingMode.OVERRIDE, "n2")


async def outcome(*plugins, skip=False):
    attempt = attempt_at(table([make_node("n1")]))
    attempt.state.skip_post_filter = skip
    result = await run_post_filters(plugins, attempt, Diagnosis(["n1"]))
    return result.status, result.nominating_info


async def test_without_plugins_the_nomination_is_cleared():
    assert (unschedulable(), CLEAR_NOMINATION) == await outcome()


async def test_skipped_by_the_cycle_state():
    status, nominating = await outcome(PostFilters("A", SUCCESS, N1), skip=True)

    assert ("All PostFilter plugins are skipped", None) == (status.message, nominating)


@pytest.mark.parametrize("status", [SUCCESS, unresolvable("no way")], ids=["success", "unresolvable"])
async def test_success_and_unresolvable_end_the_phase_with_their_nomination(status):
    last = PostFilters("B", SUCCESS, N2)
    found = await outcome(PostFilters("A", status, N1), last)

    assert (status.from_plugin("A"), N1) == found
    assert [] == last.calls


@pytest.mark.parametrize("answer", [failed("boom"), ValueError("boom")], ids=["error", "exception"])
async def test_a_failure_ends_the_phase_without_a_nomination(answer):
    last = PostFilters("B", SUCCESS, N2)
    status, nominating = await outcome(
        PostFilters("Z", unschedulable("z"), N1), PostFilters("A", answer), last
    )

    assert (Code.ERROR, "boom", None) == (status.code, status.message, nominating)
    assert [] == last.calls


async def test_rejections_add_up():
    """All reasons, the first plugin's name, and the last nomination that says something."""
    status, nominating = await outcome(
        PostFilters("A", unschedulable("a1", "a2"), N1),
        PostFilters("B", Status(Code.PENDING, ("b",)), N2),
        PostFilters("C", unschedulable("c"), KEEP_NOMINATION),
        PostFilters("D", unschedulable()),
    )

    assert Status(Code.UNSCHEDULABLE, ("a1", "a2", "b", "c"), "A") == status
    assert N2 == nominating


async def test_no_plugin_nominates():
    assert (unschedulable("a").from_plugin("A"), None) == await outcome(PostFilters("A", unschedulable("a")))
