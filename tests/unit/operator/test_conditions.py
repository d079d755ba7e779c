"""Conditions: of a deployment and its pods, whether all is well and, if not, why."""

import pytest

from berth.operator.reporting.conditions import Problem, StatusCondition, conditions, plugin_states, written
from tests.failures.reporting import reports
from tests.unit.operator import kit

GPU = kit.plugin()
READY = {"status": "True", "reason": "Synced"}
REFUSED = {"status": "False", "reason": "NotConnected", "message": "policy: 'x' is none of fgd"}


def deployment(*, ready=1, updated=1, total=1, wanted=1, paused=False, reported=()):
    status = {
        "observedGeneration": 1,
        "replicas": total,
        "updatedReplicas": updated,
        "availableReplicas": ready,
        "conditions": list(reported),
    }
    spec = {"replicas": wanted, **({"paused": True} if paused else {})}
    return {"metadata": {"name": "berth-main", "generation": 1}, "spec": spec, "status": status}


FAILED = {
    "type": "ReplicaFailure",
    "status": "True",
    "reason": "FailedCreate",
    "message": "no PriorityClass with name nope was found",
}
LATE = {
    "type": "Progressing",
    "status": "False",
    "reason": "ProgressDeadlineExceeded",
    "message": "timed out",
}


def container(name="scheduler", *, waiting="", ready=True, exit_code=None, ended=""):
    state = {"waiting": {"reason": waiting, "message": "why"}} if waiting else {"running": {}}
    if ended:
        state = {"terminated": {"reason": ended, "exitCode": 137}}
    last = {"terminated": {"exitCode": exit_code}} if exit_code is not None else {}
    return {"name": name, "state": state, "lastState": last, "ready": ready and not waiting}


RUNS = container("plugin-gpu-share")


def pod(*containers, sidecars=(), unschedulable="", reported=None):
    scheduled = {
        "type": "PodScheduled",
        "status": "False" if unschedulable else "True",
        "message": unschedulable,
    }
    status = {
        "conditions": [
            scheduled,
            *([{"type": "plugin.berth.dev/gpu-share", **reported}] if reported else ()),
        ],
        "containerStatuses": list(containers or [container()]),
        "initContainerStatuses": list(sidecars),
    }
    return {"metadata": {"name": "p"}, "status": status}


def reasons(found):
    return {one.type: (one.holds, one.reason) for one in found}


WELL = {
    "Available": (True, "ReplicasAvailable"),
    "Progressing": (False, "RolledOut"),
    "Degraded": (False, "AsExpected"),
    "PluginsReady": (True, "NoPlugins"),
}


@reports(
    "pods-not-running",
    condition="`Available`, `Degraded`: the cause's own reason, such as `ReplicaFailure`, `OOMKilled`",
)
@pytest.mark.parametrize(
    ("state", "pods", "problem", "changed"),
    [
        pytest.param(deployment(), [pod()], None, {}, id="well"),
        pytest.param(
            None,
            [],
            Problem("InvalidConfiguration", "x"),
            {
                "Available": (False, "NotDeployed"),
                "Progressing": (False, "NotDeployed"),
                "Degraded": (True, "InvalidConfiguration"),
            },
            id="never rolled out",
        ),
        pytest.param(
            deployment(),
            [pod()],
            Problem("InvalidConfiguration", "x"),
            {"Degraded": (True, "InvalidConfiguration")},
            id="the old one goes on",
        ),
        pytest.param(
            deployment(updated=0, total=2),
            [pod()],
            None,
            {"Progressing": (True, "RollingOut")},
            id="on its way",
        ),
        pytest.param(
            deployment(updated=0, paused=True), [pod()], None, {"Progressing": (False, "Paused")}, id="paused"
        ),
        pytest.param(
            deployment(ready=0),
            [pod(container(waiting="ContainerCreating"))],
            None,
            {"Available": (False, "Starting"), "Progressing": (True, "RollingOut")},
            id="starting",
        ),
        pytest.param(
            deployment(ready=0),
            [pod(container(waiting="CrashLoopBackOff", exit_code=2))],
            None,
            {
                "Available": (False, "CrashLoopBackOff"),
                "Progressing": (True, "RollingOut"),
                "Degraded": (True, "CrashLoopBackOff"),
            },
            id="crashing",
        ),
        pytest.param(
            deployment(ready=0),
            [pod(unschedulable="0/2 nodes")],
            None,
            {
                "Available": (False, "PodUnschedulable"),
                "Progressing": (True, "RollingOut"),
                "Degraded": (True, "PodUnschedulable"),
            },
            id="nowhere to go",
        ),
        pytest.param(
            deployment(ready=0, updated=0, total=0, wanted=0),
            [],
            None,
            {"Available": (False, "ScaledToZero")},
            id="scaled to nothing",
        ),
        pytest.param(
            deployment(ready=0, updated=0, total=0, reported=[FAILED, LATE]),
            [],
            None,
            {
                "Available": (False, "ReplicaFailure"),
                "Progressing": (False, "ProgressDeadlineExceeded"),
                "Degraded": (True, "ReplicaFailure"),
            },
            id="pods cannot be made",
        ),
        pytest.param(
            deployment(ready=0, reported=[LATE]),
            [pod()],
            None,
            {
                "Available": (False, "ProgressDeadlineExceeded"),
                "Progressing": (False, "ProgressDeadlineExceeded"),
                "Degraded": (True, "ProgressDeadlineExceeded"),
            },
            id="never ready",
        ),
        pytest.param(
            deployment(ready=0),
            [pod(container(ended="OOMKilled"))],
            None,
            {
                "Available": (False, "OOMKilled"),
                "Progressing": (True, "RollingOut"),
                "Degraded": (True, "OOMKilled"),
            },
            id="ended",
        ),
    ],
)
def test_conditions(state, pods, problem, changed):
    """Each condition follows from what is there, with a reason that names the cause."""
    assert {**WELL, **changed} == reasons(conditions(state, pods, {}, problem))


def test_cause_is_reported():
    """What a container waits for, and how it ended, is in the message."""
    crashing = pod(container(waiting="CrashLoopBackOff", exit_code=2))
    (message,) = [
        one.message for one in conditions(deployment(), [crashing], {}, None) if one.type == "Degraded"
    ]

    assert "pod p, container scheduler: why; it ended with exit status 2, see its log" in message


@reports(
    "sidecar-not-running",
    condition="`PluginsReady` of the Scheduler, with plugin and cause: `ImagePullBackOff`, `NotConnected`",
)
@pytest.mark.parametrize(
    ("pods", "ready", "words"),
    [
        pytest.param([], False, "gpu-share: no pod runs it yet", id="no pod"),
        pytest.param([pod()], False, "does not run it yet", id="an old pod"),
        pytest.param([pod(sidecars=[RUNS], reported=READY)], True, "1 plugins are ready", id="ready"),
        pytest.param([pod(sidecars=[RUNS])], False, "no scheduler has reported it yet", id="runs"),
        pytest.param(
            [pod(sidecars=[RUNS], reported=READY), pod(sidecars=[RUNS], reported=REFUSED)],
            False,
            "gpu-share: NotConnected: policy: 'x' is none of fgd (pod p)",
            id="refuses its arguments",
        ),
        pytest.param(
            [pod(sidecars=[container("plugin-gpu-share", ready=False)])],
            False,
            "not ready in pod p",
            id="not ready",
        ),
        pytest.param(
            [pod(sidecars=[container("plugin-gpu-share", waiting="ImagePullBackOff")])],
            False,
            "gpu-share: ImagePullBackOff: why",
            id="no image",
        ),
    ],
)
def test_plugins(pods, ready, words):
    """Plugins are ready when sidecars run and schedulers say so; else the plugin and its cause are named."""
    states = plugin_states([GPU], pods)
    (found,) = [one for one in conditions(deployment(), pods, states, None) if one.type == "PluginsReady"]

    assert (ready, True) == (found.holds, words in found.message)


def test_cannot_be_created():
    """What the API server said of pods that it turned down is in the message."""
    found = conditions(deployment(ready=0, reported=[FAILED]), [], {}, None)

    assert [True, True] == [
        "FailedCreate: no PriorityClass with name nope was found" in one.message
        for one in found
        if one.reason == "ReplicaFailure"
    ]


def test_earlier_deployment():
    """What the Deployment says of its last spec is not said of the present one."""
    found = deployment(ready=0, total=0, reported=[FAILED, LATE])
    found["metadata"]["generation"] = 2

    assert (False, "AsExpected") == reasons(conditions(found, [], {}, None))["Degraded"]


def test_waits_for_scheduler():
    """The scheduler that has not looked at a pod is named: it may not be there."""
    waiting = {"metadata": {"name": "p"}, "spec": {"schedulerName": "absent"}, "status": {}}
    (found, *_) = conditions(deployment(ready=0), [waiting], {}, None)

    assert ("Starting", True) == (found.reason, "pod p waits for the scheduler absent" in found.message)


def test_a_plugin_at_an_address():
    """A plugin that runs by itself is ready where a scheduler says so."""
    far = kit.plugin(address="h:1")
    found = [
        reasons(conditions(deployment(), pods, plugin_states([far], pods), None))["PluginsReady"]
        for pods in ([pod(reported=READY)], [pod(reported=REFUSED)])
    ]

    assert [(True, "AllReady"), (False, "PluginNotReady")] == found


def test_transition_time():
    """The time of the last transition changes with the status, not with the reason."""
    before = written([StatusCondition("Available", True, "A", "")], [], 1, "then")
    same = written([StatusCondition("Available", True, "B", "")], before, 2, "now")
    other = written([StatusCondition("Available", False, "B", "")], before, 2, "now")

    assert ["then", "now"] == [one[0]["lastTransitionTime"] for one in (same, other)]
    assert 2 == same[0]["observedGeneration"]
