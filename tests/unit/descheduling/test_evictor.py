"""Pods that DefaultEvictor protects stay, and the plan says why."""

import pytest

from berth.config.errors import PolicyError
from tests.unit.descheduling.kit import budget, moves, node, planned, policy, running, why

LOCAL = [{"name": "v", "emptyDir": {}}]
CLAIM = [{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}]


def tainted(name="n0"):
    return node(name, taints=[{"key": "old", "value": "x", "effect": "NoSchedule"}])


def taints(**evictor):
    return policy("RemovePodsViolatingNodeTaints", evictor=evictor)


def daemon(name):
    made = running(name, "n0")
    made["metadata"]["ownerReferences"][0]["kind"] = "DaemonSet"
    return made


PROTECTED = {
    "local": (lambda: running("a", "n0", volumes=LOCAL), "it has local storage"),
    "daemon": (lambda: daemon("a"), "a DaemonSet owns it"),
    "critical": (lambda: running("a", "n0", priority=2_000_000_000), "it is critical to the system"),
    "bare": (lambda: running("a", "n0", owner=""), "it has no owner, which would make it anew"),
    "mirror": (
        lambda: running("a", "n0", annotations={"kubernetes.io/config.mirror": "x"}),
        "it is a static pod, which stays on its node",
    ),
    "static": (
        lambda: running("a", "n0", annotations={"kubernetes.io/config.source": "file"}),
        "it is a static pod, which stays on its node",
    ),
    "group": (
        lambda: running("a", "n0", schedulingGroup={"podGroupName": "g"}),
        "it belongs to a pod group, which moves whole or not at all",
    ),
}


@pytest.mark.parametrize("kind", PROTECTED)
def test_protected_pods(tmp_path, kind):
    """Without arguments these pods stay."""
    made, reason = PROTECTED[kind]

    found = planned(tmp_path, taints(), tainted(), node("n1"), made())

    assert ([], [reason]) == (found.moves, why(found, "a"))


@pytest.mark.parametrize(
    ("kind", "args"),
    [
        ("local", {"evictLocalStoragePods": True}),
        ("local", {"podProtections": {"defaultDisabled": ["PodsWithLocalStorage"]}}),
        ("critical", {"evictSystemCriticalPods": True}),
        ("critical", {"podProtections": {"defaultDisabled": ["SystemCriticalPods"]}}),
    ],
)
def test_protections_that_are_off(tmp_path, kind, args):
    """The older fields and podProtections both take a protection away."""
    made, _ = PROTECTED[kind]

    assert [("a", "n0", "n1")] == moves(planned(tmp_path, taints(**args), tainted(), node("n1"), made()))


def test_pods_that_ask_to_be_evicted(tmp_path):
    """The annotation takes all protections of DefaultEvictor away."""
    asking = running("a", "n0", volumes=LOCAL, annotations={"descheduler.alpha.kubernetes.io/evict": ""})

    assert [("a", "n0", "n1")] == moves(planned(tmp_path, taints(), tainted(), node("n1"), asking))


@pytest.mark.parametrize(
    ("args", "fields", "reason"),
    [
        ({"labelSelector": {"matchLabels": {"x": "y"}}}, {}, "DefaultEvictor's labelSelector leaves it out"),
        (
            {"namespaceLabelSelector": {"matchLabels": {"x": "y"}}},
            {},
            "DefaultEvictor's namespaceLabelSelector leaves its namespace out",
        ),
        ({"minReplicas": 2}, {}, "its owner has 1 pod, fewer than minReplicas 2"),
        ({"minPodAge": "1h"}, {"age": 3599}, "it is younger than minPodAge 1h"),
        (
            {"priorityThreshold": {"value": 10}},
            {"priority": 10},
            "its priority 10 is not below the threshold 10",
        ),
        (
            {"priorityThreshold": {"name": "system-node-critical"}, "evictSystemCriticalPods": False},
            {"priority": 2_000_001_000},
            "it is critical to the system",
        ),
        (
            {"noEvictionPolicy": "Mandatory"},
            {"annotations": {"descheduler.alpha.kubernetes.io/prefer-no-eviction": ""}},
            "its annotation descheduler.alpha.kubernetes.io/prefer-no-eviction says so",
        ),
        ({"ignorePodsWithoutPDB": True}, {}, "no PodDisruptionBudget covers it"),
        ({"ignorePvcPods": True}, {"volumes": CLAIM}, "it uses a PersistentVolumeClaim"),
        (
            {"podProtections": {"extraEnabled": ["PodsWithResourceClaims"]}},
            {"resourceClaims": [{"name": "c", "resourceClaimName": "c"}]},
            "it uses ResourceClaims",
        ),
    ],
)
def test_chosen_protections(tmp_path, args, fields, reason):
    """Each field protects the pods that it is about."""
    found = planned(tmp_path, taints(**args), tainted(), node("n1"), running("a", "n0", **fields))

    assert ([], [reason]) == (found.moves, why(found, "a"))


def test_pods_that_no_field_is_about(tmp_path):
    """A pod that meets every field goes."""
    args = {
        "labelSelector": {"matchLabels": {"x": "y"}},
        "minReplicas": 2,
        "minPodAge": "1h",
        "priorityThreshold": {"value": 10},
        "ignorePodsWithoutPDB": True,
        "ignorePvcPods": True,
    }
    pods = [running(f"p{i}", "n0", age=3600, labels={"x": "y"}, priority=9) for i in range(2)]

    found = planned(tmp_path, taints(**args), tainted(), node("n1"), budget("b", 2, x="y"), *pods)

    assert [("p0", "n0", "n1"), ("p1", "n0", "n1")] == moves(found)


def test_a_priority_class_that_there_is_not(tmp_path):
    """The class is named."""
    with pytest.raises(
        PolicyError, match=r"priorityThreshold\.name: the cluster has no PriorityClass 'lost'"
    ):
        planned(tmp_path, taints(priorityThreshold={"name": "lost"}), node("n0"))
