"""Kueue itself beside Berth, on a real kube-apiserver with kube-controller-manager (docs/kueue.md).

KUEUE_TREE names a tree of kubernetes-sigs/kueue in which `bin/manager` is built; definitions and webhooks are
that tree's own. What a cluster's network does for webhooks is done here: they are reached by URL.
"""

import asyncio
import base64
import os
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
import yaml

from berth.client.resources import PODS, Resource
from berth.demo.processes import Child
from berth.sandbox.free_port import free_port
from berth.serving.self_signed import self_signed
from tests.e2e.api_servers import api_server_called
from tests.e2e.default_cluster import default_cluster
from tests.e2e.operated_installation import controller_manager
from tests.e2e.seen import LOOK_SECONDS, items
from tests.suite import BUILD_SECONDS, PATIENCE_SECONDS
from tests.unit.scheduler_at_work import node

pytestmark = pytest.mark.e2e

GROUP, VERSION = "kueue.x-k8s.io", "v1beta2"
QUEUE_NAME, RACK = f"{GROUP}/queue-name", "example.com/rack"
REQUIRED = f"{GROUP}/podset-required-topology"
JOBS = Resource("batch", "v1", "jobs", namespaced=True)
DEFINITIONS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", namespaced=False)
NAMESPACES = Resource("", "v1", "namespaces", namespaced=False)
PRIORITIES = Resource("scheduling.k8s.io", "v1", "priorityclasses", namespaced=False)
WEBHOOKS = {
    kind: Resource("admissionregistration.k8s.io", "v1", f"{kind.lower()}s", namespaced=False)
    for kind in ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
}
MOUNT = 'mount -t tmpfs none /etc && mkdir -p {0} && cp "$0"/tls.* {0} && exec "$@"'
IN_ITS_OWN_ETC = (
    *("unshare", "--user", "--map-root-user", "--mount", "sh", "-c"),
    MOUNT.format("/etc/kueue/metrics/certs"),
)
"""The manager reads certificates at a fixed place below /etc, where a cluster mounts them."""
OBJECTS = ("ResourceFlavor", "Topology", "ClusterQueue", "LocalQueue")


def tree():
    """Kueue's tree; a test is skipped where there is none."""
    found = os.environ.get("KUEUE_TREE", "")
    if not os.access(Path(found, "bin/manager"), os.X_OK):
        pytest.skip("no Kueue: KUEUE_TREE names no tree with bin/manager")
    return Path(found)


def resource_of(kind):
    """Kueue's resource of that kind."""
    plural = {"Topology": "topologies"}.get(kind, f"{kind.lower()}s")
    return Resource(GROUP, VERSION, plural, namespaced=kind == "LocalQueue")


def kueue(kind, name, **spec):
    """One of Kueue's objects."""
    namespace = {"namespace": "default"} if kind == "LocalQueue" else {}
    return {
        "apiVersion": f"{GROUP}/{VERSION}",
        "kind": kind,
        "metadata": {"name": name, **namespace},
        "spec": spec,
    }


def flavor(name, cpu):
    """A flavor's quota of a ClusterQueue."""
    return {"name": name, "resources": [{"name": "cpu", "nominalQuota": cpu}]}


def queue(name, *flavors):
    """A ClusterQueue of these flavors in which the higher priority preempts, and its LocalQueue."""
    group = {"coveredResources": ["cpu"], "flavors": list(flavors)}
    preemption = {"withinClusterQueue": "LowerPriority"}
    yield kueue("ClusterQueue", name, namespaceSelector={}, resourceGroups=[group], preemption=preemption)
    yield kueue("LocalQueue", name, clusterQueue=name)


def template(cpu="1", **metadata):
    """Pods that take a core for longer than a test lasts."""
    container = {"name": "main", "image": "image", "resources": {"requests": {"cpu": cpu}}}
    return {"metadata": metadata, "spec": {"containers": [container], "restartPolicy": "Never"}}


def job(name, local_queue, pods, priority="", **annotations):
    """A Job of so many pods at once."""
    made = template(annotations=annotations)
    if priority:
        made["spec"]["priorityClassName"] = priority
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default", "labels": {QUEUE_NAME: local_queue}},
        "spec": {"parallelism": pods, "completions": pods, "template": made},
    }


def established(definition):
    """Whether the kind is served."""
    conditions = definition.get("status", {}).get("conditions") or ()
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


def reached_at(webhook, port, authority):
    """That webhook, reached by URL instead of its service."""
    path = webhook["clientConfig"].pop("service")["path"]
    bundle = base64.b64encode(authority).decode()
    webhook["clientConfig"] = {"url": f"https://127.0.0.1:{port}{path}", "caBundle": bundle}
    return webhook


def served(document, groups):
    """Whether a webhook is about what is served here."""
    return all(set(rule["apiGroups"]) <= groups for rule in document["rules"])


class Kueue:
    """The manager beside a cluster, and its configuration."""

    def __init__(self, folder, found):
        self.folder, self.tree = folder, found
        self.port, self.health = free_port(), free_port()
        self.certificate, key = self_signed()
        (folder / "tls.crt").write_bytes(self.certificate)
        (folder / "tls.key").write_bytes(key)

    def documents(self, name):
        """The documents of a file of the tree's config/components."""
        return list(yaml.safe_load_all((self.tree / "config/components" / name).read_text()))

    async def install(self, cluster):
        """Create its definitions, and the webhooks about kinds that there are."""
        folder = self.tree / "config/components/crd/bases"
        definitions = [yaml.safe_load(path.read_text()) for path in sorted(folder.glob("*.yaml"))]
        await cluster.create(DEFINITIONS, definitions)
        await cluster.create(NAMESPACES, [{"metadata": {"name": "kueue-system"}}])
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not all(map(established, await items(cluster, DEFINITIONS))):  # noqa: ASYNC110 - no event
                await asyncio.sleep(LOOK_SECONDS)

    async def register(self, cluster):
        """Have the API server ask the webhooks."""
        for document in self.documents("webhook/manifests.yaml"):
            document["metadata"]["name"] = f"kueue-{document['metadata']['name']}"
            document["webhooks"] = [
                reached_at(each, self.port, self.certificate)
                for each in document["webhooks"]
                if served(each, {GROUP, "batch", ""})
            ]
            _except_system(document)
            await cluster.create(WEBHOOKS[document["kind"]], [document])

    def start(self, kubeconfig):
        """The manager's process."""
        configuration = {
            "apiVersion": "config.kueue.x-k8s.io/v1beta2",
            "kind": "Configuration",
            "health": {"healthProbeBindAddress": f"127.0.0.1:{self.health}"},
            "metrics": {"bindAddress": "0"},
            "webhook": {"host": "127.0.0.1", "port": self.port, "certDir": str(self.folder)},
            "leaderElection": {"leaderElect": False},
            "internalCertManagement": {"enable": False},
            "integrations": {"frameworks": ["batch/job", "pod"]},
            "managedJobsNamespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}},
        }
        file = self.folder / "kueue.yaml"
        file.write_text(yaml.safe_dump(configuration))
        command = [
            *IN_ITS_OWN_ETC,
            str(self.folder),
            str(self.tree / "bin/manager"),
            f"--config={file}",
            f"--kubeconfig={kubeconfig}",
            "--feature-gates=VisibilityOnDemand=false",
        ]
        return Child.start("kueue", command, self.folder / "kueue.log")

    async def answers(self, process):
        """Wait until its webhooks are served."""
        async with asyncio.timeout(BUILD_SECONDS):
            while True:
                process.check()
                try:
                    _, writer = await asyncio.open_connection("127.0.0.1", self.port)
                except OSError:
                    await asyncio.sleep(LOOK_SECONDS)
                else:
                    writer.close()
                    return


def _except_system(document):
    """Leave the control plane's own namespaces alone, as the installed manifests do."""
    names = ["kube-system", "kueue-system"]
    selector = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": names}
    for each in document["webhooks"]:
        if each["name"] in ("mpod.kb.io", "vpod.kb.io"):
            each["namespaceSelector"] = {"matchExpressions": [selector]}


@asynccontextmanager
async def beside_kueue(folder, *documents):
    """A control plane with Kueue and Berth, and objects of Kueue's; the pods as a watch shows them."""
    manager, found = controller_manager(), tree()
    nodes = [each for each in documents if each["kind"] == "Node"]
    async with AsyncExitStack() as stack:
        server = api_server_called("real")
        cluster = await stack.enter_async_context(default_cluster(folder, nodes, server=server))
        kubeconfig = folder / "kubeconfig"
        flags = ("--leader-elect=false", "--secure-port=0", "--controllers=*,-node-lifecycle-controller")
        command = [str(manager), f"--kubeconfig={kubeconfig}", *flags]
        running = await Child.start("kube-controller-manager", command, folder / "manager.log")
        stack.push_async_callback(running.stop)
        installed = Kueue(folder, found)
        await installed.install(cluster)
        process = await installed.start(kubeconfig)
        stack.push_async_callback(process.stop)
        await installed.answers(process)
        await installed.register(cluster)
        for kind in OBJECTS:
            await cluster.create(resource_of(kind), [each for each in documents if each["kind"] == kind])
        pods = Pods()
        await stack.enter_async_context(cluster.watching(pods.look))
        yield cluster, pods


class Pods:
    """Pods as the watch shows them, and what each was seen with."""

    def __init__(self):
        self.found, self.changes = {}, {}

    def look(self, kind, document):
        """Take an event in."""
        name = document["metadata"]["name"]
        self.changes.setdefault(name, []).append(document)
        if kind == "DELETED":
            self.found.pop(name, None)
        else:
            self.found[name] = document

    def nodes(self, start):
        """The nodes of pods whose names start so, one for each that has one."""
        found = (each["spec"].get("nodeName") for name, each in self.found.items() if name.startswith(start))
        return sorted(filter(None, found))


async def test_admission_sends_pods_to_a_flavor(tmp_path):
    """A Job is let go, and a pod loses its gate, together with the node selector of the flavor."""
    documents = [
        *(node(f"{tier}-{i}", tier=tier) for tier in ("small", "large") for i in range(2)),
        *(kueue("ResourceFlavor", tier, nodeLabels={"tier": tier}) for tier in ("small", "large")),
        *queue("q", flavor("small", 1), flavor("large", 6)),
    ]
    async with beside_kueue(tmp_path, *documents) as (cluster, pods):
        await cluster.create(JOBS, [job("work", "q", 4)])
        await cluster.reach(lambda: len(pods.nodes("work")) == 4)
        assert {"large-0", "large-1"} >= set(pods.nodes("work"))

        alone = {"apiVersion": "v1", "kind": "Pod", **template()}
        alone["metadata"] = {"name": "alone", "namespace": "default", "labels": {QUEUE_NAME: "q"}}
        await cluster.create(PODS, [alone])
        await cluster.reach(lambda: pods.nodes("alone"))
        gated = [each["spec"] for each in pods.changes["alone"] if each["spec"].get("schedulingGates")]
        assert {"name": f"{GROUP}/admission"} in gated[0]["schedulingGates"]
        assert [None] * len(gated) == [each.get("nodeName") for each in gated]
        assert pods.nodes("alone")[0].startswith(pods.found["alone"]["spec"]["nodeSelector"]["tier"])


async def test_topology_is_kueues(tmp_path):
    """Pods of a Job with a required rack are ungated with a node each; Berth binds them just there."""
    documents = [
        *(node(f"{rack}-{i}", **{RACK: rack}) for rack in ("r1", "r2") for i in range(2)),
        kueue("Topology", "racks", levels=[{"nodeLabel": RACK}, {"nodeLabel": "kubernetes.io/hostname"}]),
        kueue("ResourceFlavor", "all", nodeLabels={}, topologyName="racks"),
        *queue("q", flavor("all", 16)),
    ]
    for each in documents:
        if each["kind"] == "Node":
            each["metadata"]["labels"]["kubernetes.io/hostname"] = each["metadata"]["name"]
            each["metadata"]["labels"]["pool"] = "all"
            each["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
        if each["kind"] == "ResourceFlavor":
            each["spec"]["nodeLabels"] = {"pool": "all"}
    async with beside_kueue(tmp_path, *documents) as (cluster, pods):
        await cluster.create(JOBS, [job("gang", "q", 6, **{REQUIRED: RACK})])
        await cluster.reach(lambda: len(pods.nodes("gang")) == 6)

        assert 1 == len({name.partition("-")[0] for name in pods.nodes("gang")})
        for each in pods.found.values():
            assert each["spec"]["nodeName"] == each["spec"]["nodeSelector"]["kubernetes.io/hostname"]


async def test_preemption_is_kueues(tmp_path):
    """A Job of higher priority has a lower one suspended; Berth binds its pods when the others are gone."""
    documents = [
        node("n0", tier="all"),
        kueue("ResourceFlavor", "all", nodeLabels={"tier": "all"}),
        *queue("q", flavor("all", 4)),
    ]
    async with beside_kueue(tmp_path, *documents) as (cluster, pods):
        await cluster.create(PRIORITIES, [{"metadata": {"name": "high"}, "value": 1000}])
        await cluster.create(JOBS, [job("low", "q", 4)])
        await cluster.reach(lambda: len(pods.nodes("low")) == 4)

        await cluster.create(JOBS, [job("urgent", "q", 4, priority="high")])
        await cluster.reach(lambda: len(pods.nodes("urgent")) == 4)

        (low,) = [each for each in await items(cluster, JOBS) if each["metadata"]["name"] == "low"]
        assert (True, []) == (low["spec"]["suspend"], pods.nodes("low"))


async def test_a_nominated_node_is_a_hint(tmp_path):
    """Played by hand: a node is nominated for a gated pod, then its gate and selector change at once.

    Berth binds it to that node, where it fits; where the selector leaves that one out, to another.
    """
    nodes = [node(f"n{i}", tier="even" if i % 2 == 0 else "odd") for i in range(6)]
    hinted = {"fits": "n4", "left-out": "n3"}
    async with default_cluster(tmp_path, nodes) as cluster:
        pods = Pods()
        async with cluster.watching(pods.look):
            for name, nominated in hinted.items():
                pod = {"apiVersion": "v1", "kind": "Pod", **template()}
                pod["metadata"] = {"name": name, "namespace": "default"}
                pod["spec"]["schedulingGates"] = [{"name": f"{GROUP}/admission"}]
                await cluster.create(PODS, [pod])
                status = {"status": {"nominatedNodeName": nominated}}
                await cluster.patch(PODS, name, status, "default", "status")
                admitted = {"spec": {"schedulingGates": [], "nodeSelector": {"tier": "even"}}}
                await cluster.patch(PODS, name, admitted, "default")
            await cluster.reach(lambda: all(pods.nodes(name) for name in hinted))

    assert ["n4"] == pods.nodes("fits")
    assert pods.nodes("left-out")[0] in {"n0", "n2", "n4"}
