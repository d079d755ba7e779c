"""Conditions: of a deployment and its pods, whether all is well and, if not, why."""

import pytest

from berth.operator.conditions import Condition, Problem, conditions, written
from tests.unit.operator import kit

GPU = kit.plugin()
READY = {"status": "True", "reason": "Synced"}
REFUSED = {"status": "False", "reason": "NotConnected", "message": "policy: 'x' is none of fgd"}


def deployment(*, ready=1, updated=1, total=1, wanted=1, paused=False):
    status = {
        "observedGeneration": 1,
        "replicas": total,
        "updatedReplicas": updated,
        "availableReplicas": ready,
    }
    spec = {"replicas": wanted, **({"paused": True} if paused else {})}
    return {"metadata": {"name": "berth-main", "generation": 1}, "spec": spec, "status": status}


def container(name="scheduler", *, waiting="", ready=True, exit_code=None):
    state = {"waiting": {"reason": waiting, "message": "why"}} if waiting else {"running": {}}
    last = {"terminated": {"exitCode": exit_code}} if exit_code is not None else {}
    return {"name": name, "state": state, "lastState": last, "ready": ready and not waiting}


RUNS = container("plugin-gpu-share")


def pod(*containers, sidecars=(), unschedulable="", told=None):
    scheduled = {
        "type": "PodScheduled",
        "status": "False" if unschedulable else "True",
        "message": unschedulable,
    }
    status = {
        "conditions": [scheduled, *([{"type": "plugin.berth.dev/gpu-share", **told}] if told else ())],
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
    ],
)
def test_conditions(state, pods, problem, changed):
    """Each condition follows from what is there, with a reason that names the cause."""
    assert {**WELL, **changed} == reasons(conditions(state, pods, [], problem))


def test_cause_is_told():
    """What a container waits for, and how it ended, is in the message."""
    crashing = pod(container(waiting="CrashLoopBackOff", exit_code=2))
    (message,) = [
        one.message for one in conditions(deployment(), [crashing], [], None) if one.type == "Degraded"
    ]

    assert "pod p, container scheduler: why; it ended with exit status 2, see its log" in message


@pytest.mark.parametrize(
    ("pods", "ready", "words"),
    [
        pytest.param([], False, "gpu-share: no pod runs it yet", id="no pod"),
        pytest.param([pod()], False, "does not run it yet", id="an old pod"),
        pytest.param([pod(sidecars=[RUNS], told=READY)], True, "1 plugins are ready", id="ready"),
        pytest.param([pod(sidecars=[RUNS])], False, "no scheduler has told of it yet", id="runs"),
        pytest.param(
            [pod(sidecars=[RUNS], told=READY), pod(sidecars=[RUNS], told=REFUSED)],
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
    (found,) = [one for one in conditions(deployment(), pods, [GPU], None) if one.type == "PluginsReady"]

    assert (ready, True) == (found.holds, words in found.message)


def test_elsewhere():
    """A plugin that runs elsewhere is ready where a scheduler says so."""
    far = kit.plugin(address="h:1")
    found = [
        reasons(conditions(deployment(), pods, [far], None))["PluginsReady"]
        for pods in ([pod(told=READY)], [pod(told=REFUSED)])
    ]

    assert [(True, "AllReady"), (False, "PluginNotReady")] == found


def test_transition_time():
    """The time of the last transition changes with the status, not with the reason."""
    before = written([Condition("Available", True, "A", "")], [], 1, "then")
    same = written([Condition("Available", True, "B", "")], before, 2, "now")
    other = written([Condition("Available", False, "B", "")], before, 2, "now")

    assert ["then", "now"] == [one[0]["lastTransitionTime"] for one in (same, other)]
    assert 2 == same[0]["observedGeneration"]
