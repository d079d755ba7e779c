# ruff: noqa: ARG002 - plugins take the arguments of the points that they extend, whether they look or not

"""Reserve to PostBind."""

import pytest

from berth.framework.attempts.cycle_state import CycleState
from berth.framework.runtime import MAX_PERMIT_WAIT_SECONDS
from berth.framework.status import SKIP, SUCCESS, Code, Status, failed, unschedulable
from berth.testing.builders import make_pod
from tests.fakes import Binds, Permits, PostBinds, PreBinds, Reserves, framework, new_record

POD = make_pod()
BROKEN = [failed("boom"), Status(Code.ERROR, ("boom",)), Status(Code.SKIP, ("boom",)), ValueError("boom")]
BROKEN_IDS = ["error", "error without exception", "skip", "exception"]
ASKED = "one or more plugins asked to wait and no plugin rejected pod"


async def test_reserve_stops_at_the_first_rejection():
    calls = []
    profile = framework(
        reserve=[
            Reserves("A", calls=calls),
            Reserves("B", unschedulable("b"), calls),
            Reserves("C", calls=calls),
        ]
    )
    status = await profile.run_reserve(CycleState(), POD, "n1", new_record())

    assert unschedulable("b").from_plugin("B") == status
    assert ["A.reserve", "B.reserve"] == calls


async def test_unreserve_asks_everybody_in_reverse():
    calls = []
    profile = framework(reserve=[Reserves(name, calls=calls) for name in "ABC"])
    await profile.run_unreserve(CycleState(), POD, "n1", new_record())

    assert ["C.unreserve", "B.unreserve", "A.unreserve"] == calls


class Stubborn(Reserves):
    def unreserve(self, state, pod, node_name):
        raise ValueError("stuck")


async def test_after_an_unreserve_that_fails_the_others_run():
    calls = []
    profile = framework(reserve=[Reserves("A", calls=calls), Stubborn("B")])
    record = new_record()
    await profile.run_unreserve(CycleState(), POD, "n1", record)

    assert ["A.unreserve"] == calls
    assert 'running Unreserve plugin "B": stuck' == record.intervals[0].status.message


@pytest.mark.parametrize("answer", BROKEN, ids=BROKEN_IDS)
async def test_a_reserve_that_breaks_is_an_error(answer):
    profile = framework(reserve=[Reserves("A", answer)])
    status = await profile.run_reserve(CycleState(), POD, "n1", new_record())

    assert (Code.ERROR, 'running Reserve plugin "A": boom') == (status.code, status.message)


async def permitted(*plugins):
    return await framework(permit=list(plugins)).run_permit(CycleState(), POD, "n1", new_record())


async def test_permit_passes():
    assert SUCCESS == (await permitted(Permits("A"), Permits("B"))).status


async def test_permit_waits_for_everybody_who_asks_at_most_a_quarter_of_an_hour():
    found = await permitted(
        Permits("A", Status(Code.WAIT), 10), Permits("B"), Permits("C", Status(Code.WAIT), 10_000)
    )

    assert Status(Code.WAIT, (ASKED,), "C") == found.status
    assert {"A": 10, "C": MAX_PERMIT_WAIT_SECONDS} == found.timeouts_seconds


async def test_a_rejection_beats_an_earlier_wish_to_wait():
    last = Permits("C")
    found = await permitted(Permits("A", Status(Code.WAIT), 10), Permits("B", unschedulable("no")), last)

    assert unschedulable("no").from_plugin("B") == found.status
    assert {} == found.timeouts_seconds
    assert [] == last.calls


@pytest.mark.parametrize("answer", BROKEN, ids=BROKEN_IDS)
async def test_a_permit_that_breaks_is_an_error(answer):
    status = (await permitted(Permits("A", answer))).status

    assert (Code.ERROR, 'running Permit plugin "A": boom', "A") == (
        status.code,
        status.message,
        status.plugin,
    )


@pytest.mark.parametrize(
    ("flights", "overall"),
    [([], SKIP), ([SKIP, SKIP], SKIP), ([SKIP, SUCCESS], SUCCESS), ([SUCCESS, SKIP], SUCCESS)],
)
def test_pre_flight_says_whether_there_is_work(flights, overall):
    profile = framework(pre_bind=[PreBinds(f"P{i}", flight=f) for i, f in enumerate(flights)])

    assert overall == profile.run_pre_bind_pre_flight(CycleState(), POD, "n1")


@pytest.mark.parametrize("answer", [failed("boom"), ValueError("boom")])
def test_a_pre_flight_that_fails_is_an_error(answer):
    status = framework(pre_bind=[PreBinds("P", flight=answer)]).run_pre_bind_pre_flight(
        CycleState(), POD, "n1"
    )

    assert (Code.ERROR, 'running PreBindPreFlight "P": boom') == (status.code, status.message)


@pytest.mark.parametrize("code", [Code.UNSCHEDULABLE, Code.WAIT, Code.PENDING])
def test_a_pre_flight_may_not_say_anything_else(code):
    profile = framework(pre_bind=[PreBinds("P", flight=Status(code))])

    assert (
        f'PreBindPreFlight P returned "{code}", which is unsupported. '
        "It is supposed to return Success, Skip, or Error status"
    ) == profile.run_pre_bind_pre_flight(CycleState(), POD, "n1").message


@pytest.mark.parametrize(
    ("written", "groups"),
    [
        ("P1 P2 S3 P4", [["P1", "P2"], ["S3"], ["P4"]]),
        ("P1 s2 P3", [["P1"], ["P3"]]),
        ("P1 p2 P3", [["P1", "P3"]]),
        ("S1 S2", [["S1"], ["S2"]]),
        ("p1 s2", []),
        ("p1 P2 P3 s4 s5 P6 p7", [["P2", "P3"], ["P6"]]),
    ],
)
def test_pre_bind_groups(written, groups):
    """P runs beside others, S alone; lower case has nothing to do but still parts its neighbours if alone."""
    plugins = [
        PreBinds(name, flight=SKIP if name[0].islower() else SUCCESS, parallel=name[0] in "Pp")
        for name in written.split()
    ]
    profile, state = framework(pre_bind=plugins), CycleState()
    profile.run_pre_bind_pre_flight(state, POD, "n1")

    assert groups == [[plugin.name for plugin in group] for group in profile.pre_bind_groups(state)]


async def bound(*plugins):
    return await framework(bind=list(plugins)).run_bind(CycleState(), POD, "n1", new_record())


async def test_the_first_binder_that_does_not_pass_binds():
    last = Binds("C")

    assert SUCCESS == await bound(Binds("A", SKIP), Binds("B"), last)
    assert [] == last.calls


async def test_a_rejecting_binder_ends_the_phase():
    assert unschedulable("no").from_plugin("A") == await bound(Binds("A", unschedulable("no")), Binds("B"))


async def test_no_plugin_binds():
    assert SKIP == await bound(Binds("A", SKIP))


@pytest.mark.parametrize("answer", [failed("boom"), ValueError("boom"), Status(Code.WAIT, ("boom",))])
async def test_a_binder_that_breaks_is_an_error(answer):
    status = await bound(Binds("A", answer))

    assert (Code.ERROR, 'running Bind plugin "A": boom') == (status.code, status.message)


async def test_post_bind_tells_everybody_whatever_one_of_them_raises():
    calls = []
    profile = framework(post_bind=[PostBinds("A", ValueError("x"), calls), PostBinds("B", calls=calls)])
    await profile.run_post_bind(CycleState(), POD, "n1", new_record())

    assert ["A.post_bind", "B.post_bind"] == calls
