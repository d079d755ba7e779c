"""What keeps a pod's volumes from being mounted is reported by name, as soon as the kubelet has said it."""

import pytest

from berth.operator.mounts import mount_failure
from berth.operator.reporting.conditions import conditions
from tests.failures.reporting import reports
from tests.unit.operator import kit
from tests.unit.operator.at_work import SCHEDULERS, SYSTEM, operating
from tests.unit.scheduler_at_work import eventually

MISSING = 'MountVolume.SetUp failed for volume "tls-far" : secret "far-tls" not found'
OTHER = 'MountVolume.SetUp failed for volume "x" : configmap "y" not found'
COUNTED = "Unable to attach or mount volumes: unmounted volumes=[tls-far]: timed out"
CREATING = {"state": {"waiting": {"reason": "ContainerCreating"}}}
EVENTS = f"/api/v1/namespaces/{SYSTEM}/events"


def event(message, last="2026-11-22T10:00:00Z", uid="u1", name="p"):
    about = {"kind": "Pod", "namespace": SYSTEM, "name": name, "uid": uid}
    return {"involvedObject": about, "reason": "FailedMount", "message": message, "lastTimestamp": last}


def pod(*statuses, sidecars=()):
    status = {"containerStatuses": list(statuses), "initContainerStatuses": list(sidecars)}
    return {"metadata": {"name": "p", "uid": "u1"}, "status": status}


@pytest.mark.parametrize(
    ("found", "events", "expected"),
    [
        pytest.param(pod(), [event(MISSING)], MISSING, id="no status yet"),
        pytest.param(pod(CREATING), [event(MISSING)], MISSING, id="being created"),
        pytest.param(pod(CREATING), [], "", id="nothing said"),
        pytest.param(pod(CREATING), [event(MISSING, uid="u2")], "", id="said of an earlier pod of the name"),
        pytest.param(pod({"state": {"running": {}}}), [event(MISSING)], "", id="it runs"),
        pytest.param(
            pod(CREATING, sidecars=[{"state": {"running": {}}}]), [event(MISSING)], "", id="a sidecar runs"
        ),
        pytest.param(
            pod({**CREATING, "lastState": {"terminated": {}}}), [event(MISSING)], "", id="it starts again"
        ),
        pytest.param(
            pod(CREATING), [event(OTHER), event(MISSING, "2026-11-22T10:00:01Z")], MISSING, id="the last word"
        ),
        pytest.param(
            pod(CREATING), [event(MISSING), event(COUNTED, "2026-11-22T10:02:00Z")], MISSING, id="the cause"
        ),
    ],
)
def test_mount_failure(found, events, expected):
    """Until a container of the pod has started, what was said last of the cause is given."""
    assert expected == mount_failure(found, events)


@reports("mount-fails", condition="`Available`, `Degraded`: `FailedMount`")
def test_conditions():
    """It is the reason of Degraded and Available, long before the progress deadline."""
    deployment = {"metadata": {"generation": 1}, "spec": {"replicas": 1}, "status": {"observedGeneration": 1}}
    found = conditions(deployment, [pod(CREATING)], {}, None, {"p": MISSING})

    assert [("Available", False, "FailedMount"), ("Degraded", True, "FailedMount")] == [
        (one.type, one.holds, one.reason) for one in found if one.type in ("Available", "Degraded")
    ]
    assert f"pod p: {MISSING}" in found[0].message


async def test_the_cause_is_reported(tmp_path):
    """The kubelet's event becomes the Scheduler's condition, and goes with its cause."""
    async with operating(tmp_path) as work:
        await work.send("POST", SCHEDULERS, kit.scheduler())
        await eventually(lambda: work.objects("pods"))
        (name, found), *_ = work.objects("pods").items()
        body = event(MISSING, uid=found["metadata"]["uid"], name=name) | {"metadata": {"name": "e"}}
        await work.send("POST", EVENTS, body)
        await eventually(lambda: work.condition("Degraded") == ("True", "FailedMount"))
        await work.reach(lambda: work.condition("Available")[0] == "True")

        assert ("False", "AsExpected") == work.condition("Degraded")
