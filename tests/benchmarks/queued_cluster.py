"""Sandbox, scheduler and the plugin queues as real processes, and what becomes of pods as a watcher sees it.

Used by: kai_scale, kueue_baseline.
"""

import asyncio
import tempfile
import time
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from berth.client.api import Api
from berth.client.authentication.credentials import load_endpoint
from berth.client.errors import NotFoundError
from berth.client.resources import NAMESPACES, NODES, POD_GROUPS, PODS, Resource
from berth.client.transport import Transport
from berth.client.wire import encode
from berth.demo.processes import Child, program
from berth.demo.surface import Surface
from tests.benchmarks.end_to_end import cpu_of_all
from tests.pod_events import current_pods, pod_events
from tests.sockets import listens

READY_SECONDS = 60.0
AT_ONCE = 16
KINDS = Path(__file__).parents[2] / "kustomize/third-party-crds"
QUEUES = Resource("queues.berth.dev", "v1alpha1", "queues", namespaced=False)
DEFINITIONS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", namespaced=False)
PRIORITY_CLASSES = Resource("scheduling.k8s.io", "v1", "priorityclasses", namespaced=False)
RESOURCES = {
    "CustomResourceDefinition": DEFINITIONS,
    "Namespace": NAMESPACES,
    "Node": NODES,
    "Pod": PODS,
    "PodGroup": POD_GROUPS,
    "PriorityClass": PRIORITY_CLASSES,
    "Queue": QUEUES,
}
GATES = "GenericWorkload=true,GangScheduling=true,TopologyAwareWorkloadScheduling=true"
CONFIGURATION = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {{kubeconfig: {folder}/kubeconfig, qps: -1}}
leaderElection: {{leaderElect: false}}
profiles:
- schedulerName: default-scheduler
  plugins:
    multiPoint:
      enabled: [{{name: queues}}]
    queueSort:
      disabled: [{{name: PrioritySort}}]
      enabled: [{{name: queues}}]
    postFilter:
      disabled: [{{name: DefaultPreemption}}]
  pluginConfig:
  - name: queues
    args: {{reclaim: {reclaim}}}
  - name: NodeResourcesFit
    args:
      scoringStrategy: {{type: MostAllocated, resources: [{{name: {resource}, weight: 1}}]}}
"""
PLUGINS = """\
apiVersion: berth.dev/v1alpha1
kind: PluginList
plugins:
- name: queues
  address: unix:{folder}/queues.sock
  extensionPoints: [queueSort, filter, postFilter, reserve]
"""


@dataclass
class Watcher:
    """Since when each pod has its node, and what happens to pods from now on. Units: seconds, monotonic."""

    bound: dict[str, float] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def follow(self, transport, version, seen=None):
        """Take over every event until cancelled; `seen` is called with each."""
        async for what, pod in pod_events(transport, version):
            key = f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
            if what == "DELETED":
                self.gone.add(key)
            elif pod["spec"].get("nodeName"):
                self.bound.setdefault(key, time.monotonic())
            if seen is not None:
                seen(what, key, pod)
            self.changed.set()

    async def until(self, holds, seconds):
        """Wait until that holds of what was seen; whether it did in time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while not holds(self):
                    self.changed.clear()
                    await self.changed.wait()
        return bool(holds(self))


@dataclass
class QueuedCluster:
    """An API server, and a scheduler with its plugin that is started and stopped at will."""

    stack: AsyncExitStack
    folder: Path
    transport: Transport
    children: list = field(default_factory=list)
    scheduler: Child | None = None

    async def create(self, documents):
        """Create objects through the API, a few at a time."""
        api, waiting = Api(self.transport), asyncio.Semaphore(AT_ONCE)

        async def one(document):
            async with waiting:
                kind = RESOURCES[document["kind"]]
                namespace = document["metadata"].get("namespace", "") if kind.namespaced else ""
                await api.create(kind, namespace, encode(document))

        async with asyncio.TaskGroup() as tasks:
            for document in documents:
                tasks.create_task(one(document))

    async def delete_pods(self, namespace, names):
        """Delete pods, which end at once."""
        api = Api(self.transport)
        body = encode({"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0})
        for i in range(0, len(names), AT_ONCE):
            batch = names[i : i + AT_ONCE]
            done = await asyncio.gather(
                *(api.delete(PODS, namespace, name, body) for name in batch), return_exceptions=True
            )
            # One that was evicted is gone.
            failed = [each for each in done if isinstance(each, Exception)]
            assert all(isinstance(each, NotFoundError) for each in failed), failed

    async def start_scheduler(self):
        """Start the scheduler, and wait until it is ready."""
        surface = Surface.free()
        self.scheduler = await self.child(
            f"scheduler{len(self.children)}",
            program("berth"),
            "scheduler",
            f"--config={self.folder}/scheduler.yaml",
            f"--plugins={self.folder}/plugins.yaml",
            f"--feature-gates={GATES}",
            "--bind-address=127.0.0.1",
            f"--secure-port={surface.port}",
            "--authorization-always-allow-paths=/readyz,/metrics",
        )
        await surface.wait_ready(self.scheduler, READY_SECONDS)

    async def stop_scheduler(self):
        """Stop the scheduler."""
        await self.scheduler.stop()

    async def child(self, name, *command):
        """A process that ends with the cluster."""
        process = await Child.start(name, command, self.folder / f"{name}.log", {})
        self.stack.push_async_callback(process.stop)
        self.children.append(process)
        return process

    @asynccontextmanager
    async def watched(self, seen=None):
        """A watcher of pods from now on."""
        _, version = await current_pods(self.transport)
        watcher = Watcher()
        task = asyncio.create_task(watcher.follow(self.transport, version, seen))
        try:
            yield watcher
        finally:
            task.cancel()
            await asyncio.wait((task,))

    def memory(self):
        """The peak memory of all processes that run, added up. Units: MiB."""
        running = [each for each in self.children if each.exit_code is None]
        return sum(each.usage().peak_mebibytes for each in running)

    def cpu(self):
        """CPU seconds of all processes that run."""
        return sum(cpu_of_all(each.pid) for each in self.children if each.exit_code is None)


@asynccontextmanager
async def queued_cluster(resource, *, reclaim="FairShare"):
    """A cluster of no nodes yet, whose scheduler packs by that resource; the plugin is at work."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="berth-")))
        text = CONFIGURATION.format(folder=folder, reclaim=reclaim, resource=resource)
        (folder / "scheduler.yaml").write_text(text, encoding="utf-8")
        (folder / "plugins.yaml").write_text(PLUGINS.format(folder=folder), encoding="utf-8")
        cluster = QueuedCluster(stack, folder, None)
        kubeconfig = folder / "kubeconfig"
        sandbox = await cluster.child(
            "sandbox", program("berth"), "sandbox", "up", "--kubeconfig", str(kubeconfig)
        )
        await sandbox.wait_for(kubeconfig, READY_SECONDS)
        cluster.transport = Transport(load_endpoint(kubeconfig=str(kubeconfig)), max_connections=32)
        stack.push_async_callback(cluster.transport.aclose)
        await cluster.create([yaml.safe_load((KINDS / "queues.yaml").read_text(encoding="utf-8"))])
        plugin = await cluster.child(
            "queues",
            program("berth-queues"),
            *(
                "--address",
                f"unix:{folder}/queues.sock",
                "--kinds",
                "Queue",
                "PodGroup",
                "--log-level=warning",
            ),
        )
        async with asyncio.timeout(READY_SECONDS):
            while not listens(folder / "queues.sock"):
                plugin.check()
                await asyncio.sleep(0.05)
        yield cluster


def queue(name, parent="", **spec):
    """A Queue; a root's `capacity` is given."""
    head = {"apiVersion": "queues.berth.dev/v1alpha1", "kind": "Queue", "metadata": {"name": name}}
    return {**head, "spec": {**({"parent": parent} if parent else {}), **spec}}


def namespace(name):
    """A Namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def node(name, amounts, **labels):
    """A Node that has these amounts."""
    given = {"cpu": "256", "memory": "1Ti", "pods": "250", **amounts}
    status = {"capacity": given, "allocatable": given, "conditions": [{"type": "Ready", "status": "True"}]}
    metadata = {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status}


def pod(where, name, amounts, *, group="", **spec):
    """A pod that asks for these amounts and ends at once when it is deleted."""
    container = {"name": "main", "image": "pause", "resources": {"requests": amounts, "limits": amounts}}
    grouped = {"schedulingGroup": {"podGroupName": group}} if group else {}
    given = {"containers": [container], "terminationGracePeriodSeconds": 0, **grouped, **spec}
    metadata = {"name": name, "namespace": where}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": given}


def gang(where, name, size, amounts, *, topology=""):
    """A PodGroup that goes together, and its pods."""
    spec = {"schedulingPolicy": {"gang": {"minCount": size}}}
    if topology:
        spec["schedulingConstraints"] = {"topology": [{"key": topology}]}
    metadata = {"name": name, "namespace": where}
    group = {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": metadata,
        "spec": spec,
    }
    return [group], [pod(where, f"{name}-{i}", amounts, group=name) for i in range(size)]
