"""A few rows against real processes: the scheduler is not started again, and other users' pods are bound."""

import asyncio

import pytest

from berth.client.resources import PODS
from tests.e2e.api_servers import api_server_called
from tests.hostile import api_server_rows
from tests.hostile.arena import arena, pod
from tests.hostile.cases import CASES
from tests.hostile.playing import play
from tests.suite import PATIENCE_SECONDS

pytestmark = pytest.mark.e2e


def test_every_row_has_a_name_of_its_own_and_says_what_is_done():
    assert len({case.what for case in CASES.values()}) == len(CASES)
    assert all(row == case.row for row, case in CASES.items())


@pytest.fixture
def real_api_server():
    """Skips the test where there is none."""
    return api_server_called("real")


@pytest.mark.parametrize("row", ["C2", "C3b", "C5", "W3"])
async def test_the_others_go_on(row):
    waiting = {"settle_seconds": 0, "patience_seconds": 60}
    outcome = await play(CASES[row], nodes=30, seconds=6, each_second=2, **waiting)

    assert outcome.ends == 0, outcome
    assert outcome.submitted == outcome.bound > 0, outcome
    assert outcome.ended_in is not None, outcome


@pytest.mark.usefixtures("real_api_server")
@pytest.mark.parametrize("row", ["D1", "D2", "D3"])
async def test_what_only_a_real_api_server_takes(row):
    outcome = await play(CASES[row], nodes=10, seconds=6, settle_seconds=0, each_second=2, real=True)

    assert outcome.ends == 0, outcome


@pytest.mark.usefixtures("real_api_server")
async def test_a_lease_that_names_another_server_sends_nothing_there():
    """Nor the token by which replicas know each other: no pod has that address."""
    outcome = await play(
        api_server_rows.ROWS["H3"].case, nodes=3, seconds=15, settle_seconds=0, each_second=2, real=True
    )

    assert "0 connections to it" in outcome.note, outcome
    assert "{503: " in outcome.note, outcome


@pytest.mark.usefixtures("real_api_server")
@pytest.mark.parametrize("row", ["D1", "D2", "D3"])
async def test_a_standby_takes_over_beside_it(row, tmp_path):
    """What a scheduler has to list at its start: pods that were there and new ones are bound."""
    case = CASES[row]
    async with arena(tmp_path, 3, objects=case.objects(3), real=True) as made:
        await case.attack(made)
        assert "refused" not in made.notes
        await made.write(pod("before"))
        await made.take_over()
        await made.write(pod("after"))
        async with asyncio.timeout(PATIENCE_SECONDS):
            await made.placed({name for resource, _, name in made.written if resource == PODS})

        assert {"before", "after"} < {name for _, _, name in made.written}
        assert "set aside" not in made.standby_log.read_text()
