import json
import subprocess
import sys

import pytest
import yaml

from tests.e2e.conftest import pod
from tests.suite import PATIENCE_SECONDS

pytestmark = pytest.mark.e2e

DEFINITION = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gpus.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: gpus, kind: Gpu}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {milli: {type: integer, description: Thousandths of a device.}}}
---
apiVersion: example.com/v1
kind: Gpu
metadata: {name: g}
spec: {milli: 5}
"""


def test_get(cluster):
    """Pods and nodes are shown as tables, wide tables, YAML and JSON."""
    cluster.kubectl("create", "-f", "-", stdin=pod("a"))
    cluster.bind("a", "n1")
    cluster.kubectl("wait", "--for=condition=Ready", "pod/a", "--timeout=20s")

    header, row = cluster.kubectl("get", "pods", "-o", "wide").splitlines()
    assert ["NAME", "READY", "STATUS", "RESTARTS", "AGE", "IP", "NODE"] == header.split()[:7]
    assert ["a", "1/1", "Running", "0", "n1"] == [row.split()[i] for i in (0, 1, 2, 3, 6)]
    assert ["n1", "Ready"] == cluster.kubectl("get", "nodes", "--no-headers").split()[:2]
    assert "a" == yaml.safe_load(cluster.kubectl("get", "pod", "a", "-o", "yaml"))["metadata"]["name"]
    assert "v1" == cluster.json("get", "pod", "a")["apiVersion"]
    assert "pod/a\n" == cluster.kubectl("get", "pods", "-A", "-o", "name")


def test_watch(cluster):
    """`get -w` prints a line for each change."""
    cluster.kubectl("create", "-f", "-", stdin=pod("a"))
    watch = cluster.start("get", "pods", "-w", "--output-watch-events", "--request-timeout=30s")
    try:
        assert ["EVENT", "ADDED"] == [watch.stdout.readline().split()[0] for _ in range(2)]
        cluster.kubectl("delete", "pod", "a")
        assert ["MODIFIED", "DELETED"] == [watch.stdout.readline().split()[0] for _ in range(2)]
    finally:
        watch.terminate()
        watch.communicate(timeout=PATIENCE_SECONDS)


def test_describe(cluster):
    """`describe pod` shows the spec, the conditions and the events of the pod."""
    cluster.kubectl("create", "-f", "-", stdin=pod("a"))
    uid = cluster.json("get", "pod", "a")["metadata"]["uid"]
    event = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "a.1", "namespace": "default"},
        "regarding": {"kind": "Pod", "name": "a", "namespace": "default", "uid": uid},
        "reason": "FailedScheduling",
        "note": "0/2 nodes are available",
        "type": "Warning",
        "action": "Scheduling",
        "eventTime": "2023-11-14T22:13:20.000000Z",
        "reportingController": "default-scheduler",
        "reportingInstance": "host",
    }
    cluster.kubectl("create", "-f", "-", stdin=event)
    cluster.bind("a", "n1")

    text = cluster.kubectl("describe", "pod", "a")
    for expected in (
        "n1/10.0.0.1",
        "QoS Class:",
        "PodScheduled",
        "FailedScheduling",
        "0/2 nodes are available",
    ):
        assert expected in text
    assert "FailedScheduling" in cluster.kubectl("get", "events")
    assert "pods" in cluster.kubectl("describe", "node", "n1")


def test_apply(cluster):
    """Client-side apply creates, leaves alone, and changes."""
    assert "pod/a created\n" == cluster.kubectl("apply", "-f", "-", stdin=pod("a"))
    assert "pod/a unchanged\n" == cluster.kubectl("apply", "-f", "-", stdin=pod("a"))
    assert "pod/a configured\n" == cluster.kubectl("apply", "-f", "-", stdin=pod("a", labels={"x": "y"}))
    assert "pod/a configured\n" == cluster.kubectl("apply", "-f", "-", stdin=pod("a"))
    assert "labels" not in cluster.json("get", "pod", "a")["metadata"]


def test_apply_what_get_shows(cluster):
    """The List that `get -o yaml` prints is applied again, and fields that its objects lack are refused."""
    cluster.kubectl("create", "-f", "-", stdin=pod("a"))
    shown = cluster.kubectl("get", "pods", "-o", "yaml")
    found = yaml.safe_load(shown)

    assert ("v1", "List") == (found["apiVersion"], found["kind"])
    assert "pod/a configured\n" == cluster.kubectl("apply", "-f", "-", stdin=shown)
    found["items"][0]["spec"]["colour"] = "red"
    assert 'unknown field "colour"' in cluster.kubectl("apply", "-f", "-", stdin=found, fails=True)


def test_server_side_apply(cluster):
    """Server-side apply shares an object, and reports conflicts."""
    cluster.kubectl("apply", "--server-side", "-f", "-", stdin=pod("a", labels={"x": "1"}))
    other = ("apply", "--server-side", "--field-manager=other", "-f", "-")

    complaint = cluster.kubectl(*other, stdin=pod("a", labels={"x": "2"}), fails=True)
    assert 'conflict with "kubectl": .metadata.labels.x' in complaint
    cluster.kubectl(*other, "--force-conflicts", stdin=pod("a", labels={"x": "2"}))
    assert {"x": "2"} == cluster.json("get", "pod", "a")["metadata"]["labels"]


def test_change(cluster):
    """label, annotate, patch, taint and cordon change what they say."""
    cluster.kubectl("create", "-f", "-", stdin=pod("a"))
    cluster.kubectl("label", "pod", "a", "x=y")
    cluster.kubectl("annotate", "pod", "a", "k=v")
    cluster.kubectl("patch", "pod", "a", "-p", '{"metadata": {"labels": {"z": "1"}}}')
    cluster.kubectl(
        "patch", "pod", "a", "--type=json", "-p", '[{"op": "remove", "path": "/metadata/labels/x"}]'
    )
    cluster.kubectl("taint", "node", "n1", "gpu=yes:NoSchedule")
    cluster.kubectl("cordon", "n1")

    metadata, spec = cluster.json("get", "pod", "a")["metadata"], cluster.json("get", "node", "n1")["spec"]
    assert ({"z": "1"}, {"k": "v"}) == (metadata["labels"], metadata["annotations"])
    assert ([{"key": "gpu", "value": "yes", "effect": "NoSchedule"}], True) == (
        spec["taints"],
        spec["unschedulable"],
    )
    assert "Ready,SchedulingDisabled" in cluster.kubectl("get", "node", "n1")
    cluster.kubectl("uncordon", "n1")
    cluster.kubectl("taint", "node", "n1", "gpu-")
    assert {} == cluster.json("get", "node", "n1")["spec"]


def test_resize(cluster):
    """The subresource `resize` changes the resources of a pod's containers, the pod itself does not."""
    cluster.kubectl("create", "-f", "-", stdin=pod("a"))
    asked = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "2"}}}]}}
    patch = ("patch", "pod", "a", "--patch", json.dumps(asked))

    assert "pod updates may not change fields" in cluster.kubectl(*patch, fails=True)
    assert "pod/a patched\n" == cluster.kubectl(*patch, "--subresource=resize")
    assert "2" == cluster.json("get", "pod", "a")["spec"]["containers"][0]["resources"]["requests"]["cpu"]


def test_delete_pod(cluster):
    """A running pod stops and goes."""
    cluster.kubectl("create", "-f", "-", stdin=pod("a"))
    cluster.bind("a", "n1")
    cluster.kubectl("wait", "--for=condition=Ready", "pod/a", "--timeout=20s")
    cluster.kubectl("delete", "pod", "a", "--timeout=20s")

    assert "NotFound" in cluster.kubectl("get", "pod", "a", fails=True)


def test_delete_namespace(cluster, api_server):
    """A namespace takes everything with it."""
    if api_server.real:
        pytest.skip("emptying namespaces is a controller's work, and none runs beside a real API server here")
    cluster.kubectl(
        "apply", "-f", "-", stdin={"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "t"}}
    )
    cluster.kubectl("create", "-n", "t", "-f", "-", stdin=pod("a"))
    cluster.bind("a", "n1", "t")
    cluster.kubectl("delete", "namespace", "t", "--timeout=20s")

    assert "NotFound" in cluster.kubectl("get", "pod", "a", "-n", "t", fails=True)
    assert "NotFound" in cluster.kubectl("get", "namespace", "t", fails=True)


def test_scale(cluster):
    """A deployment can be scaled, though nothing here acts on it."""
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod("x")["spec"]}
    spec = {"selector": {"matchLabels": {"a": "b"}}, "template": template}
    document = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": spec}
    cluster.kubectl("create", "-f", "-", stdin=document)

    assert "deployment.apps/d scaled\n" == cluster.kubectl("scale", "deployment", "d", "--replicas=3")
    assert "0/3" in cluster.kubectl("get", "deployment", "d")


def test_discover(cluster):
    """api-resources and explain know the built-in and the custom kinds."""
    definition, gpu = DEFINITION.split("---")
    cluster.kubectl("apply", "-f", "-", stdin=definition)
    cluster.kubectl("wait", "--for=condition=Established", "crd/gpus.example.com", "--timeout=20s")
    cluster.kubectl("apply", "-f", "-", stdin=gpu)

    assert {"pods", "nodes", "leases", "csinodes", "gpus"} <= {
        line.split()[0] for line in cluster.kubectl("api-resources", "--no-headers").splitlines()
    }
    assert "tolerationSeconds" in cluster.kubectl("explain", "pod.spec.tolerations")
    assert "Thousandths of a device." in cluster.kubectl("explain", "gpu.spec.milli")
    assert "g" == cluster.kubectl("get", "gpus", "--no-headers").split()[0]


def test_validation(cluster):
    """A field that does not exist is refused before and by the server."""
    wrong = pod("a")
    wrong["spec"]["colour"] = "red"

    assert 'unknown field "spec.colour"' in cluster.kubectl("create", "-f", "-", stdin=wrong, fails=True)
    cluster.kubectl("create", "--validate=ignore", "-f", "-", stdin=wrong)


def test_generators(cluster):
    """What kubectl makes up itself it sends as protobuf; it is read all the same."""
    for line in (
        "create namespace t",
        "create deployment d --image=x --replicas=2 --port=80",
        "create configmap c --from-literal=a=b",
        "create secret generic s --from-literal=a=b",
        "create serviceaccount s",
        "create job j --image=x",
        "create priorityclass p --value=5 --description=high",
        "create quota q --hard=cpu=1,pods=2",
        "create poddisruptionbudget p --selector=a=b --max-unavailable=50%",
        "create role r --verb=get,list --resource=pods",
        "create rolebinding r --role=r --user=u",
        "create clusterrole r --verb=get --resource=nodes",
        "create clusterrolebinding r --clusterrole=r --serviceaccount=default:s",
        "create service clusterip s --tcp=80:8080",
        "run p --image=x",
        "auth can-i create pods",
    ):
        cluster.kubectl(*line.split())

    spec = cluster.json("get", "deployment", "d")["spec"]
    assert (2, "x") == (spec["replicas"], spec["template"]["spec"]["containers"][0]["image"])
    assert {"a": "Yg=="} == cluster.json("get", "secret", "s")["data"]
    assert {"cpu": "1", "pods": "2"} == cluster.json("get", "quota", "q")["spec"]["hard"]
    assert "50%" == cluster.json("get", "poddisruptionbudget", "p")["spec"]["maxUnavailable"]


def test_drain(cluster):
    """A node is drained: its pods are evicted."""
    cluster.kubectl("create", "-f", "-", stdin=pod("a"))
    cluster.bind("a", "n1")
    cluster.kubectl("drain", "n1", "--force", "--timeout=20s")

    assert "NotFound" in cluster.kubectl("get", "pod", "a", fails=True)


def test_port_in_use(cluster):
    """A port that is taken is one clear line and exit code 2."""
    port = cluster.url.rpartition(":")[2]
    done = subprocess.run(
        [sys.executable, "-m", "berth.cli", "sandbox", "up", "--port", port],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )

    assert (2, 1) == (done.returncode, len(done.stderr.splitlines()))
    assert f"cannot listen on 127.0.0.1:{port}" in done.stderr
