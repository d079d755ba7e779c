"""Installing with kubectl: the overlay, the operator it starts, and the schedulers that this one keeps.

Everything runs as on a cluster: the sandbox authorises by the RBAC objects that were applied, its kubelet
starts operator, scheduler and plugin as processes from the pod specs that it was given.
"""

import subprocess
from contextlib import contextmanager

import pytest

from tests.e2e.installation import BIN, KUSTOMIZE, SYSTEM, Installation, installation
from tests.unit.operator.at_work import MONITOR, RULES

pytestmark = pytest.mark.e2e


@pytest.fixture
def cluster(tmp_path, run_images):
    """A sandbox whose kubelet runs operator and schedulers."""
    with installation(tmp_path, run_images) as found:
        yield found


def test_life_of_a_scheduler(cluster):
    """From `kubectl apply -k` to deletion: available, changed, broken, mended, and gone without a trace."""
    install_scheduler(cluster)
    add_plugin(cluster)
    change_arguments(cluster)
    add_profile(cluster)
    break_configuration(cluster)
    break_image(cluster)
    change_by_hand(cluster)
    delete_scheduler(cluster)


def install_scheduler(cluster):
    """A Scheduler becomes available, and binds."""
    cluster.install(KUSTOMIZE / "overlays" / "secondary")
    cluster.until(lambda: cluster.condition("Available")[0] == "True", "the Scheduler is available")
    cluster.submit("by-berth", "berth")
    cluster.until(lambda: cluster.is_bound("by-berth"), "the first profile binds")
    for deployment in ("berth-operator", "berth-main"):
        log = cluster.kubectl("logs", "-n", SYSTEM, f"deploy/{deployment}").splitlines()
        said = [line.partition("] ")[2] for line in log]
        # Of a healthy cluster: no warning, no error, and nothing twice.
        assert {"I"} == {line[0] for line in log}, log
        assert sorted(set(said)) == sorted(said)


def add_plugin(cluster):
    """Another overlay adds a plugin, and a profile that uses it."""
    cluster.kubectl("apply", "-k", str(KUSTOMIZE / "overlays" / "sandbox"))
    cluster.until(lambda: cluster.condition("PluginsReady")[1] == "AllReady", "the plugin is ready")
    cluster.submit("by-gpu-share", "gpu-share")
    cluster.until(lambda: cluster.is_bound("by-gpu-share"), "the plugin's profile binds")
    cluster.until(lambda: cluster.condition("Progressing")[1] == "RolledOut", "the plugin is rolled out")


def change_arguments(cluster):
    """New arguments reach the plugin while it runs: the pods stay, and the scheduler says so."""
    pods = pod_names(cluster)
    cluster.patch("schedulerplugin", "gpu-share", {"spec": {"arguments": {"policy": "packing"}}})
    said = '"plugin is as its list says" plugin="gpu-share"'
    cluster.until(
        lambda: said in cluster.kubectl("logs", "-n", SYSTEM, "deploy/berth-main", "-c", "scheduler"),
        "the arguments arrive",
    )
    assert pods == pod_names(cluster)


def add_profile(cluster):
    """A new profile takes new pods; the old ones go once those are ready."""
    first = pod_names(cluster)
    profiles = cluster.get("scheduler", "main")["spec"]["profiles"]
    cluster.patch("scheduler", "main", {"spec": {"profiles": [*profiles, {"schedulerName": "more"}]}})
    cluster.submit("by-more", "more")
    cluster.until(lambda: cluster.is_bound("by-more"), "the new profile binds")
    cluster.until(lambda: cluster.condition("Progressing")[1] == "RolledOut", "the change is rolled out")
    assert not first & pod_names(cluster)
    cluster.until(lambda: len(configurations(cluster)) == 1, "the old configuration goes")


def break_configuration(cluster):
    """A configuration that no scheduler starts with is reported in its words, and changes nothing."""
    pods, profiles = pod_names(cluster), cluster.get("scheduler", "main")["spec"]["profiles"]
    wrong = {"schedulerName": "wrong", "plugins": {"score": {"enabled": [{"name": "NodeResourceFit"}]}}}
    cluster.patch("scheduler", "main", {"spec": {"profiles": [wrong]}})
    cluster.until(lambda: cluster.condition("Degraded")[1] == "InvalidConfiguration", "it is reported")
    assert "did you mean NodeResourcesFit" in cluster.condition("Degraded")[2]
    assert "True" == cluster.condition("Available")[0]
    assert pods == pod_names(cluster)
    cluster.submit("meanwhile", "more")
    cluster.until(lambda: cluster.is_bound("meanwhile"), "the old configuration still works")
    cluster.patch("scheduler", "main", {"spec": {"profiles": profiles}})
    cluster.until(lambda: cluster.condition("Degraded")[0] == "False", "it is mended")


def break_image(cluster):
    """A broken image stands beside the old pods, which keep working."""
    cluster.patch("scheduler", "main", {"spec": {"image": "berth/broken:1"}})
    cluster.until(lambda: cluster.condition("Degraded")[1] == "ImagePullBackOff", "the cause is named")
    assert ("True", "True") == (cluster.condition("Available")[0], cluster.condition("Progressing")[0])
    cluster.patch("scheduler", "main", {"spec": {"image": None}})
    cluster.until(lambda: cluster.condition("Degraded")[0] == "False", "it is mended")


def change_by_hand(cluster):
    """What is changed or removed by hand is put back."""
    cluster.kubectl("scale", "deployment", "berth-main", "-n", SYSTEM, "--replicas=0")
    cluster.until(
        lambda: cluster.get("deployment", "berth-main")["spec"]["replicas"] == 1, "replicas are put back"
    )
    uid = cluster.get("service", "berth-main")["metadata"]["uid"]
    cluster.kubectl("delete", "service", "berth-main", "-n", SYSTEM)
    cluster.until(
        lambda: cluster.get("service", "berth-main").get("metadata", {}).get("uid", uid) != uid,
        "it is made anew",
    )


def delete_scheduler(cluster):
    """All that the Scheduler owned goes with it."""
    cluster.kubectl("delete", "scheduler", "main", "-n", SYSTEM)
    gone = "pods,deployments,configmaps,rolebindings,services,serviceaccounts"
    selected = ("-l", "berth.dev/scheduler=main")
    cluster.until(lambda: not cluster.get(gone, *selected).get("items"), "all that it owned is gone")
    cluster.until(
        lambda: not cluster.get("clusterrolebindings", *selected).get("items"), "its rights are gone"
    )


def pod_names(cluster):
    """The names of the scheduler's pods."""
    return {pod["metadata"]["name"] for pod in cluster.pods()}


def configurations(cluster):
    """Give the names of the configurations that pods are started with."""
    found = (one["metadata"]["name"] for one in cluster.get("configmaps")["items"])
    return [name for name in found if name.startswith("berth-main-config-")]


def test_overlays(tmp_path):
    """The API server takes every object of every overlay, with nothing left over that it would change."""
    cluster = Installation(tmp_path)
    try:
        cluster.start_sandbox()
        for definition in (MONITOR, RULES):
            cluster.kubectl("create", "-f", "-", stdin=definition)
        for kinds in ("crds", "third-party-crds"):
            cluster.kubectl("apply", "-k", str(KUSTOMIZE / kinds))
        for overlay in (KUSTOMIZE / "overlays").iterdir():
            cluster.kubectl("apply", "-k", str(overlay))
        again = cluster.kubectl("apply", "-k", str(overlay))
    finally:
        cluster.stop()

    # Of disruption budgets kubectl always patches the selector, which says `patchStrategy: replace`.
    changed = [line for line in again.splitlines() if not line.endswith(" unchanged")]
    assert [] == [line for line in changed if not line.startswith("poddisruptionbudget.policy/")]


def test_leader_gone(cluster):
    """A leader that is killed or deleted is followed by the standby, and the Scheduler's condition holds."""
    cluster.install(KUSTOMIZE / "overlays" / "sandbox")
    cluster.patch("scheduler", "main", {"spec": {"replicas": 2}})
    cluster.until(
        lambda: cluster.condition("Available")[2].startswith("2 of 2"), "both replicas are available"
    )
    cluster.until(lambda: cluster.condition("Leading")[1] == "Leading", "one leads")
    with conditions_over_time(cluster, "Leading") as seen:
        cluster.until(seen, "the condition is followed")
        followed(cluster, "killed", cluster.kill)
        followed(cluster, "deleted", lambda leader: delete(cluster, leader))
        cluster.until(lambda: seen()[-1] == ["True", "Leading"], "the condition is as before")

        statuses, reasons = map(set, zip(*seen(), strict=True))
        assert {"True"} == statuses
        # On a busy machine a standby may report that the lease did not answer in time.
        assert {"Leading", "HandOver"} <= reasons


def followed(cluster, how, end):
    """End the pod that leads; no pod that comes meanwhile is lost."""
    leader = cluster.until(cluster.leader, "one leads")
    before = cluster.get("lease", "berth-main")["spec"]
    end(leader)
    names = [f"{how}-{number}" for number in range(3)]
    for name in names:
        cluster.submit(name, "berth")
    cluster.until(lambda: all(map(cluster.is_bound, names)), "the other one binds")

    # A leader that is deleted may still bind them while it ends.
    cluster.until(
        lambda: (
            cluster.get("lease", "berth-main")["spec"]["holderIdentity"] not in ("", before["holderIdentity"])
        ),
        "the other one leads",
    )
    assert before["leaseTransitions"] + 1 == cluster.get("lease", "berth-main")["spec"]["leaseTransitions"]


def delete(cluster, pod):
    """Delete a pod, and do not wait."""
    cluster.kubectl("delete", "pod", pod["metadata"]["name"], "-n", SYSTEM, "--wait=false")


@contextmanager
def conditions_over_time(cluster, kind):
    """Follow a condition of the Scheduler; gives status and reason of each version that kubectl printed."""
    log = cluster.folder / "conditions"
    shown = f'jsonpath={{.status.conditions[?(@.type=="{kind}")].status}} '
    shown += f'{{.status.conditions[?(@.type=="{kind}")].reason}}{{"\\n"}}'
    command = [str(BIN / "kubectl"), "get", "scheduler", "main", "-n", SYSTEM, "--watch", "-o", shown]
    with (
        log.open("w") as output,
        subprocess.Popen(command, env=cluster.environment, stdout=output) as process,
    ):
        try:
            yield lambda: [line.split() for line in log.read_text().splitlines()]
        finally:
            process.terminate()
