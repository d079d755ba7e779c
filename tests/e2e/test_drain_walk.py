"""What a drain comes to is asked of a cluster's own objects, and then kubectl drains the node."""

import json

import pytest
from click.testing import CliRunner

from berth.cli.main import main
from tests.e2e.conftest import pod

pytestmark = pytest.mark.e2e

FLAGS = ("--ignore-daemonsets", "--delete-emptydir-data", "--force")
OVER_BUDGET = "Cannot evict pod as it would violate the pod's disruption budget."
OWNED = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "web", "controller": True}
DAEMON_SET = {
    "apiVersion": "apps/v1",
    "kind": "DaemonSet",
    "metadata": {"name": "agent"},
    "spec": {
        "selector": {"matchLabels": {"app": "agent"}},
        "template": {
            "metadata": {"labels": {"app": "agent"}},
            "spec": {"containers": [{"name": "c", "image": "i"}]},
        },
    },
}
GUARDED = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "web"},
    "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
}


def made(name, *, owner=OWNED, annotations=(), labels=(), **spec):
    document = pod(name)
    metadata = {"labels": dict(labels), "annotations": dict(annotations)}
    document["metadata"] |= metadata | ({"ownerReferences": [owner]} if owner else {})
    document["spec"] |= {"nodeName": "n1", **spec}
    return document


@pytest.fixture
def drained(cluster):
    """A node with a pod of each kind that a drain tells from others."""
    cluster.kubectl("create", "-f", "-", stdin=DAEMON_SET)
    daemon = {**OWNED, "kind": "DaemonSet", "name": "agent"}
    daemon["uid"] = cluster.json("get", "daemonset", "agent")["metadata"]["uid"]
    pods = [
        made("plain"),
        made("bare", owner=None),
        made("agent-x", owner=daemon),
        made("static", owner=None, annotations={"kubernetes.io/config.mirror": "x"}),
        made("scratch", volumes=[{"name": "v", "emptyDir": {}}]),
        made("web-0", labels={"app": "web"}),
        made("web-1", labels={"app": "web"}),
    ]
    for each in pods:
        cluster.kubectl("create", "-f", "-", stdin=each)
    cluster.kubectl("create", "-f", "-", stdin=GUARDED)
    allowed = {"status": {"disruptionsAllowed": 1, "observedGeneration": 1, "currentHealthy": 2}}
    allowed["status"] |= {"desiredHealthy": 1, "expectedPods": 2}
    cluster.kubectl("patch", "pdb", "web", "--subresource=status", "--type=merge", "-p", json.dumps(allowed))
    return cluster


def test_a_drain_is_foretold(drained, tmp_path):
    """Pods that kubectl evicts are those that a simulation places anew; it says the same of the same pods."""
    file = tmp_path / "cluster.json"
    file.write_text(drained.kubectl("get", "nodes,pods,pdb", "-A", "-o", "json"))
    asked = CliRunner().invoke(main, ["simulate", str(file), "--what-if", "drain n1", "-o", "json"])
    found = json.loads(asked.stdout)

    evicted = ("plain", "bare", "scratch", "web-0", "web-1")
    assert {f"default/{name}" for name in evicted} == {*found["evicted"]}
    assert {
        "DaemonSet-managed Pods (use --ignore-daemonsets to ignore)": ["default/agent-x"],
        "Pods that declare no controller (use --force to override)": ["default/bare"],
        "Pods with local storage (use --delete-emptydir-data to override)": ["default/scratch"],
        OVER_BUDGET: ["default/web-1"],
    } == found["drain"]
    without_flags = drained.kubectl("drain", "n1", fails=True)
    for message, pods in found["drain"].items():
        assert (message == OVER_BUDGET) != (f"cannot delete {message}: {pods[0]}" in without_flags)
    assert OVER_BUDGET in drained.kubectl("drain", "n1", *FLAGS, "--timeout=1s", fails=True)
    left = {each["metadata"]["name"] for each in drained.json("get", "pods")["items"]}
    assert {"agent-x", "static"} < left
    assert 1 == len(left & {"web-0", "web-1"})
    assert not left & {"plain", "bare", "scratch"}
