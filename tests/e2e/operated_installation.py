"""The operator beside a cluster, under its own rights: on the sandbox, or on a real API server."""

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from tests.e2e.api_servers import api_server_called
from tests.e2e.installation import KUSTOMIZE, SYSTEM, Installation
from tests.unit.operator.at_work import MONITOR, RULES

OPERATOR = f"system:serviceaccount:{SYSTEM}:berth-operator"
_MANAGER = "kube-controller-manager"


def controller_manager():
    """The program beside kube-apiserver; a test is skipped where there is none."""
    api_server_called("real")
    found = Path(os.environ.get("KUBEBUILDER_ASSETS", "/usr/local/kubebuilder/bin")) / _MANAGER
    if not os.access(found, os.X_OK):
        pytest.skip(f"no {_MANAGER} in {found.parent}")
    return found


class OperatedInstallation(Installation):
    """Pods run as far as fake kubelets go; the operator runs beside the cluster, as its account."""

    def start_sandbox(self):
        """Start the API server in memory, with its controllers."""
        self._start_api("--controllers")

    def _start_api(self, *flags):
        command = ["sandbox", "up", *flags, f"--kubeconfig={self.kubeconfig}", "--authorization-mode=RBAC"]
        self._spawn("sandbox", command)
        log = self.folder / "sandbox.log"
        self.until(lambda: "sandbox ready" in log.read_text(), "the control plane starts")

    def install(self, overlay):
        """Apply kinds and overlay, and start the operator."""
        super().install(overlay)
        self.start_operator("operator")

    def start_operator(self, name, tree=None):
        """Start the operator, of an earlier version's tree if given."""
        document = yaml.safe_load(self.kubeconfig.read_text())
        token = self.kubectl("create", "token", "berth-operator", "-n", SYSTEM, "--duration=1h")
        document["users"][0]["user"] = {"token": token.strip()}
        account = self.folder / "operator.kubeconfig"
        account.write_text(yaml.safe_dump(document))
        flags = [f"--kubeconfig={account}", "--scheduler-image=berth/scheduler:test", "--secure-port=0"]
        if tree is None:
            flags.append("--explain-service=berth-explain")
        path = (
            {"PYTHONPATH": os.pathsep.join(map(str, (tree / "core", *tree.glob("core/*/src"))))}
            if tree is not None
            else {}
        )
        command = [sys.executable, "-m", "berth.cli", "operator", *flags]
        with (self.folder / f"{name}.log").open("w") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, **path})
        self.processes.append(process)
        return process

    def schedulers(self, *documents):
        """Create Schedulers of these (name, spec)."""
        self._create("Scheduler", documents)

    def plugins(self, *documents):
        """Create SchedulerPlugins of these (name, spec)."""
        self._create("SchedulerPlugin", documents)

    def is_degraded(self, name, reason):
        """Say whether a Scheduler is degraded for that reason."""
        return self.condition("Degraded", name)[:2] == ("True", reason)

    def apply(self, folder, root=KUSTOMIZE):
        """Apply a kustomization; gives the lines of what changed."""
        lines = self.kubectl("apply", "-k", str(root / folder)).splitlines()
        return [line for line in lines if not line.endswith(" unchanged")]

    def may(self, user, verb, resource, namespace=SYSTEM):
        """Say whether a user may do that; a resource is PLURAL or PLURAL.GROUP."""
        plural, _, group = resource.partition(".")
        asked = {"verb": verb, "group": group, "resource": plural, "namespace": namespace}
        head = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview"}
        given = head | {"spec": {"user": user, "resourceAttributes": asked}}
        path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
        return json.loads(self.kubectl("create", "--raw", path, "-f", "-", stdin=given))["status"]["allowed"]

    def _create(self, kind, documents):
        for name, spec in documents:
            body = {"apiVersion": "berth.dev/v1alpha1", "kind": kind, "spec": spec}
            self.kubectl("create", "-f", "-", stdin=body | {"metadata": {"name": name, "namespace": SYSTEM}})


class RealInstallation(OperatedInstallation):
    """With kube-apiserver and kube-controller-manager."""

    def start_sandbox(self):
        """Start the control plane."""
        manager = controller_manager()
        self._start_api("--real")
        # No kubelet renews the nodes' leases: after a while the controller would take them for dead.
        controllers = "--controllers=*,-node-lifecycle-controller"
        command = [manager, f"--kubeconfig={self.kubeconfig}", "--leader-elect=false", controllers]
        command.append("--secure-port=0")
        with (self.folder / "manager.log").open("w") as output:
            self.processes.append(subprocess.Popen(command, stdout=output, stderr=output))


INSTALLATIONS = {"in-memory": OperatedInstallation, "real": RealInstallation}


@contextmanager
def operated(folder, overlay, installation=RealInstallation):
    """A cluster with the operator and an overlay, and all plugins' kinds, until the block ends."""
    found = installation(folder)
    try:
        found.start()
        for definition in (MONITOR, RULES):
            found.kubectl("create", "-f", "-", stdin=definition)
        found.apply("third-party-crds")
        found.install(KUSTOMIZE / "overlays" / overlay)
        yield found
    finally:
        found.stop()
