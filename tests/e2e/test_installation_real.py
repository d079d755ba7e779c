"""The operator on a real API server, where its programs are at hand: KUBEBUILDER_ASSETS, see docs/sandbox.md.

With RBAC, the admission plugins of a cluster and kube-controller-manager; the sandbox plays the same in
tests/unit/operator/test_confinement.py.
"""

import json

import pytest

from tests.e2e.installation import KUSTOMIZE, SYSTEM
from tests.e2e.real_installation import RealInstallation
from tests.unit.operator.at_work import MONITOR

pytestmark = pytest.mark.e2e
IN = ("-n", SYSTEM)


def started(folder, overlay):
    """A cluster with the operator, and all plugins' kinds."""
    found = RealInstallation(folder)
    found.start()
    found.kubectl("create", "-f", "-", stdin=MONITOR)
    found.apply("third-party-crds")
    found.install(KUSTOMIZE / "overlays" / overlay)
    return found


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    found = started(tmp_path_factory.mktemp("real"), "all-plugins")
    try:
        yield found
    finally:
        found.stop()


def profile(name, *disabled):
    """A profile without some plugins."""
    sets = {"multiPoint": {"disabled": [{"name": one} for one in disabled]}}
    return {"profiles": [{"schedulerName": name, "plugins": sets}]}


def test_available(cluster):
    """With every plugin the Scheduler becomes available, and the operator is denied nothing."""
    cluster.until(lambda: cluster.condition("Available")[0] == "True", "it is available")

    assert "forbidden" not in (cluster.folder / "operator.log").read_text()


@pytest.mark.parametrize("overlay", ["all-plugins", "ha"])
def test_applied_again(cluster, overlay):
    """An overlay that is applied again changes nothing, but for what kubectl always patches."""
    cluster.apply(f"overlays/{overlay}")
    again = cluster.apply(f"overlays/{overlay}")
    cluster.apply("overlays/all-plugins")

    assert [] == [line for line in again if not line.startswith("poddisruptionbudget.policy/")]


def test_foreign_objects(cluster):
    """What was there before is left as it was, with no rights for its service account, and stays."""
    cluster.kubectl("create", "serviceaccount", "berth-foo", *IN)
    before = cluster.get("serviceaccount", "berth-foo")
    cluster.schedulers(("foo", profile("foo")))
    cluster.until(lambda: cluster.is_degraded("foo", "NotControlled"), "it is named")
    assert "ServiceAccount berth-foo is there" in cluster.condition("Degraded", "foo")[2]
    bindings = cluster.get("clusterrolebindings", "-l", "berth.dev/scheduler=foo").get("items", [])
    cluster.kubectl("delete", "scheduler", "foo", *IN)

    assert ([], before) == (bindings, cluster.get("serviceaccount", "berth-foo"))


def test_reserved_name(cluster):
    """A Scheduler that would have the operator's own objects is refused."""
    body = {"apiVersion": "berth.dev/v1alpha1", "kind": "Scheduler", "spec": profile("x")}
    given = body | {"metadata": {"name": "operator", "namespace": SYSTEM}}

    assert "give it another name" in cluster.kubectl("create", "-f", "-", stdin=given, fails=True)


def test_owner_removed(cluster):
    """With OwnerReferencesPermissionEnforcement an object without owner is refused, the others are kept."""
    cluster.schedulers(("owned", profile("owned")))
    cluster.until(lambda: cluster.condition("Available", "owned")[0] == "True", "it is available")
    patch = '{"metadata":{"ownerReferences":null}}'
    cluster.kubectl("patch", "service", "berth-owned", *IN, "--type=merge", "-p", patch)
    cluster.until(lambda: cluster.is_degraded("owned", "NotControlled"), "the Service is named")
    cluster.kubectl("scale", "deployment", "berth-owned", *IN, "--replicas=0")
    cluster.until(
        lambda: cluster.get("deployment", "berth-owned")["spec"]["replicas"] == 1, "replicas are put back"
    )


def test_cannot_be_created(cluster):
    """What the API server says of pods that it turns down is the Scheduler's condition."""
    cluster.schedulers(("nope", profile("nope") | {"pod": {"priorityClassName": "nope"}}))
    cluster.until(lambda: cluster.is_degraded("nope", "ReplicaFailure"), "it is told")

    assert "no PriorityClass with name nope was found" in cluster.condition("Degraded", "nope")[2]


def test_rights_until_last_pod(cluster):
    """While a rollout is paused the old pods keep their rights; they go with the last of those pods."""
    cluster.schedulers(("fewer", profile("fewer")))
    cluster.until(lambda: cluster.condition("Progressing", "fewer")[1] == "RolledOut", "it is rolled out")
    fewer = profile("fewer", "DefaultPreemption") | {"rollout": {"paused": True}}
    cluster.patch("scheduler", "fewer", {"spec": fewer})
    cluster.until(lambda: cluster.condition("Progressing", "fewer")[1] == "Paused", "it is paused")
    binding = ("clusterrolebinding", f"berth-scheduler-preemption:{SYSTEM}:fewer")
    assert cluster.get(*binding)
    cluster.patch("scheduler", "fewer", {"spec": {"rollout": {"paused": False}}})
    cluster.until(lambda: not cluster.get(*binding), "the right is withdrawn")


def test_columns(cluster):
    """`kubectl get` shows every profile."""
    expected = {"load-aware", "gpu-share", "capacity", "berth"}
    cluster.until(lambda: cluster.get("scheduler", "main").get("status"), "it has a status")
    shown = cluster.kubectl("get", "scheduler", "main", *IN, "--no-headers").split()[1]

    assert expected == set(json.loads(shown))


def test_uninstalled(tmp_path):
    """Deleting an overlay leaves nothing of it, and all kinds with what others have of them."""
    cluster = started(tmp_path, "all-plugins")
    try:
        cluster.until(lambda: cluster.condition("Available")[0] == "True", "it is available")
        group = {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "spec": {"minMember": 2}}
        cluster.kubectl("create", "-f", "-", stdin=group | {"metadata": {"name": "theirs"}})
        cluster.kubectl("delete", "-k", str(KUSTOMIZE / "overlays/all-plugins"))
        kinds = "clusterroles,clusterrolebindings,priorityclasses,namespaces"
        cluster.until(lambda: "berth" not in cluster.kubectl("get", kinds, "-o", "name"), "nothing is left")

        assert "theirs" == cluster.get("podgroup", "theirs", namespace="default")["metadata"]["name"]
        assert cluster.get("crd", "schedulers.berth.dev")
    finally:
        cluster.stop()
