"""Workloads in upstream's form are played by real processes, to their end."""

import json
import subprocess
import sys

import pytest

from tests.kube_scheduler import WITHOUT, kube_scheduler
from tests.unit.scheduler_perf.small_tree import CREATE_NODES, CREATE_PODS, POD, a_test, written

NAMED = POD.replace("generateName: pod-", 'name: "pod-{{.Index}}", labels: {kind: mine}')
SERVICE = "{apiVersion: v1, kind: Service, metadata: {name: s}, spec: {ports: [{port: 80}]}}"
CLASS = "{apiVersion: resource.k8s.io/v1, kind: DeviceClass, metadata: {name: gpu}}"
CLAIM_SPEC = "{devices: {requests: [{name: r, exactly: {deviceClassName: gpu}}]}}"
CLAIM = f"""
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {{name: "c-{{{{.Index}}}}"}}
spec: {CLAIM_SPEC}
"""
TEMPLATE = f"""
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {{name: t}}
spec: {{spec: {CLAIM_SPEC}}}
"""
CLAIMING = POD.replace("spec: {", "spec: {resourceClaims: [{name: d, resourceClaimTemplateName: t}], ")
VOLUME = """
apiVersion: v1
kind: PersistentVolume
spec:
  accessModes: [ReadWriteOnce]
  capacity: {storage: 1Gi}
  csi: {driver: d.example.com}
  persistentVolumeReclaimPolicy: Retain
"""
VOLUME_CLAIM = """
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {annotations: {pv.kubernetes.io/bind-completed: "true"}}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
"""
UPDATED = NAMED.replace("labels: {kind: mine}", "labels: {kind: updated}")


def op(opcode, **fields):
    return {"opcode": opcode, **fields}


EVERYTHING = a_test(
    op("createNamespaces", prefix="ns", count=2),
    {**CREATE_NODES, "labelNodePrepareStrategy": {"labelKey": "zone", "labelValues": ["a", "b"]}},
    op("createAny", templatePath="service.yaml", namespace="mine"),
    op(
        "churn",
        mode="recreate",
        number=1,
        intervalMilliseconds=50,
        templatePaths=["pod.yaml", "service.yaml"],
    ),
    op("createPodSets", count=2, namespacePrefix="ns", createPodsOp={"count": 1}),
    op("startCollectingMetrics", name="named", namespaces=["mine"], labelSelector={"kind": "mine"}),
    op("createPods", count=4, namespace="mine", podTemplatePath="named.yaml", skipWaitToCompletion=True),
    op("barrier", namespaces=["mine"], stageRequirement="Attempted"),
    op("barrier"),
    op("stopCollectingMetrics"),
    op("deletePods", namespace="mine", labelSelector={"kind": "mine"}, deletePodsPerSecond=100),
    op("sleep", duration="1ms"),
    {
        **CREATE_PODS,
        "persistentVolumeTemplatePath": "volume.yaml",
        "persistentVolumeClaimTemplatePath": "volume-claim.yaml",
    },
)
DEVICES = a_test(
    CREATE_NODES,
    op("createResourceDriver", driverName="d.example.com", nodes="*", maxClaimsPerNode=8),
    op("createAny", templatePath="class.yaml"),
    op("createAny", templatePath="template.yaml", namespace="steady"),
    op("createAny", templatePath="claim.yaml", namespace="mine", count=3),
    op("allocResourceClaims", namespace="mine"),
    op("createPods", namespace="steady", count=5, podTemplatePath="claiming.yaml", steadyState=True,
       durationParam="$long", collectMetrics=True),
    featureGates={"DynamicResourceAllocation": True},
    workload={"params": {"nodes": 2, "long": "3s"}},
    name="Devices",
)  # fmt: skip


def play(tree, *flags):
    """The command's end, and what it says."""
    command = (sys.executable, "-m", "tests.scheduler_perf", f"--tree={tree}", *flags)
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


@pytest.fixture
def tree(tmp_path):
    files = {"named": NAMED, "service": SERVICE, "class": CLASS, "claim": CLAIM, "template": TEMPLATE}
    files |= {"claiming": CLAIMING, "volume": VOLUME, "volume-claim": VOLUME_CLAIM}
    return written(tmp_path / "tree", EVERYTHING, DEVICES, **files)


def items(path, metric):
    found = json.loads(path.read_text())["dataItems"]
    return {
        (item["labels"]["Name"], item["labels"]["Scheduler"]): item["data"]
        for item in found
        if item["labels"]["Metric"] == metric
    }


@pytest.mark.parametrize(
    "scheduler",
    [
        "berth",
        pytest.param("kube-scheduler", marks=pytest.mark.skipif(kube_scheduler() is None, reason=WITHOUT)),
    ],
)
def test_all_operations(tmp_path, tree, scheduler):
    """Every operation does its work, and every pod that is waited for is bound."""
    path = tmp_path / "items.json"
    done = play(tree, f"--only={scheduler}", f"--json={path}")

    assert 0 == done.returncode, done.stdout + done.stderr
    pods = {name: data["Pods"] for (name, _), data in items(path, "ScheduleAttempts").items()}
    assert (4, 10) == (pods["Basic/2Nodes/named"], pods["Basic/2Nodes/namespace-13"])
    # More than the devices of both nodes: what deleted pods had is given back.
    assert pods["Devices/2Nodes/steady"] > 16


def test_pods_that_are_there_before(tmp_path):
    """The measured pods wait for the scheduler; a workload that measures more is not played, and says why."""
    path = tmp_path / "items.json"
    started = a_test(
        CREATE_NODES,
        op("startCollectingMetrics", namespaces=["a"]),
        CREATE_PODS,
        op("stopCollectingMetrics"),
        name="Started",
    )
    done = play(written(tmp_path / "tree", a_test(), started), "--only=berth", "--waiting", f"--json={path}")

    assert 0 == done.returncode, done.stdout + done.stderr
    assert {("Basic/2Nodes/namespace-1", "berth"): {"Total": 10, "Pods": 10}} == items(
        path, "ScheduleAttempts"
    )
    assert "not played: misc: Started/2Nodes (either): it measures more than" in done.stdout


def test_pods_that_are_never_bound(tmp_path):
    """A workload that comes to no end fails, and names a pod."""
    huge = POD.replace('image: "app:1"', 'image: "app:1", resources: {requests: {cpu: 99}}')
    done = play(written(tmp_path / "tree", a_test(), pod=huge), "--only=berth", "--timeout=2", "--scale=10")

    assert 1 == done.returncode
    assert (
        "0 of 1 pods of namespace namespace-1 were scheduled after 2 s; not namespace-1/pod-" in done.stdout
    )


def test_a_scheduler_that_ends(tmp_path):
    """The workload ends with the scheduler's last words, not with the time that pods are waited for."""
    config = "{apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration, profiles: 7}"
    tree = written(tmp_path / "tree", a_test(schedulerConfigPath="wrong.yaml"), wrong=config)
    done = play(tree, "--only=berth")

    assert 1 == done.returncode
    assert "not played: misc: Basic/2Nodes (berth): ChildFailedError: berth ended with code" in done.stdout
