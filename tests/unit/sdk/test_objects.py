"""Views on pods and nodes, and quantities."""

from fractions import Fraction

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth_sdk import Action, ClusterEvent, quantity
from berth_sdk.objects import decode_node, decode_pod
from berth_sdk.testing import make_node, make_pod


@pytest.mark.parametrize(
    ("text", "units", "thousandths"),
    [
        ("1", 1, 1000),
        ("100m", 1, 100),
        ("1.5", 2, 1500),
        ("2Ki", 2048, 2048000),
        ("1e3", 1000, 1000000),
        ("12E", 12 * 10**18, 12 * 10**21),
        ("1u", 1, 1),
        (".5", 1, 500),
        (3, 3, 3000),
        (0.25, 1, 250),
    ],
)
def test_quantities_round_up(text, units, thousandths):
    """Quantities are exact and round up, as in Kubernetes."""
    assert (units, thousandths) == (quantity.whole(text), quantity.milli(text))


@pytest.mark.parametrize("text", ["", "x", "1 ", "1KI", "--1", "1e", "e1"])
def test_no_quantity(text):
    """What is no quantity is named."""
    with pytest.raises(ValueError, match="not a quantity"):
        quantity.parse(text)


@given(number=st.integers(0, 10**9), suffix=st.sampled_from(["n", "u", "m", "", "k", "M", "Gi"]))
def test_parse_is_exact(number, suffix):
    """No suffix loses a digit."""
    scale = {"n": Fraction(1, 10**9), "u": Fraction(1, 10**6), "m": Fraction(1, 1000)}
    scale |= {"": Fraction(1), "k": Fraction(1000), "M": Fraction(10**6), "Gi": Fraction(2**30)}

    assert number * scale[suffix] == Fraction(quantity.parse(f"{number}{suffix}"))


def container(cpu, **more):
    return {"name": "c", "resources": {"requests": {"cpu": cpu}}, **more}


@pytest.mark.parametrize(
    ("spec", "cpu"),
    [
        pytest.param({"containers": [container("1"), container("500m")]}, 1500, id="containers add up"),
        pytest.param({"containers": [container("1")], "initContainers": [container("3")]}, 3000, id="init"),
        pytest.param(
            {
                "containers": [container("1")],
                "initContainers": [container("2", restartPolicy="Always"), container("3")],
            },
            5000,
            id="init beside a sidecar",
        ),
        pytest.param(
            {"containers": [container("1")], "initContainers": [container("2", restartPolicy="Always")]},
            3000,
            id="sidecar adds up",
        ),
        pytest.param({"containers": [container("1")], "overhead": {"cpu": "100m"}}, 1100, id="overhead"),
        pytest.param(
            {"containers": [container("1")], "resources": {"requests": {"cpu": "4"}}}, 4000, id="pod level"
        ),
        pytest.param({"containers": []}, 0, id="nothing"),
    ],
)
def test_request(spec, cpu):
    """A pod's request is what the scheduler counts for it."""
    pod = decode_pod(msgspec.json.encode({"metadata": {"name": "p"}, "spec": spec}))

    assert cpu == pod.request("cpu")


def test_nulls_are_absent():
    """A null where Kubernetes means nothing is read as nothing, and `raw` shows it."""
    pod = decode_pod(b'{"metadata":{"name":"p","labels":null,"uid":"u"},"spec":{"containers":null}}')

    assert ({}, ()) == (pod.labels, pod.spec.containers)
    assert pod.raw["metadata"]["labels"] is None


def test_views_keep_everything():
    """`raw` has the fields that the view leaves out."""
    pod = decode_pod(msgspec.json.encode(make_pod("p", labels={"a": "b"})))
    node = decode_node(msgspec.json.encode(make_node("n", labels={"c": "d"})))

    assert ("Pod", "Node") == (pod.raw["kind"], node.raw["kind"])
    assert (("p", "default"), {"a": "b"}, {"c": "d"}) == ((pod.name, pod.namespace), pod.labels, node.labels)
    assert (8000, 110, 0) == tuple(node.allocatable(each) for each in ("cpu", "pods", "x"))


def test_an_event_s_object():
    """An event's object is a node or a pod, before and after, or neither."""
    old, new = (msgspec.json.encode(make_node("n", labels={"team": team})) for team in ("red", "blue"))

    before, after = ClusterEvent("Node", Action.UPDATE_NODE_LABEL, old, new).nodes()
    gone = ClusterEvent("Pod", Action.DELETE, old=msgspec.json.encode(make_pod("p"))).pods()

    assert ("red", "blue") == (before.labels["team"], after.labels["team"])
    assert ("p", None) == (gone[0].name, gone[1])
