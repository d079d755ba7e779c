"""A Scheduler's descheduler, on kube-apiserver: plans under its own rights, and its end with the field."""

import subprocess
import sys

import pytest
import yaml

from tests.e2e.installation import SYSTEM
from tests.e2e.operated_installation import operated
from tests.suite import PATIENCE_SECONDS
from tests.unit.descheduling.kit import policy

pytestmark = pytest.mark.e2e
NAME = "berth-planner-descheduler"
DESCHEDULER = {
    "policy": {"profiles": policy("RemovePodsViolatingNodeTaints")["profiles"]},
    "schedule": "0 0 1 1 *",
    "timeZone": "Etc/UTC",
    "image": "berth/descheduler:test",
    "maxEvictionsPerMinute": 6000,
}
OWNED = ("-l", "berth.dev/scheduler=planner")


@pytest.fixture
def cluster(tmp_path):
    with operated(tmp_path, "secondary") as found:
        yield found


def ran(cluster):
    """What the CronJob's container says, run as the CronJob's account with the CronJob's files."""
    folder = cluster.folder / "job"
    folder.mkdir(exist_ok=True)
    for name, text in cluster.get("configmap", NAME)["data"].items():
        (folder / name).write_text(text)
    kubeconfig = yaml.safe_load(cluster.kubeconfig.read_text())
    token = cluster.kubectl("create", "token", NAME, "-n", SYSTEM, "--duration=1h")
    kubeconfig["users"][0]["user"] = {"token": token.strip()}
    (folder / "kubeconfig").write_text(yaml.safe_dump(kubeconfig))
    arguments = [one.replace("/etc/berth", str(folder)) for one in arguments_of(cluster)]
    command = [sys.executable, "-m", "berth.cli", *arguments, f"--kubeconfig={folder / 'kubeconfig'}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
    assert 0 == done.returncode, done.stdout + done.stderr
    return done.stdout


def arguments_of(cluster):
    spec = cluster.get("cronjob", NAME)["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    return spec["containers"][0]["args"]


def node_of(cluster):
    """The node of the pod that runs, nothing while none does or the old one is going."""
    pods = cluster.get("pods", "-l", "app=web", namespace="default")["items"]
    if len(pods) != 1 or pods[0].get("status", {}).get("phase") != "Running":
        return ""
    return pods[0]["spec"]["nodeName"]


def test_plans_and_evictions_by_a_real_api_server(cluster):
    """Nothing is evicted until the field says so; then the pod stands better, and the field may go."""
    profiles = [{"schedulerName": "default-scheduler"}]
    cluster.schedulers(("planner", {"profiles": profiles, "replicas": 0, "descheduler": DESCHEDULER}))
    cluster.until(
        lambda: cluster.condition("Descheduling", "planner")[:2] == ("True", "Scheduled"), "it is scheduled"
    )
    cluster.kubectl("create", "deployment", "web", "--image=nginx:1")
    first = cluster.until(lambda: node_of(cluster), "the pod runs")
    cluster.kubectl("taint", "node", first, "old=x:NoSchedule")

    plan = ran(cluster)
    assert "1 to be evicted" in plan
    assert "evicted " not in plan
    assert first == node_of(cluster)

    cluster.patch("scheduler", "planner", {"spec": {"descheduler": {"dryRun": False}}})
    cluster.until(lambda: "--execute" in arguments_of(cluster), "the change arrives")
    account = f"system:serviceaccount:{SYSTEM}:{NAME}"
    assert cluster.may(account, "create", "pods/eviction", "default")
    assert "\nevicted  default/web-" in ran(cluster)
    cluster.until(lambda: node_of(cluster) not in ("", first), "the pod is on another node")

    cluster.patch("scheduler", "planner", {"spec": {"descheduler": None}})
    kinds = "cronjobs,serviceaccounts,configmaps"
    cluster.until(
        lambda: NAME not in {one["metadata"]["name"] for one in cluster.get(kinds, *OWNED).get("items", ())},
        "the CronJob and what it needs are gone",
    )
    cluster.until(
        lambda: not cluster.may(account, "create", "pods/eviction", "default"),
        "its rights are gone",
    )
    cluster.until(
        lambda: cluster.condition("Descheduling", "planner") == ("", "", ""), "no condition is left"
    )
