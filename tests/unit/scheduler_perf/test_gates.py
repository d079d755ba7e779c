"""Gates of a workload become flags that the programs take."""

import pytest

from tests.scheduler_perf.gates import api_server_flags, scheduler_flags, with_dependents


@pytest.mark.parametrize(
    ("gates", "expected"),
    [
        pytest.param({}, ["--feature-gates=OpportunisticBatching=false"], id="none"),
        pytest.param(
            {"SchedulerQueueingHints": False},
            ["--emulated-version=1.33", "--feature-gates=SchedulerQueueingHints=false"],
            id="hints are locked after 1.33",
        ),
        pytest.param(
            {"OpportunisticBatching": True}, ["--feature-gates=OpportunisticBatching=true"], id="batching"
        ),
    ],
)
def test_of_a_scheduler(gates, expected):
    """As upstream sets them in its one process."""
    assert expected == scheduler_flags(gates)


def test_of_an_api_server():
    """It serves what the gate is about, and hears nothing of the scheduler's own."""
    gates = {"GenericWorkload": True, "SchedulerQueueingHints": False}

    assert [
        "--feature-gates=GenericWorkload=true",
        "--runtime-config=scheduling.k8s.io/v1alpha2=true",
    ] == api_server_flags(gates)
    assert [] == api_server_flags({})


def test_what_needs_a_gate_is_off_with_it():
    """A program refuses a gate that is on while one that it needs is off."""
    found = with_dependents({"DRADeviceTaints": False, "DRADeviceTaintRules": True})

    assert {"DRADeviceTaints": False, "DRADeviceTaintRules": True} == found
    assert not with_dependents({"DRADeviceTaints": False})["DRADeviceTaintRules"]
