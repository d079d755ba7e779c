"""A developer has pods explained through the API server in memory and, where there is one, a real one."""

import json
import subprocess
from base64 import b64encode
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest

from berth.demo.processes import program
from berth.operator.certificates import Authorities
from berth.sandbox.free_port import free_port
from tests.e2e.api_servers import api_server_called
from tests.e2e.conftest import node, pod
from tests.e2e.test_real_control_plane import started
from tests.suite import PATIENCE_SECONDS

pytestmark = pytest.mark.e2e

SERVICE = "berth-explain"
BASE = Path(__file__).parents[2] / "kustomize" / "base"


def explanation(namespace):
    """The path of an explanation."""
    return f"/apis/explain.berth.dev/v1alpha1/namespaces/{namespace}/podexplanations/p"


def objects(port, authority, role):
    """Two namespaces, a pod in each that fits nowhere, a developer with a role in the first, and the API.

    Who runs the cluster has the role for nodes, profiles and queues.
    """
    large = pod("p")
    large["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "400"
    for namespace in ("berth-system", "team-a", "team-b"):
        yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    yield node("n1")
    for namespace in ("team-a", "team-b"):
        yield large | {"metadata": {**large["metadata"], "namespace": namespace}}
    account = {"name": "developer", "namespace": "team-a"}
    yield {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account}
    group = "rbac.authorization.k8s.io"
    yield {
        "apiVersion": f"{group}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "developer", "namespace": "team-a"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "ServiceAccount", **account}],
    }
    account = {"name": "operator", "namespace": "berth-system"}
    yield {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account}
    yield {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "operator"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "berth-cluster-viewer"},
        "subjects": [{"kind": "ServiceAccount", **account}],
    }
    # This machine's: there is no network of pods that a Service could lead to.
    yield {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": SERVICE, "namespace": "berth-system"},
        "spec": {"type": "ExternalName", "externalName": "localhost"},
    }
    yield {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": "v1alpha1.explain.berth.dev"},
        "spec": {
            "group": "explain.berth.dev",
            "version": "v1alpha1",
            "service": {"namespace": "berth-system", "name": SERVICE, "port": port},
            "caBundle": b64encode(authority.encode()).decode(),
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
        },
    }


@contextmanager
def scheduling(folder, kubeconfig, port, authorities):
    """A scheduler of this machine with a certificate for the Service's name."""
    now = datetime.now(UTC)
    files = folder / "tls.crt", folder / "tls.key"
    for file, pem in zip(
        files, authorities.signer(now).issue([f"{SERVICE}.berth-system.svc"], now), strict=True
    ):
        file.write_bytes(pem)
    command = [
        *(program("berth"), "scheduler", "--leader-elect=false", f"--kubeconfig={kubeconfig}"),
        *("--bind-address=127.0.0.1", f"--secure-port={port}"),
        *(f"--tls-cert-file={files[0]}", f"--tls-private-key-file={files[1]}"),
    ]
    with (folder / "scheduler.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        yield
    finally:
        process.terminate()
        process.wait(PATIENCE_SECONDS)


# It takes a controller manager to add rules to the roles that aggregate others.
@pytest.mark.parametrize(("name", "role"), [("in memory", "view"), ("real", "berth-viewer")])
def test_a_developer(name, role, tmp_path):
    """Who may view one namespace has a pod there explained, and is refused next door."""
    server = api_server_called(name)
    admin, port = tmp_path / "kubeconfig", free_port()
    authorities = Authorities().renewed(datetime.now(UTC))
    with started(server.command(admin, "--authorization-mode=RBAC"), admin) as (_, cluster):
        items = list(objects(port, authorities.bundle(), role))
        cluster.kubectl("apply", "-f", str(BASE / "user_roles.yaml"))
        for one in items:
            cluster.kubectl("create", "-f", "-", stdin=one)
        with scheduling(tmp_path, admin, port, authorities):
            cluster.kubectl(
                "wait", "--for=condition=Available", "apiservice/v1alpha1.explain.berth.dev", "--timeout=55s"
            )
            developer, operator = tmp_path / "developer", tmp_path / "operator"
            for file, namespace in ((developer, "team-a"), (operator, "berth-system")):
                document = json.loads(admin.read_text())
                token = cluster.kubectl("create", "token", file.name, "-n", namespace).strip()
                document["users"][0]["user"] = {"token": token}
                file.write_text(json.dumps(document))
            seen = run("kubectl", "get", "--raw", explanation("team-a"), "--kubeconfig", developer)
            listed = run("kubectl", "get", "podexplanations", "p", "-n", "team-a", "--kubeconfig", developer)
            named = ["-o", "json", "--kubeconfig", developer]
            explained = run("berth", "explain", "pod", "p", "-n", "team-a", *named)
            refused = run("berth", "explain", "pod", "p", "-n", "team-b", *named)
            raw = run("kubectl", "get", "--raw", explanation("team-b"), "--kubeconfig", developer)
            queue = run("berth", "queue", "--kubeconfig", developer)
            queued = run("berth", "queue", "--kubeconfig", operator)
            row = run("kubectl", "get", "nodeexplanations", "n1", "--kubeconfig", operator)

    for code, said, complaints in (seen, explained):
        assert (0, "team-a/p") == (code, json.loads(said)["pod"]), complaints
    assert "default-scheduler" in listed[1], listed
    for code, _, complaints in (refused, raw):
        assert 0 != code
        assert 'cannot get resource "podexplanations" in API group "explain.berth.dev"' in complaints
    assert 'cannot get resource "queues" in API group "explain.berth.dev" at the cluster scope' in queue[2]
    assert (0, "profiles default-scheduler") == (queued[0], queued[1].splitlines()[0]), queued
    assert ["NAME", "PODS", "WAITING", "FITTING", "CAUSE"] == row[1].splitlines()[0].split(), row
    assert row[1].splitlines()[1].startswith("n1")


def run(*command):
    """Exit code, standard output and standard error of a command."""
    done = subprocess.run(
        [program(command[0]), *map(str, command[1:])],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
    )
    return done.returncode, done.stdout, done.stderr
