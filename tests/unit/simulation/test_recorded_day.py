"""A recording of a cluster is a day: pods and nodes come and go as they did, and pods go where they may."""

import pytest

from berth.objects.node import Node
from berth.objects.pods.pod import Pod
from berth.simulation.reading.inputs import read_cluster
from tests.unit.observer.kit import a_node, a_pod, bound, in_namespace, observer_file, simulator_file

PREFIX = "simulation.berth.dev/"


def times(obj):
    found = obj.metadata.annotations.items()
    return {
        key.removeprefix(PREFIX).removesuffix("-seconds"): float(value)
        for key, value in found
        if key.startswith(PREFIX)
    }


def day(tmp_path, *events):
    """The pods of a recording by name: node, and times. Events are a second apart; a node is the first."""
    path = observer_file(tmp_path / "day.cluster.gz", ("Add", a_node("n")), *events)
    pods = read_cluster([path]).of(Pod).values()
    return {pod.name: (pod.node_name, times(pod)) for pod in pods}


GATED = a_pod("p", schedulingGates=[{"name": "wait"}])
EVICTED = {"conditions": [{"type": "DisruptionTarget", "status": "True"}]}


@pytest.mark.parametrize(
    ("events", "node", "expected"),
    [
        pytest.param([("Add", a_pod("p"))], "", {"arrival": 1}, id="it waits"),
        pytest.param(
            [("Add", a_pod("p")), ("Delete", a_pod("p"))], "", {"arrival": 1, "departure": 2}, id="in vain"
        ),
        pytest.param(
            [("Add", a_pod("p")), ("Update", bound(a_pod("p"), "n")), ("Delete", a_pod("p"))],
            "",
            {"arrival": 1, "duration": 1},
            id="it ran",
        ),
        pytest.param(
            [
                ("Add", bound(a_pod("p"), "n")),
                ("Update", {**bound(a_pod("p"), "n"), "status": {"phase": "Failed"}}),
            ],
            "n",
            {"arrival": 1, "duration": 1},
            id="it was there, and failed",
        ),
        pytest.param(
            [
                ("Add", a_pod("p")),
                ("Update", bound(a_pod("p"), "n")),
                ("Update", {**bound(a_pod("p"), "n"), "status": EVICTED}),
                ("Delete", a_pod("p")),
            ],
            "",
            {"arrival": 1},
            id="it was evicted",
        ),
        pytest.param([("Add", GATED), ("Update", a_pod("p"))], "", {"arrival": 2}, id="a gate was removed"),
    ],
)
def test_times_of_a_pod(tmp_path, events, node, expected):
    assert {"p": (node, expected)} == day(tmp_path, *events)


def test_a_pod_of_the_same_name_is_another(tmp_path):
    found = day(
        tmp_path, ("Add", a_pod("p")), ("Delete", a_pod("p")), ("Add", a_pod("p")), ("Add", a_pod("p-1"))
    )

    assert {"p": 1, "p-1": 3, "p-1-1": 4} == {name: of["arrival"] for name, (_, of) in found.items()}


def test_nodes_and_other_objects(tmp_path):
    """A node leaves as it did; other objects are there from the beginning, also those that went later."""
    budget = in_namespace("PodDisruptionBudget", "b", "policy/v1")
    events = [
        ("Add", a_node("n")),
        ("Add", budget),
        ("Add", a_node("late")),
        ("Delete", budget),
        ("Delete", a_node("late")),
    ]
    cluster = read_cluster([simulator_file(tmp_path / "day.jsonl", *events)])

    assert {"n": {}, "late": {"arrival": 2, "duration": 2}} == {
        name: times(node) for name, node in cluster.of(Node).items()
    }
    assert ["default/b"] == [obj.key for kind, obj in cluster.all() if kind.name == "PodDisruptionBudget"]
