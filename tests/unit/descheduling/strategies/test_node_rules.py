"""Pods leave nodes whose labels and taints they would not be placed on, for nodes that are better."""

from tests.unit.descheduling.kit import moves, node, planned, policy, running, why

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
AFFINITY = policy(("RemovePodsViolatingNodeAffinity", {"nodeAffinityType": [REQUIRED]}))
PREFERENCE = policy(("RemovePodsViolatingNodeAffinity", {"nodeAffinityType": [PREFERRED]}))
SSD = {"key": "disk", "operator": "In", "values": ["ssd"]}


def tainted(name, effect="NoSchedule", key="old"):
    return node(name, taints=[{"key": key, "value": "x", "effect": effect}])


def taints(**args):
    return policy(("RemovePodsViolatingNodeTaints", args))


def preferring(name, on, weight=10):
    term = {"weight": weight, "preference": {"matchExpressions": [SSD]}}
    return running(name, on, affinity={"nodeAffinity": {PREFERRED: [term]}})


def test_a_label_that_is_gone(tmp_path):
    """A pod whose node no longer has the label that it selects goes to one that has."""
    documents = (
        node("n0"),
        node("n1", labels={"disk": "ssd"}),
        running("a", "n0", nodeSelector={"disk": "ssd"}),
    )

    assert [("a", "n0", "n1")] == moves(planned(tmp_path, AFFINITY, *documents))


def test_no_node_with_the_label(tmp_path):
    """Where no node would take it the pod stays, and the engine's words say why."""
    found = planned(
        tmp_path, AFFINITY, node("n0"), node("n1"), running("a", "n0", nodeSelector={"disk": "ssd"})
    )

    assert [] == found.moves
    (text,) = why(found, "a")
    assert (
        "no node would take it: 0/2 nodes are available: 2 node(s) didn't match Pod's node affinity" in text
    )


def test_no_room_where_the_label_is(tmp_path):
    """A node that is full is no better place."""
    documents = node("n0"), node("n1", cpu="1", labels={"disk": "ssd"}), running("b", "n1")

    found = planned(tmp_path, AFFINITY, *documents, running("a", "n0", nodeSelector={"disk": "ssd"}))

    assert [] == found.moves
    assert "1 Insufficient cpu" in why(found, "a")[0]


def test_a_better_preference(tmp_path):
    """A pod that another node suits better goes there, if the scheduler would choose it."""
    documents = node("n0"), node("n1", labels={"disk": "ssd"}), preferring("a", "n0")

    found = planned(tmp_path, PREFERENCE, *documents)

    assert [("a", "n0", "n1")] == moves(found)
    assert "preferred node affinity 0 there, 10 on n1" == found.moves[0].gain


def test_a_preference_that_the_scheduler_weighs_less(tmp_path):
    """Where other scores outweigh the preference the pod would come back, and stays."""
    crowd = [running(f"c{i}", "n1", cpu="3") for i in range(1)]
    documents = node("n0"), node("n1", labels={"disk": "ssd"}), *crowd
    low = {"schedulerName": "default-scheduler"}
    configuration = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{**low, "plugins": {"score": {"disabled": [{"name": "NodeAffinity"}]}}}],
    }

    found = planned(tmp_path, PREFERENCE, *documents, preferring("a", "n0"), configuration=configuration)

    assert ["the scheduler would place it on n0 again"] == why(found, "a")


def test_a_taint_that_came_later(tmp_path):
    """A pod leaves a node whose taint it does not tolerate; one that tolerates it stays."""
    tolerant = running("b", "n0", tolerations=[{"key": "old", "operator": "Exists"}])

    found = planned(tmp_path, taints(), tainted("n0"), node("n1"), running("a", "n0"), tolerant)

    assert [("a", "n0", "n1")] == moves(found)
    assert [] == found.left_alone


def test_soft_taints_count_where_they_are_included(tmp_path):
    """PreferNoSchedule counts if the policy says so."""
    documents = tainted("n0", "PreferNoSchedule"), node("n1"), running("a", "n0")

    assert [] == moves(planned(tmp_path, taints(), *documents))
    assert [("a", "n0", "n1")] == moves(planned(tmp_path, taints(includePreferNoSchedule=True), *documents))


def test_taints_that_are_left_out(tmp_path):
    """Taints are chosen by key, or by key and value."""
    documents = tainted("n0"), node("n1"), running("a", "n0")
    chosen = [("excludedTaints", ["old"]), ("excludedTaints", ["old=x"]), ("includedTaints", ["other"])]

    assert [[]] * 3 == [moves(planned(tmp_path, taints(**{k: v}), *documents)) for k, v in chosen]
    assert [("a", "n0", "n1")] == moves(planned(tmp_path, taints(includedTaints=["old=x"]), *documents))


def test_only_chosen_pods(tmp_path):
    """Namespaces and labels say which pods a strategy looks at."""
    documents = tainted("n0"), node("n1"), running("a", "n0", labels={"app": "x"}), running("b", "n0")
    by_label = taints(labelSelector={"matchLabels": {"app": "x"}})

    assert [("a", "n0", "n1")] == moves(planned(tmp_path, by_label, *documents))
    assert [] == moves(planned(tmp_path, taints(namespaces={"exclude": ["default"]}), *documents))
