"""A few rows against real processes: the scheduler is not started again, and other users' pods are bound."""

import os

import pytest

from tests.hostile.cases import CASES
from tests.hostile.playing import play

pytestmark = pytest.mark.e2e


def test_every_row_has_a_name_of_its_own_and_says_what_is_done():
    assert len({case.what for case in CASES.values()}) == len(CASES)
    assert all(row == case.row for row, case in CASES.items())


@pytest.mark.parametrize("row", ["C2", "C3b", "C5", "W3"])
async def test_the_others_go_on(row):
    outcome = await play(CASES[row], nodes=30, seconds=6, settle_seconds=0, each_second=2)

    assert outcome.ends == 0, outcome
    assert outcome.bound >= outcome.submitted - 4, outcome
    assert outcome.ended_in is not None, outcome


@pytest.mark.skipif("KUBEBUILDER_ASSETS" not in os.environ, reason="needs kube-apiserver and etcd")
@pytest.mark.parametrize("row", ["D1", "D2"])
async def test_what_only_a_real_api_server_takes(row):
    outcome = await play(CASES[row], nodes=10, seconds=6, settle_seconds=0, each_second=2, real=True)

    assert outcome.ends == 0, outcome
