"""The operator on a real API server, where its programs are at hand: KUBEBUILDER_ASSETS, see docs/sandbox.md.

With RBAC, the admission plugins of a cluster and kube-controller-manager; the sandbox plays the same in
tests/unit/operator/test_confinement.py.
"""

import asyncio
import base64
import json
import os
from itertools import count

import pytest
from cryptography import x509

from berth.client import Api, load_endpoint
from berth.client.errors import RejectedError
from berth.operator.kinds import AUTHORITY, EXPLAIN_API, SERVING_SECRET
from tests.e2e.installation import KUSTOMIZE, SYSTEM, Installation
from tests.e2e.operated_installation import OPERATOR, RealInstallation, operated
from tests.suite import PATIENCE_SECONDS
from tests.unit.client.conftest import transport_to
from tests.unit.operator import kit
from tests.unit.operator.bad_specs import SCHEDULERS as REPORTED
from tests.unit.operator.test_definitions import BAD_PLUGINS, BAD_SCHEDULERS

pytestmark = pytest.mark.e2e
IN = ("-n", SYSTEM)
DEGRADED = ("Degraded", "True")
REPORTED_SECONDS = 5.0
"""How long a condition may take, from the moment at which the API server has a bad spec."""
BERTH = f"/apis/berth.dev/v1alpha1/namespaces/{SYSTEM}"
REFUSED = [
    (
        {
            key: value
            for key, value in ({"profiles": [{"schedulerName": "packing"}]} | spec).items()
            if value is not None
        },
        field,
    )
    for spec, field, _ in BAD_SCHEDULERS
]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    with operated(tmp_path_factory.mktemp("real"), "all-plugins") as found:
        yield found


class Administrator:
    """Creates bad objects, one at a time."""

    def __init__(self, api):
        self.api, self.names = api, count()

    async def is_refused(self, plural, spec):
        """Say whether the API server refuses it."""
        try:
            await self._create(plural, "refused", spec)
        except RejectedError:
            return True
        return False

    async def message(self, spec):
        """Give what the condition says of a bad spec, and take the Scheduler away again."""
        name = f"bad-{next(self.names)}"
        await self._create("schedulers", name, {"profiles": [{"schedulerName": "packing"}], **spec})
        found = ""
        try:
            async with asyncio.timeout(REPORTED_SECONDS):
                while not found:
                    await asyncio.sleep(0.05)
                    found = await self._complaint(name)
        except TimeoutError:
            return f"no condition within {REPORTED_SECONDS:g} seconds"
        await self.api.call("DELETE", f"{BERTH}/schedulers/{name}")
        return found

    async def _complaint(self, name):
        status = json.loads(await self.api.call("GET", f"{BERTH}/schedulers/{name}")).get("status", {})
        bad = (one for one in status.get("conditions", ()) if (one["type"], one["status"]) == DEGRADED)
        return next((one["message"] for one in bad), "")

    async def _create(self, plural, name, spec):
        kind = {"schedulers": "Scheduler", "schedulerplugins": "SchedulerPlugin"}[plural]
        body = {"apiVersion": "berth.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}
        await self.api.call("POST", f"{BERTH}/{plural}", json.dumps(body).encode())


def profile(name, *disabled):
    """A profile without some plugins."""
    sets = {"multiPoint": {"disabled": [{"name": one} for one in disabled]}}
    return {"profiles": [{"schedulerName": name, "plugins": sets}]}


def test_available(cluster):
    """With every plugin the Scheduler becomes available, and the operator is denied nothing."""
    cluster.until(lambda: cluster.condition("Available")[0] == "True", "it is available")

    # What the API server says of its rights; pods are forbidden by admission, too.
    assert f'{OPERATOR}" cannot' not in (cluster.folder / "operator.log").read_text().replace("\\", "")


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


def test_confined(cluster):
    """Editors of a namespace cannot make Schedulers, and the operator cannot make pods' owners in it."""
    editor = ("create", "rolebinding", "ed", "--clusterrole=edit", "--user=ed", "-n", "default")
    cluster.kubectl(*editor)
    asked = [
        ("ed", "create", "schedulers.berth.dev", "default"),
        ("ed", "patch", "schedulerplugins.berth.dev", "default"),
        (OPERATOR, "create", "deployments.apps", "default"),
        (OPERATOR, "create", "serviceaccounts", "default"),
        (OPERATOR, "delete", "pods", SYSTEM),
        (OPERATOR, "create", "pods", SYSTEM),
    ]
    cluster.until(lambda: cluster.may("ed", "create", "deployments.apps", "default"), "edit is bound")

    assert [] == [one for one in asked if cluster.may(*one)]
    assert cluster.may(OPERATOR, "create", "deployments.apps", SYSTEM)


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
    cluster.until(lambda: cluster.is_degraded("nope", "ReplicaFailure"), "it is reported")

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
    expected = {"load-aware", "gpu-share", "berth"}
    cluster.until(lambda: cluster.get("scheduler", "main").get("status"), "it has a status")
    shown = cluster.kubectl("get", "scheduler", "main", *IN, "--no-headers").split()[1]

    assert expected == set(json.loads(shown))


def test_certificates(cluster):
    """A scheduler's certificate is signed by what its ConfigMap says; the operator has two by name."""
    cluster.schedulers(("certified", profile("certified")))
    cluster.until(lambda: cluster.get("configmap", "berth-certified-ca"), "its authority is published")
    trusted = cluster.get("configmap", "berth-certified-ca")["data"]["ca.crt"]
    data = cluster.until(lambda: cluster.get("secret", SERVING_SECRET).get("data"), "it is issued")
    certificate = x509.load_pem_x509_certificate(base64.b64decode(data["certified.crt"]))
    certificate.verify_directly_issued_by(x509.load_pem_x509_certificate(trusted.encode()))
    account = f"--as=system:serviceaccount:{SYSTEM}:berth-operator"
    asked = [
        ("secret", False),
        ("secret/other", False),
        (f"secret/{SERVING_SECRET}", True),
        (f"secret/{AUTHORITY}", True),
    ]
    may = [
        cluster.kubectl("auth", "can-i", "patch", one, account, *IN, fails=not named).strip()
        for one, named in asked
    ]

    assert ["yes", "yes"] == may[2:]


async def test_hundred_bad_specs(cluster):
    """Bad specs are refused, or a condition that names the field comes within its five seconds."""
    endpoint = load_endpoint(kubeconfig=str(cluster.kubeconfig), environ={})
    async with transport_to(endpoint) as transport:
        admin = Administrator(Api(transport))
        unnoticed = [field for spec, field in REFUSED if not await admin.is_refused("schedulers", spec)]
        unnoticed += [
            field
            for spec, field, _ in BAD_PLUGINS
            if not await admin.is_refused("schedulerplugins", kit.plugin(**spec)["spec"])
        ]
        unnoticed += [
            (field, json.dumps(spec), said)
            for spec, field in REPORTED
            if field not in (said := await admin.message(spec))
        ]

    assert [] == unnoticed
    assert 100 <= len(REFUSED) + len(BAD_PLUGINS) + len(REPORTED)


@pytest.mark.parametrize("operator_first", [True, False], ids=["as documented", "all at once"])
def test_uninstalled(tmp_path, operator_first):
    """Deleting an overlay leaves nothing of it, and all kinds; as documented nothing is refused."""
    with operated(tmp_path, "all-plugins") as cluster:
        cluster.until(lambda: cluster.condition("Available")[0] == "True", "it is available")
        cluster.until(lambda: cluster.get("apiservice", EXPLAIN_API), "pods are explained")
        group = {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "spec": {"minMember": 2}}
        cluster.kubectl("create", "-f", "-", stdin=group | {"metadata": {"name": "theirs"}})
        before = len(log_of_operator(cluster))
        if operator_first:
            cluster.kubectl("delete", "schedulers,schedulerplugins", "--all", "-A")
            cluster.processes[-1].terminate()
            assert 0 == cluster.processes[-1].wait(PATIENCE_SECONDS)
        cluster.kubectl("delete", "--ignore-not-found", "-k", str(KUSTOMIZE / "overlays/all-plugins"))
        kinds = "clusterroles,clusterrolebindings,priorityclasses,namespaces"
        cluster.until(lambda: "berth" not in cluster.kubectl("get", kinds, "-o", "name"), "nothing is left")
        cluster.until(lambda: not cluster.get("apiservice", EXPLAIN_API), "the group of explanations goes")

        assert "theirs" == cluster.get("podgroup", "theirs", namespace="default")["metadata"]["name"]
        assert cluster.get("crd", "schedulers.berth.dev")
        refused = [
            line
            for line in log_of_operator(cluster)[before:]
            if line[0] in "WE" and ("Forbidden" in line or "Unauthorized" in line)
        ]
        # All at once kubectl deletes the operator's roles before the operator has ended.
        assert [] == refused or not operator_first


def log_of_operator(cluster):
    """What it has logged so far, line by line."""
    return (cluster.folder / "operator.log").read_text().splitlines()


def test_other_namespace(tmp_path):
    """A kustomization with another namespace gives the operator there its rights."""
    base = os.path.relpath(KUSTOMIZE / "overlays/secondary", tmp_path.resolve())
    (tmp_path / "kustomization.yaml").write_text(json.dumps({"namespace": "sched-prod", "resources": [base]}))
    there = "system:serviceaccount:sched-prod:berth-operator"
    cluster = RealInstallation(tmp_path)
    try:
        cluster.start_sandbox()
        Installation.install(cluster, tmp_path)
        cluster.until(
            lambda: cluster.may(there, "list", "schedulers.berth.dev", "sched-prod"), "it has rights"
        )

        assert cluster.may(there, "create", "clusterrolebindings.rbac.authorization.k8s.io", "")
    finally:
        cluster.stop()
