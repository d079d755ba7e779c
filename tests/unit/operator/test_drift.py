"""What counts as drift: our own fields with other values, and nothing else."""

import pytest

from berth.operator.drift import differs

WANTED = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "a", "labels": {"x": "1"}},
    "spec": {
        # The API leaves out what is false.
        "paused": False,
        "ports": [{"name": "https", "port": 1}],
        "args": ["-a", "-b"],
        "selector": {"a": "b"},
        "ingress": [{"from": [{"podSelector": {"matchLabels": {"a": "b"}}}], "ports": [{"port": 1}]}],
    },
}
RULE = {"from": [{"podSelector": {"matchLabels": {"a": "b"}}}], "ports": [{"port": 1, "protocol": "TCP"}]}


def found(**changes):
    metadata = {"name": "a", "labels": {"x": "1", "other": "2"}, "uid": "u"}
    spec = {
        "ports": [{"name": "https", "port": 1, "protocol": "TCP"}],
        "args": ["-a", "-b"],
        "type": "ClusterIP",
        "selector": {"a": "b"},
        "ingress": [RULE],
    }
    return {"metadata": metadata | changes.pop("metadata", {}), "spec": spec | changes}


@pytest.mark.parametrize(
    ("state", "drifted"),
    [
        pytest.param(None, True, id="gone"),
        pytest.param(found(), False, id="defaults and other people's fields"),
        pytest.param(found(metadata={"labels": {"x": "2"}}), True, id="a label"),
        pytest.param(found(paused=True), True, id="a flag that is off"),
        pytest.param(found(metadata={"labels": {}}), True, id="a label gone"),
        pytest.param(found(ports=[{"name": "https", "port": 2}]), True, id="an item's field"),
        pytest.param(found(ports=[]), True, id="an item gone"),
        pytest.param(
            found(ports=[{"name": "more", "port": 2}, {"name": "https", "port": 1}]),
            False,
            id="another's item",
        ),
        pytest.param(found(args=["-a", "-b", "-c"]), True, id="one argument more"),
        pytest.param(found(args=["-b", "-a"]), True, id="arguments in another order"),
        pytest.param(found(selector={"a": "b", "c": "d"}), True, id="a selector that finds less"),
        pytest.param(found(ingress=[RULE, {}]), True, id="a rule more"),
        pytest.param(found(ingress=[{**RULE, "ports": [{"port": 1}, {"port": 2}]}]), True, id="a port more"),
        pytest.param(found(ingress=[{**RULE, "from": [{"podSelector": {}}]}]), True, id="a wider rule"),
    ],
)
def test_differs(state, drifted):
    """An object is applied again exactly when a field of ours is not as we wrote it."""
    assert drifted == differs(state, WANTED)
