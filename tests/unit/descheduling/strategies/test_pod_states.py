"""Pods are made anew for what became of them: restarts, age, failure."""

import pytest

from tests.unit.descheduling.kit import moves, node, planned, policy, running, why


def restarted(name, on, count, reason="", init=0):
    state = {"waiting": {"reason": reason}} if reason else {"running": {}}
    return running(
        name,
        on,
        status={
            "containerStatuses": [{"name": "c", "restartCount": count, "state": state}],
            "initContainerStatuses": [{"name": "i", "restartCount": init}],
        },
    )


def restarts(**args):
    return policy(("RemovePodsHavingTooManyRestarts", {"podRestartThreshold": 5, **args}))


def lifetime(**args):
    return policy(("PodLifeTime", args))


def failed(name, on="n0", age=4000, reason="Evicted", code=1):
    ended = {"terminated": {"exitCode": code, "reason": "Error"}}
    status = {"phase": "Failed", "reason": reason, "containerStatuses": [{"restartCount": 0, "state": ended}]}
    return running(name, on, age=age, status=status)


def failures(**args):
    return policy(("RemoveFailedPods", args))


def test_pods_restarted_too_often(tmp_path):
    """They go to another node; the threshold itself is too often."""
    documents = node("n0"), node("n1"), restarted("a", "n0", 5), restarted("b", "n0", 4)

    found = planned(tmp_path, restarts(), *documents)

    assert [("a", "n0", "n1")] == moves(found)
    assert "5 restarts on n0" == found.moves[0].found


def test_the_same_node_is_no_fresh_start(tmp_path):
    """Where the scheduler would choose the same node the pod stays."""
    crowd = running("c", "n1", cpu="3")

    found = planned(tmp_path, restarts(), node("n0"), node("n1"), restarted("a", "n0", 9), crowd)

    assert ["the scheduler would place it on n0 again"] == why(found, "a")


def test_restarts_of_init_containers_and_states(tmp_path):
    """Init containers count where they are included, states where they are given."""
    nodes = node("n0"), node("n1"), running("c", "n0")
    initialized, crashing = restarted("a", "n0", 3, init=2), restarted("a", "n0", 9, "CrashLoopBackOff")
    states = restarts(states=["CrashLoopBackOff"])

    assert [] == moves(planned(tmp_path, restarts(), *nodes, initialized))
    assert moves(planned(tmp_path, restarts(includingInitContainers=True), *nodes, initialized))
    assert moves(planned(tmp_path, states, *nodes, crashing))
    assert [] == moves(
        planned(tmp_path, restarts(states=["CrashLoopBackOff"]), *nodes, restarted("a", "n0", 9))
    )


def test_snapshots_have_no_restarts(tmp_path):
    """Where no pod has statuses of containers the plan says so."""
    (note,) = planned(tmp_path, restarts(), node("n0"), running("a", "n0")).notes

    assert note.startswith(
        "no pod has statuses of containers, which RemovePodsHavingTooManyRestarts may read"
    )


def test_old_pods(tmp_path):
    """What is older than allowed is made anew, the oldest first, on the same node if that is the best."""
    documents = (
        node("n0"),
        running("a", "n0", age=101),
        running("b", "n0", age=100),
        running("c", "n0", age=300),
    )

    found = planned(tmp_path, lifetime(maxPodLifeTimeSeconds=100), *documents)

    assert [("c", "n0", "n0"), ("a", "n0", "n0")] == moves(found)


def test_times_without_a_zone(tmp_path):
    """A file's time that names no zone is in UTC."""
    old = running("a", "n0")
    old["metadata"]["creationTimestamp"] = "2026-11-23T07:58:00"

    assert [("a", "n0", "n0")] == moves(
        planned(tmp_path, lifetime(maxPodLifeTimeSeconds=100), node("n0"), old)
    )


def test_old_pods_that_fit_nowhere(tmp_path):
    """An old pod without a place for the new one stays."""
    pods = running("a", "n0", age=300, nodeSelector={"disk": "ssd"})

    found = planned(tmp_path, lifetime(maxPodLifeTimeSeconds=100), node("n0"), pods)

    assert [] == found.moves
    assert why(found, "a")[0].startswith("no node would take it")


@pytest.mark.parametrize(
    ("args", "applies"),
    [
        pytest.param({"states": ["Running"]}, True, id="phase"),
        pytest.param({"states": ["Pending"]}, False, id="another phase"),
        pytest.param({"states": ["ImagePullBackOff"]}, True, id="a container waits"),
        pytest.param({"exitCodes": [137]}, True, id="exit code"),
        pytest.param({"exitCodes": [1]}, False, id="another exit code"),
        pytest.param({"conditions": [{"type": "Ready", "status": "False"}]}, True, id="condition"),
        pytest.param({"conditions": [{"type": "Ready", "status": "True"}]}, False, id="another status"),
        pytest.param(
            {"conditions": [{"type": "Ready", "minTimeSinceLastTransitionSeconds": 60}]}, True, id="for long"
        ),
        pytest.param(
            {"conditions": [{"type": "Ready", "minTimeSinceLastTransitionSeconds": 9000}]},
            False,
            id="not yet",
        ),
        pytest.param({"states": ["Running"], "ownerKinds": {"include": ["Job"]}}, False, id="no such owner"),
        pytest.param(
            {"states": ["Running"], "ownerKinds": {"exclude": ["ReplicaSet"]}}, False, id="excluded"
        ),
        pytest.param({"states": ["Running"], "exitCodes": [1]}, False, id="all criteria have to apply"),
    ],
)
def test_criteria_of_lifetime(tmp_path, args, applies):
    """All criteria that are set have to apply."""
    condition = {"type": "Ready", "status": "False", "lastTransitionTime": "2026-11-23T07:00:00Z"}
    waiting = {"name": "c", "restartCount": 0, "state": {"waiting": {"reason": "ImagePullBackOff"}}}
    ended = {"name": "d", "restartCount": 0, "state": {"terminated": {"exitCode": 137}}}
    status = {"conditions": [condition], "containerStatuses": [waiting, ended]}

    found = planned(tmp_path, lifetime(**args), node("n0"), running("a", "n0", status=status))

    assert applies == bool(found.moves)


def test_pods_that_ended_are_taken_away_for_their_age(tmp_path):
    """They need no place; only states that are given reach them."""
    done = running("a", "n0", age=300, status={"phase": "Succeeded"})
    ended = lifetime(maxPodLifeTimeSeconds=100, states=["Succeeded"])

    found = planned(tmp_path, ended, node("n0"), done, running("b", "n0", age=300))

    assert [("a", "n0", "")] == moves(found)


def test_failed_pods_are_taken_away(tmp_path):
    """They need no other node, and no budget is asked."""
    found = planned(tmp_path, failures(), node("n0"), failed("a"), failed("b", age=3599))

    assert [("a", "n0", "")] == moves(found)


@pytest.mark.parametrize(
    ("args", "applies"),
    [
        pytest.param({"reasons": ["Evicted"]}, True, id="the pod's reason"),
        pytest.param({"reasons": ["Error"]}, True, id="a container's reason"),
        pytest.param({"reasons": ["OOMKilled"]}, False, id="another reason"),
        pytest.param({"exitCodes": [1]}, True, id="exit code"),
        pytest.param({"exitCodes": [2]}, False, id="another exit code"),
        pytest.param({"excludeOwnerKinds": ["ReplicaSet"]}, False, id="owner left out"),
    ],
)
def test_which_failed_pods(tmp_path, args, applies):
    """Reasons, exit codes and owners say which."""
    assert applies == bool(planned(tmp_path, failures(**args), node("n0"), failed("a")).moves)
