"""A cluster with RBAC, controllers and real containers, for what is installed with kubectl."""

import json
import os
import signal
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from base64 import b64decode
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

from berth.client.resources import CONFIG_MAPS, LEASES, PODS, SCHEDULER_PLUGINS, SCHEDULERS, SERVICES
from berth.operator.kinds import DEPLOYMENTS
from tests.suite import PATIENCE_SECONDS

ROOT = Path(__file__).parents[2]
KUSTOMIZE = ROOT / "kustomize"
BIN = Path(sys.executable).parent
SYSTEM = "berth-system"
# Who places the pods of the operator and of schedulers, as kube-scheduler would.
FIRST_SCHEDULER = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {{kubeconfig: {kubeconfig}}}
leaderElection: {{leaderElect: false}}
"""
LOOK_SECONDS = 0.2
KINDS = {
    "configmap": CONFIG_MAPS,
    "configmaps": CONFIG_MAPS,
    "deployment": DEPLOYMENTS,
    "lease": LEASES,
    "pod": PODS,
    "pods": PODS,
    "scheduler": SCHEDULERS,
    "schedulerplugin": SCHEDULER_PLUGINS,
    "service": SERVICES,
}
"""What tests look at again and again: read over HTTP, since each kubectl takes a fifth of a CPU second."""


class Installation:
    """The processes, and kubectl pointed at them; commands of further images stand before the usual ones."""

    def __init__(self, folder, images=()):
        self.folder = folder
        self.images = tuple(images)
        self.kubeconfig = folder / "kubeconfig"
        self.environment = {**os.environ, "KUBECONFIG": str(self.kubeconfig), "HOME": str(folder)}
        self.processes = []

    def start(self):
        """Start sandbox and first scheduler; two nodes."""
        self.start_sandbox()
        self.start_first()
        for name in ("n1", "n2"):
            self.kubectl("create", "-f", "-", stdin=node(name))

    def start_first(self):
        """Start what places the pods of the operator and of schedulers."""
        configuration = self.folder / "first.yaml"
        configuration.write_text(FIRST_SCHEDULER.format(kubeconfig=self.kubeconfig))
        self._spawn("first", ["scheduler", f"--config={configuration}", "--secure-port=0"])

    def start_sandbox(self):
        """Start the sandbox alone."""
        images = [
            *self.images,
            f"berth/gpu-share:*={BIN}/berth-gpu-share",
            "berth/broken:*=",
            f"berth/*={BIN}/berth",
        ]
        flags = [f"--kubeconfig={self.kubeconfig}", "--authorization-mode=RBAC", "--controllers"]
        self._spawn("sandbox", ["sandbox", "up", *flags, *(f"--run-image={one}" for one in images)])
        self.until(self.kubeconfig.exists, "the sandbox starts")

    def stop(self):
        """End what was started."""
        for process in reversed(self.processes):
            process.terminate()
        for process in self.processes:
            process.wait(PATIENCE_SECONDS)

    def install(self, overlay):
        """Apply the kinds, then an overlay."""
        self.kubectl("apply", "-k", str(KUSTOMIZE / "crds"))
        # `kubectl wait` fails on a kind that has no conditions yet.
        self.until(self._knows_schedulers, "the kinds are there")
        self.kubectl("apply", "-k", str(overlay))

    def _knows_schedulers(self):
        conditions = self.get("crd", "schedulers.berth.dev").get("status", {}).get("conditions") or ()
        return ("Established", "True") in [(one["type"], one["status"]) for one in conditions]

    def kubectl(self, *arguments, stdin=None, fails=False):
        """Give what kubectl prints; with `fails`, what it complains about."""
        done = subprocess.run(
            [str(BIN / "kubectl"), *arguments],
            input=None if stdin is None else json.dumps(stdin),
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        assert fails == (done.returncode != 0), f"{arguments}: {done.stdout}{done.stderr}"
        return done.stderr if fails else done.stdout

    def get(self, kind, *arguments, namespace=SYSTEM):
        """Give the object of a name or those with the labels after `-l`; {} where there is none."""
        if kind not in KINDS:
            said = self.kubectl("get", kind, *arguments, "-n", namespace, "-o", "json", "--ignore-not-found")
            return json.loads(said or "{}")
        match arguments:
            case ("-l", labels):
                path = f"{KINDS[kind].collection(namespace)}?labelSelector={quote(labels)}"
            case (name,):
                path = KINDS[kind].path(namespace, name)
            case ():
                path = KINDS[kind].collection(namespace)
        return json.loads(self.ask(path) or "{}")

    def ask(self, path, body=None):
        """Give what the API server answers, as text; nothing where it knows no such object."""
        config = json.loads(self.kubeconfig.read_text())
        cluster, token = config["clusters"][0]["cluster"], config["users"][0]["user"].get("token")
        authority = b64decode(cluster.get("certificate-authority-data", "")).decode()
        request = urllib.request.Request(
            cluster["server"] + path,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"}
            | ({"Authorization": f"Bearer {token}"} if token else {}),
        )
        context = ssl.create_default_context(cadata=authority) if authority else None
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS, context=context) as answer:
                return answer.read().decode()
        except urllib.error.HTTPError as error:
            if error.code != 404:
                raise
            return ""

    def condition(self, kind, name="main"):
        """Give a condition of the Scheduler as (status, reason, message)."""
        conditions = self.get("scheduler", name).get("status", {}).get("conditions", ())
        found = next((one for one in conditions if one["type"] == kind), {})
        return tuple(found.get(field, "") for field in ("status", "reason", "message"))

    def patch(self, kind, name, patch):
        """Change a resource as a user would."""
        self.kubectl("patch", kind, name, "-n", SYSTEM, "--type=merge", "-p", json.dumps(patch))

    def pods(self, instance="main"):
        """Give a Scheduler's pods that are not going."""
        found = self.get("pods", "-l", f"berth.dev/scheduler={instance}").get("items", ())
        return [pod for pod in found if not pod["metadata"].get("deletionTimestamp")]

    def leader(self, instance="main"):
        """Give the pod that holds the lease, by what the replicas log; None while none does."""
        holder = self.get("lease", f"berth-{instance}").get("spec", {}).get("holderIdentity")
        for pod in self.pods(instance) if holder else ():
            log = f"{PODS.path(SYSTEM, pod['metadata']['name'], 'log')}?container=scheduler"
            if f'"became leader" identity="{holder}"' in self.ask(log):
                return pod
        return None

    def kill(self, pod):
        """End a pod's scheduler at once, so that it can finish nothing."""
        os.kill(int(self.process(pod).name), signal.SIGKILL)

    def process(self, pod):
        """Give the folder below /proc of a pod's scheduler; its arguments tell which it is."""
        listening = f"--bind-address={pod['status']['podIP']}".encode()
        for process in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if listening in (process / "cmdline").read_bytes().split(b"\0"):
                    return process
        raise AssertionError(f"no process listens on {pod['status']['podIP']}")

    def submit(self, name, scheduler, cpu="100m", labels=None):
        """Create a pod for a scheduler."""
        container = {"name": "main", "image": "nginx:1", "resources": {"requests": {"cpu": cpu}}}
        spec = {"schedulerName": scheduler, "containers": [container]}
        metadata = {"name": name, "labels": labels or {}}
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        self.ask(PODS.collection("default"), body)

    def is_bound(self, name):
        """Say whether a pod is on a node."""
        return bool(self.get("pod", name, namespace="default")["spec"].get("nodeName"))

    def until(self, claim, what, seconds=PATIENCE_SECONDS):
        """Look until the claim holds, and give its value; what did not come about is said with the logs."""
        deadline = time.monotonic() + seconds
        while (began := time.monotonic()) < deadline:
            if found := claim():
                return found
            # A look that starts kubectl takes most of a core, which what is waited for needs.
            time.sleep(max(LOOK_SECONDS, 2 * (time.monotonic() - began)))
        raise AssertionError(f"not in time: {what}\n{self.logs()}")

    def logs(self):
        """Give what there is to know about why nothing happens."""
        texts = [file.read_text()[-1500:] for file in self.folder.glob("*.log")]
        if self.kubeconfig.exists():
            texts.append(self.kubectl("get", "schedulers,deployments,pods", "-A", "-o", "wide"))
            for deployment in ("berth-operator", "berth-main"):
                command = [str(BIN / "kubectl"), "logs", "-n", SYSTEM, f"deploy/{deployment}", "--tail=20"]
                done = subprocess.run(
                    command, env=self.environment, capture_output=True, text=True, check=False
                )
                texts.append(done.stdout[-3000:])
        return "\n".join(texts)

    def _spawn(self, name, arguments):
        with (self.folder / f"{name}.log").open("w") as log:
            process = subprocess.Popen([str(BIN / "berth"), *arguments], stdout=log, stderr=log)
        self.processes.append(process)
        return process


def node(name):
    """A Ready node of eight cores."""
    status = {
        "capacity": {"cpu": "8", "memory": "16Gi", "pods": "110"},
        "conditions": [{"type": "Ready", "status": "True"}],
        "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
    }
    metadata = {"name": name, "labels": {"kubernetes.io/hostname": name}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status}


@contextmanager
def installation(folder, run_images):
    """A sandbox whose kubelet runs operator and schedulers, until the block ends."""
    found = Installation(folder, run_images)
    try:
        found.start()
        yield found
    finally:
        found.stop()
