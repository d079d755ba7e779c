"""The first two lines of an explanation, where a state alone would hide the cause."""

import pytest

from berth.explain.causes import cause_and_remedy
from berth.explain.schema import PodState, StateKind, Wait
from berth.objects.pods.pod_spec import SchedulingGroup
from berth.testing.builders import make_pod
from tests.failures.reporting import reports

WAITS = Wait(
    plugin="GangScheduling", message="waiting for minCount pods from a gang to be scheduled", until="10:00"
)


@reports(
    "gang-waits",
    answer="`berth explain pod`: the remedy is `berth explain podgroup NAME`, which says what its pods lack",
)
@pytest.mark.parametrize("kind", [StateKind.NOT_QUEUED, StateKind.WAITING_AT_PERMIT])
def test_a_pod_that_waits_for_its_gang(kind):
    """It is pointed to its group, where the pod is named that the others wait for."""
    pod = make_pod(scheduling_group=SchedulingGroup("training"))
    cause, remedy = cause_and_remedy(pod, PodState(kind=kind, node="n1", waits_for=[WAITS]), None, (), "")

    assert "waiting for minCount" in cause
    assert remedy.startswith("See what the group lacks: berth explain podgroup training. ")


def test_a_pod_that_waits_alone():
    """One without a group is not."""
    state = PodState(kind=StateKind.WAITING_AT_PERMIT, node="n1", waits_for=[WAITS])

    assert "podgroup" not in cause_and_remedy(make_pod(), state, None, (), "")[1]


def test_a_pod_whose_claim_is_missing():
    """The cause names the claim, and the remedy says where claims and classes are seen."""
    wait = Wait(plugin="DynamicResources", message='could not find ResourceClaim "default/gone"')
    state = PodState(kind=StateKind.NOT_QUEUED, waits_for=[wait])

    cause, remedy = cause_and_remedy(make_pod(), state, None, (), "")

    assert '"default/gone"' in cause
    assert "kubectl get resourceclaims,deviceclasses," in remedy
