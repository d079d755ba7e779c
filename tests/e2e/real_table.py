"""A real kube-apiserver and a scheduler process, on which a table's clusters are built in turn."""

import asyncio
import json
import subprocess
import time
from contextlib import contextmanager, suppress

from berth.client.api import Api
from berth.client.authentication.credentials import load_endpoint
from berth.client.errors import NotFoundError
from berth.client.resources import (
    CSI_NODES,
    DEVICE_CLASSES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    POD_GROUPS,
    PODS,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    STORAGE_CLASSES,
    Resource,
)
from berth.client.transport import Transport
from berth.demo.processes import program
from berth.demo.surface import Surface
from berth.objects.pods.pod import Pod, PodStatus
from berth.sandbox.patches.json_patch import json_patch
from tests.e2e.api_servers import api_server_called
from tests.e2e.test_real_control_plane import started
from tests.explain.asking import as_json
from tests.explain.pending_pods import DEVICE_TEMPLATE
from tests.scenarios.kit.cluster import Cluster
from tests.suite import PATIENCE_SECONDS

LOOK_SECONDS = 0.1
RESOURCE_CLAIM_TEMPLATES = Resource("resource.k8s.io", "v1", "resourceclaimtemplates", namespaced=True)
PRIORITY_CLASSES = Resource("scheduling.k8s.io", "v1", "priorityclasses", namespaced=False)
KINDS = {
    "Pod": PODS,
    "PodGroup": POD_GROUPS,
    "PersistentVolumeClaim": PERSISTENT_VOLUME_CLAIMS,
    "PersistentVolume": PERSISTENT_VOLUMES,
    "StorageClass": STORAGE_CLASSES,
    "CSINode": CSI_NODES,
    "ResourceClaim": RESOURCE_CLAIMS,
    "ResourceClaimTemplate": RESOURCE_CLAIM_TEMPLATES,
    "ResourceSlice": RESOURCE_SLICES,
    "DeviceClass": DEVICE_CLASSES,
    "Node": NODES,
}
"""In the order in which they are deleted."""
STATUS_APART = ("PersistentVolume", "ResourceClaim")
"""What they are created with has no status: it is written afterwards."""
CONFIGURATION = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {{kubeconfig: {kubeconfig}}}
leaderElection: {{leaderElect: false}}
podInitialBackoffSeconds: 1
podMaxBackoffSeconds: 1
"""
WRITTEN = ("name", "labels", "annotations")
"""What users write of the metadata."""
GATES = "GenericWorkload=true,GangScheduling=true"
EXPLANATION = "/apis/explain.berth.dev/v1alpha1/namespaces/default/podexplanations/p"


BERTH = (program("berth"), "scheduler")


@contextmanager
def real_table(folder, scheduler=BERTH):
    """A RealTable; the test is skipped where the programs of a control plane are not at hand."""
    server, kubeconfig = api_server_called("real"), folder / "kubeconfig"
    configuration, surface = folder / "scheduler.yaml", Surface.free()
    configuration.write_text(CONFIGURATION.format(kubeconfig=kubeconfig))
    command = [
        *(*scheduler, f"--config={configuration}", f"--feature-gates={GATES}"),
        *("--bind-address=127.0.0.1", f"--secure-port={surface.port}"),
        "--authorization-always-allow-paths=/readyz,/apis/explain.berth.dev/*",
    ]
    with (
        asyncio.Runner() as runner,
        started(server.command(kubeconfig, pod_groups=True), kubeconfig),
        (folder / "scheduler.log").open("wb") as log,
    ):
        transport = Transport(load_endpoint(kubeconfig=str(kubeconfig)), max_connections=4)
        process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            table = RealTable(runner, Api(transport), surface)
            assert table.until(table.is_ready, bool), (folder / "scheduler.log").read_text()
            yield table
        finally:
            process.terminate()
            process.wait(PATIENCE_SECONDS)
            runner.run(transport.aclose())


class RealTable:
    """Builds the clusters of the table's cases by the methods that the scenarios' cluster has for it."""

    add_node, add_pod = Cluster.add_node, Cluster.add_pod

    def __init__(self, runner, api, surface):
        self._runner = runner
        self._api = api
        self._surface = surface

    def add(self, obj):
        """Create an object, and gives it as it was.

        Claims that controllers make are not made before their pod; one of devices gives its template.
        """
        kind = "Pod" if isinstance(obj, Pod) else type(obj).__name__
        document = as_json(obj.written() if isinstance(obj, Pod) else obj)
        if not document["metadata"].get("ownerReferences"):
            self._create(kind, document)
        elif kind == "ResourceClaim":
            template = {"metadata": {"name": DEVICE_TEMPLATE}, "spec": {"spec": document["spec"]}}
            self._create("ResourceClaimTemplate", template)
        return obj

    def change_pod(self, name, *, status):
        """Write to a pod's status by field, as a controller does."""
        body = json.dumps({"status": as_json(PodStatus(**status))}).encode()
        path = PODS.path("default", name, "status")
        self._call("PATCH", path, body, content_type="application/merge-patch+json")

    def clear(self):
        """Delete all objects of the table's kinds."""
        for kind, resource in KINDS.items():
            for each in self._items(resource):
                self._delete(kind, each)

    def explained(self, claim):
        """The explanation of pod `p`, once the claim holds of it, or as it is in the end."""
        return self.until(self._explanation, claim)

    def condition(self, claim):
        """The message of pod `p`'s condition PodScheduled, once the claim holds of it, or in the end."""

        def said():
            conditions = self._read("Pod", "p").get("status", {}).get("conditions", ())
            return next((each["message"] for each in conditions if each["type"] == "PodScheduled"), None)

        return self.until(said, claim)

    def apply(self, proposal):
        """Do what is proposed: pods, claims and templates are made again, a node is changed or added."""
        kind, name, patch = proposal["target"]["kind"], proposal["target"]["name"], proposal["patch"]
        if kind != "Node":
            self._make_again(kind, name, patch)
            if kind == "ResourceClaimTemplate":
                self._make_again("Pod", "p", [])
        elif name:
            body, path = json.dumps(patch).encode(), NODES.path("", name)
            self._call("PATCH", path, body, content_type="application/json-patch+json")
        else:
            made = json_patch({}, patch)
            self._create(kind, made)
            self._publish_devices(made["metadata"]["name"])

    def _make_again(self, kind, name, patch):
        document = self._read(kind, name)
        self._delete(kind, document)
        self._create(kind, json_patch(document, patch))

    def _publish_devices(self, node):
        """Do what drivers do on a new node: they publish what they do on the first one."""
        for each in self._items(RESOURCE_SLICES):
            name = f"{each['metadata']['name']}-{node}"
            spec = {**each["spec"], "nodeName": node, "pool": {**each["spec"]["pool"], "name": name}}
            self._create("ResourceSlice", {"metadata": {"name": name}, "spec": spec})

    def is_ready(self):
        """Whether the scheduler knows everything."""
        return self._served("/readyz") is not None

    def _explanation(self):
        found = self._served(EXPLANATION)
        return None if found is None else json.loads(found)

    def _served(self, path):
        try:
            return self._surface.read(path)
        except OSError:
            return None

    @staticmethod
    def until(read, claim):
        """What is read, once the claim holds of it, or as it is in the end."""
        last = time.monotonic() + PATIENCE_SECONDS
        while True:
            found = read()
            if (found is not None and claim(found)) or time.monotonic() > last:
                return found
            time.sleep(LOOK_SECONDS)

    def _create(self, kind, document):
        document = acceptable(kind, document)
        if kind == "Pod":
            self._give_class(document)
        status = document.pop("status", None) if kind in STATUS_APART else None
        resource, name = KINDS[kind], document["metadata"]["name"]
        made = self._call("POST", resource.collection("default"), json.dumps(document).encode())
        if kind == "Pod":
            self._make_claims(made)
        if status:
            path = resource.path("default", name, "status")
            body = json.dumps({"status": status}).encode()
            self._call("PATCH", path, body, content_type="application/merge-patch+json")

    def _make_claims(self, pod):
        """Do what the controllers of ephemeral volumes and of resource claims do for a new pod."""
        name, spec = pod["metadata"]["name"], pod["spec"]
        for volume in spec.get("volumes", ()):
            if "ephemeral" in volume:
                made = volume["ephemeral"]["volumeClaimTemplate"]["spec"]
                self._give_claim("PersistentVolumeClaim", f"{name}-{volume['name']}", made, pod)
        for entry in spec.get("resourceClaims", ()):
            if template := entry.get("resourceClaimTemplateName"):
                made, claim = self._read("ResourceClaimTemplate", template), f"{name}-{entry['name']}-x"
                self._give_claim("ResourceClaim", claim, made["spec"]["spec"], pod)
                statuses = ({"name": entry["name"], "resourceClaimName": claim},)
                self.change_pod(name, status={"resource_claim_statuses": statuses})

    def _give_claim(self, kind, name, spec, pod):
        """Make a claim of the pod's, in the place of one that a former pod of that name had."""
        for each in self._items(KINDS[kind]):
            if each["metadata"]["name"] == name:
                self._delete(kind, each)
        called, uid = pod["metadata"]["name"], pod["metadata"]["uid"]
        owner = {"apiVersion": "v1", "kind": "Pod", "name": called, "uid": uid, "controller": True}
        document = {"metadata": {"name": name, "ownerReferences": [owner]}, "spec": spec}
        self._call("POST", KINDS[kind].collection("default"), json.dumps(document).encode())

    def _give_class(self, pod):
        """Name a class in the place of priority and preemption policy, which users may not give."""
        spec = pod["spec"]
        value, policy = spec.pop("priority", 0), spec.pop("preemptionPolicy", "PreemptLowerPriority")
        name = spec["priorityClassName"] = f"of-{value}-{policy.lower()}"
        if name not in {each["metadata"]["name"] for each in self._items(PRIORITY_CLASSES)}:
            made = {"metadata": {"name": name}, "value": value, "preemptionPolicy": policy}
            self._call("POST", PRIORITY_CLASSES.collection(), json.dumps(made).encode())

    def _delete(self, kind, document):
        resource, metadata = KINDS[kind], document["metadata"]
        path = resource.path("default", metadata["name"])
        if metadata.get("finalizers"):
            body = json.dumps({"metadata": {"finalizers": None}}).encode()
            self._call("PATCH", path, body, content_type="application/merge-patch+json")
        with suppress(NotFoundError):  # the sandbox's kubelet may be quicker
            self._call("DELETE", path, b'{"gracePeriodSeconds": 0}')

    def _read(self, kind, name):
        return self._call("GET", KINDS[kind].path("default", name))

    def _items(self, resource):
        return self._call("GET", resource.collection("default"))["items"]

    def _call(self, *arguments, **options):
        return json.loads(self._runner.run(self._api.call(*arguments, **options)))


def acceptable(kind, document):
    """The object as an API server takes it, which asks for more than schedulers read."""
    metadata = {key: value for key, value in document["metadata"].items() if key in WRITTEN}
    made = {**document, "metadata": metadata}
    match kind:
        case "Pod":
            made.pop("status", None)
            for container in made["spec"]["containers"]:
                for port in container.get("ports", ()):
                    port.setdefault("containerPort", port.get("hostPort", 80))
        case "PersistentVolume":
            made["spec"].get("claimRef", {}).pop("uid", None)
            if not made["spec"].get("csi"):
                made["spec"]["hostPath"] = {"path": "/data"}
        case "CSINode":
            for driver in made["spec"]["drivers"]:
                driver["nodeID"] = metadata["name"]
    return made
