"""Changes of a cluster do what they say, and what cannot be made is refused with a remedy."""

import pytest
from click.testing import CliRunner

from berth.commands.simulate import simulate as command
from berth.objects.node import Node
from berth.objects.pods.pod import Pod
from berth.simulation.errors import ChangeError
from berth.simulation.what_if.changes import changed, evicted_by, read_changes
from berth.simulation.what_if.drain_messages import OVER_BUDGET, SEVERAL_BUDGETS, drain_messages
from tests.unit.simulation.kit import cluster, node, outcome, pod, written

RUNNING = {"phase": "Running"}


@pytest.fixture
def found(tmp_path):
    ours = {**pod("p0", nodeName="n0"), "status": RUNNING}
    daemon = {**pod("d0", nodeName="n0"), "status": RUNNING}
    daemon["metadata"]["ownerReferences"] = [{"kind": "DaemonSet", "name": "d"}]
    zones = [node("n0", labels={"zone": "a"}), node("n1", labels={"zone": "b"})]
    return cluster(tmp_path, *zones, ours, daemon, pod("waits", schedulerName="other"))


def after(found, *texts):
    return changed(found, read_changes(texts))


def test_nodes_are_copied(found):
    """Copies have names of their own, in their labels as well, and no pods."""
    nodes = after(found, "add-node n1 x2").of(Node)

    assert ["n0", "n1", "n1-copy-0", "n1-copy-1"] == list(nodes)
    assert {"zone": "b", "kubernetes.io/hostname": "n1-copy-1"} == nodes["n1-copy-1"].labels


def test_nodes_are_added_by_shape(found):
    """Amounts are what the node offers, the rest are its labels."""
    shape = after(found, "add-node cpu=8,memory=32Gi,example.com/gpu=2,example.com/tier=web").of(Node)[
        "shape-copy-0"
    ]

    assert {"cpu": "8", "memory": "32Gi", "example.com/gpu": "2", "pods": "110"} == shape.status.allocatable
    assert "web" == shape.labels["example.com/tier"]


@pytest.mark.parametrize(("verb", "nodes"), [("drain", ["n0", "n1"]), ("remove-node", ["n1"])])
def test_pods_of_a_node_that_goes_are_scheduled_anew(found, verb, nodes):
    """Those of a DaemonSet end."""
    left = after(found, f"{verb} zone=a")

    assert nodes == list(left.of(Node))
    assert [("default/waits", ""), ("default/p0", "")] == [
        (p.key, p.node_name) for p in left.of(Pod).values()
    ]


@pytest.mark.parametrize(("kind", "left"), [("ReplicaSet", []), ("StatefulSet", ["default/p0"])])
def test_pods_that_are_being_deleted_have_a_successor(tmp_path, kind, left):
    """It is there, or waits; a StatefulSet makes it once the pod is gone."""
    going = {**pod("p0", nodeName="n0"), "status": RUNNING}
    going["metadata"] |= {
        "deletionTimestamp": "2026-11-28T00:00:00Z",
        "ownerReferences": [{"apiVersion": "apps/v1", "kind": kind, "name": "o", "controller": True}],
    }

    assert left == [*after(cluster(tmp_path, node("n0"), going), "drain n0").of(Pod)]


@pytest.mark.parametrize(
    ("budgets", "said"),
    [
        ([0], {OVER_BUDGET: ["default/p0", "default/p1"]}),
        ([1], {OVER_BUDGET: ["default/p1"]}),
        ([2], {}),
        ([2, 2], {SEVERAL_BUDGETS: ["default/p0", "default/p1"]}),
    ],
)
def test_budgets_of_drained_pods(tmp_path, budgets, said):
    """What the Eviction API would refuse at first is named, and counts as evicted in the end."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "o", "controller": True}
    pods = [{**pod(f"p{i}", nodeName="n0", labels={"a": "b"}), "status": RUNNING} for i in range(2)]
    for each in pods:
        each["metadata"]["ownerReferences"] = [owner]
    guards = [
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": f"g{i}", "namespace": "default"},
            "spec": {"selector": {"matchLabels": {"a": "b"}}},
            "status": {"disruptionsAllowed": allowed},
        }
        for i, allowed in enumerate(budgets)
    ]
    before = cluster(tmp_path, node("n0"), *pods, *guards)
    then = after(before, "drain n0")

    assert said == drain_messages(before, then)
    for each in pods:
        each["metadata"]["deletionTimestamp"] = "2026-11-28T00:00:00Z"
    going = cluster(tmp_path, node("n0"), *pods, *guards)
    assert {} == drain_messages(going, after(going, "drain n0"))
    assert 2 == len(evicted_by(before, then))
    assert {} == drain_messages(before, after(before, "remove-node n0"))


def test_labels_and_taints(found):
    """Both are set, replaced and taken away."""
    nodes = after(found, "label all zone- tier=web", "taint n0 a=b:NoSchedule c:NoExecute", "taint n0 a-").of(
        Node
    )

    assert ["web", "web"] == [n.labels["tier"] for n in nodes.values() if "zone" not in n.labels]
    assert [("c", "NoExecute")] == [(t.key, t.effect) for t in nodes["n0"].spec.taints]


def test_cordon_and_back(found):
    """A node that is cordoned takes no pods until it is not any more."""
    assert after(found, "cordon n0").of(Node)["n0"].spec.unschedulable
    assert not after(found, "cordon n0", "uncordon n0").of(Node)["n0"].spec.unschedulable


def test_profiles_are_changed(found):
    """Pods without a node are given to another profile."""
    assert (
        "default-scheduler"
        == after(found, "profile other default-scheduler").of(Pod)["default/waits"].spec.scheduler_name
    )


def test_the_input_stays_as_it_was(found):
    """A change is made to a copy."""
    after(found, "remove-node all")

    assert 2 == len(found.of(Node))


def test_changes_in_the_midst(tmp_path):
    """A pod that waits gets the node that is added later, and a drained one another node."""
    there = cluster(tmp_path, node("n0"), pod("p0"), pod("large", cpu="8"))
    changes = read_changes(["after 60 add-node cpu=8", "after 120 add-node cpu=2", "after 180 drain n0"])

    found = outcome(there, changes=changes)

    assert {"default/large": "shape-copy-0"}.items() <= found.placed_on.items()
    assert [("n0", 0.0), ("shape-copy-1", 180.0)] == [
        (each.node, each.at_seconds)
        for each in sorted(found.placements, key=lambda p: p.at_seconds)
        if each.pod == "default/p0"
    ]


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("", "begin with one of"),
        ("explode n0", "begin with one of"),
        ("drain", "give nodes"),
        ("drain nowhere", "there is no node nowhere"),
        ("add-node n0 x0", "how many"),
        ("add-node cpu=much", "neither an amount"),
        ("label n0 =", "no label"),
        ("taint n0 a:Never", "no taint"),
        ("profile one", "two profiles"),
        ("after soon drain n0", "how many seconds"),
    ],
)
def test_what_cannot_be_made_is_refused(found, text, remedy):
    """The error quotes the change and says what to write."""
    with pytest.raises(ChangeError, match=remedy):
        after(found, text)


def test_files_have_a_change_a_line(tmp_path):
    """A file is read where there is one of that name."""
    file = tmp_path / "changes.txt"
    file.write_text("# more of them\nadd-node n0 x2\n\ncordon n0  # not this one\n", encoding="utf-8")
    there = written(tmp_path / "c.json", node("n0", cpu="1"), pod("a"), pod("b"))

    result = CliRunner().invoke(command, [str(there), "--what-if", str(file)])

    assert 0 == result.exit_code, result.output


def test_a_wrong_line_of_a_file_is_named(tmp_path):
    """A byte order mark and Windows' line ends are none."""
    file = tmp_path / "changes.txt"
    file.write_bytes("\ufeffcordon n0\r\n# no more\r\ndrain\r\n".encode())

    with pytest.raises(ChangeError) as caught:
        read_changes([str(file)])

    assert f"--what-if: {file}:3: 'drain': give nodes: " in str(caught.value)
