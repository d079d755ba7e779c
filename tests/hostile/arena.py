"""A sandbox, a scheduler and a user of the cluster, as real processes and real requests.

Only what every version of Berth has is used here, so that a row can be played on two of them and compared.
"""

import asyncio
import json
import os
import signal
import ssl
import time
from contextlib import asynccontextmanager, suppress
from functools import cache
from pathlib import Path

from berth.client.api import MERGE_PATCH, STRATEGIC_PATCH, Api
from berth.client.authentication.credentials import load_endpoint
from berth.client.errors import ClientError, NotFoundError
from berth.client.resources import LEASES, PODS, Resource
from berth.client.transport import Transport
from berth.client.watching.watch import WatchSource, watch_lines
from berth.client.wire import bounded
from berth.demo.processes import Child, program
from berth.demo.surface import LOOPBACK, Surface
from tests.suite import PATIENCE_SECONDS

RESTART_SECONDS = 1.0
LOOK_SECONDS = 0.01
ORDINARY = {"written-by": "another-user"}
OTHERS = "others"
"""The namespace of ordinary pods; what is hostile is in `default`."""
CORE = ("", "v1")
RESOURCES = {
    "ConfigMap": Resource(*CORE, "configmaps", namespaced=True),
    "Lease": LEASES,
    "Event": Resource(*CORE, "events", namespaced=True),
    "Namespace": Resource(*CORE, "namespaces", namespaced=False),
    "Node": Resource(*CORE, "nodes", namespaced=False),
    "Pod": PODS,
    "PersistentVolume": Resource(*CORE, "persistentvolumes", namespaced=False),
    "PersistentVolumeClaim": Resource(*CORE, "persistentvolumeclaims", namespaced=True),
    "Service": Resource(*CORE, "services", namespaced=True),
    "ReplicaSet": Resource("apps", "v1", "replicasets", namespaced=True),
    "StorageClass": Resource("storage.k8s.io", "v1", "storageclasses", namespaced=False),
    "CSINode": Resource("storage.k8s.io", "v1", "csinodes", namespaced=False),
    "PodDisruptionBudget": Resource("policy", "v1", "poddisruptionbudgets", namespaced=True),
    "PodGroup": Resource("scheduling.k8s.io", "v1alpha2", "podgroups", namespaced=True),
    "PriorityClass": Resource("scheduling.k8s.io", "v1", "priorityclasses", namespaced=False),
    "DeviceClass": Resource("resource.k8s.io", "v1", "deviceclasses", namespaced=False),
    "ResourceClaim": Resource("resource.k8s.io", "v1", "resourceclaims", namespaced=True),
    "ResourceSlice": Resource("resource.k8s.io", "v1", "resourceslices", namespaced=False),
}
WITH_BYTECODE = {"PYTHONDONTWRITEBYTECODE": ""}
"""What is started again finds its modules compiled, as in an image: that is half of a start."""
API_VERSIONS = {kind: resource.api_version for kind, resource in RESOURCES.items()}

CONFIGURATION = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {{kubeconfig: {kubeconfig}, qps: -1}}
leaderElection: {{leaderElect: true}}
{more}
"""


class Arena:
    """The processes, and what was written."""

    def __init__(self, folder, nodes, *, real=False, program=()):
        self.folder, self.nodes, self.real = folder, nodes, real
        self._program = program
        self.surface = Surface.free()
        self.scheduler = self.sandbox = self.transport = None
        self.ends = []
        self.started = 0.0
        """When a scheduler that a row itself had started again was started, by the monotonic clock."""
        self._restarting = False
        self.written = {}
        self.notes = {}
        self._flags = ()

    @property
    def is_berth(self):
        """Whether the scheduler is Berth."""
        return not self._program

    @property
    def kubeconfig(self):
        return self.folder / "kubeconfig"

    @property
    def log(self):
        """The scheduler's log; a scheduler that was started again goes on in another file."""
        return self.folder / f"scheduler-{len(self.ends)}.log"

    @property
    def standby_log(self):
        """The log of the scheduler that took over."""
        return self.folder / "scheduler-standby.log"

    @property
    def log_bytes(self):
        """How much the schedulers have logged."""
        return sum(path.stat().st_size for path in self.folder.glob("scheduler-*.log"))

    async def start_sandbox(self, documents):
        """Start the API server with these objects."""
        listed = self.folder / "objects.json"
        listed.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(documents)}))
        flags = ("--no-kubelets", "--kubeconfig", str(self.kubeconfig), "--load", str(listed))
        command = [
            program("berth"),
            "sandbox",
            "up",
            *flags,
            *(("--real", "--pod-groups") if self.real else ()),
        ]
        self.sandbox = await Child.start("sandbox", command, self.folder / "sandbox.log")
        await self.sandbox.wait_for(self.kubeconfig, PATIENCE_SECONDS)
        self.transport = Transport(load_endpoint(kubeconfig=str(self.kubeconfig)), max_connections=64)
        self.api = Api(self.transport)

    async def start_scheduler(self, configuration="", flags=()):
        """Start the scheduler, and wait until it is ready."""
        file = self.folder / "scheduler.yaml"
        file.write_text(CONFIGURATION.format(kubeconfig=self.kubeconfig, more=configuration))
        self._flags = (
            f"--config={file}",
            "--bind-address=127.0.0.1",
            "--authorization-always-allow-paths=/*",
            *flags,
        )
        await self._start()
        await self.surface.wait_ready(self.scheduler, PATIENCE_SECONDS)

    async def _start(self):
        self.scheduler = await self._scheduler(self.surface, self.log)

    async def _scheduler(self, surface, log, environment=None):
        port = f"--secure-port={surface.port}"
        command = [*(self._program or (program("berth"), "scheduler")), *self._flags, port]
        around = {"OTEL_TRACES_EXPORTER": "none", **WITH_BYTECODE, **(environment or {})}
        return await Child.start("scheduler", command, log, around)

    @asynccontextmanager
    async def standby(self, environment):
        """Another scheduler beside the one that leads; where it serves."""
        surface = Surface.free()
        child = await self._scheduler(surface, self.standby_log, environment)
        try:
            yield surface
        finally:
            await child.stop(grace_seconds=1.0)

    async def take_over(self):
        """Start another scheduler, and once it is ready kill the one that leads: it has to take over."""
        surface = Surface.free()
        standby = await self._scheduler(surface, self.standby_log)
        await surface.wait_ready(standby, PATIENCE_SECONDS)
        os.kill(self.scheduler.pid, signal.SIGKILL)  # asked to end, it would give the lease back
        await self.scheduler.wait()
        self.scheduler, self.surface = standby, surface

    async def keep_running(self):
        """Start the scheduler again whenever it ends, as the kubelet does."""
        while True:
            await self.scheduler.wait()
            self.ends.append(f"{self.scheduler.exit_code}: {self.scheduler.last_words()}")
            await asyncio.sleep(RESTART_SECONDS)
            await self._start()
            if self._restarting:
                self.started, self._restarting = time.monotonic(), False

    async def restart(self):
        """End the scheduler, which `keep_running` starts again.

        Answers the seconds from its start to being ready, and those of CPU that it took.
        """
        self._restarting = True
        before = self.started
        await self.scheduler.stop(grace_seconds=5.0)
        while self.started == before:  # noqa: ASYNC110 - what another task starts
            await asyncio.sleep(LOOK_SECONDS)
        await self.surface.wait_ready(self.scheduler, PATIENCE_SECONDS)
        return time.monotonic() - self.started, cpu_seconds(self.scheduler.pid)

    async def write(self, document, verbatim=None):
        """Create an object as a user does; it goes with `remove_written`. A refusal is noted.

        `verbatim` has JSON to put in place of texts.
        """
        kind, metadata = document["kind"], document["metadata"]
        resource = RESOURCES[kind]
        namespace = metadata.setdefault("namespace", "default") if resource.namespaced else ""
        text = json.dumps({"apiVersion": API_VERSIONS[kind], **document}, separators=(",", ":"))
        for mark, instead in (verbatim or {}).items():
            # What is nested too deeply for this language's own encoder.
            text = text.replace(json.dumps(mark), instead)
        try:
            await self.api.create(resource, namespace, text.encode())
        except ClientError as error:
            self.notes.setdefault("refused", f"{kind} refused: {str(error)[:200]}")
            return
        self.written[resource, namespace, metadata["name"]] = None

    async def write_all(self, documents, at_once=16):
        """Create objects, a few at a time."""
        for several in batched(documents, at_once):
            await asyncio.gather(*(self.write(document) for document in several))

    async def patch(self, kind, name, document, subresource="", *, strategic=False):
        """Merge a document into an object, its lists by key where it is `strategic`; a refusal is noted."""
        resource = RESOURCES[kind]
        namespace = "default" if resource.namespaced else ""
        how = STRATEGIC_PATCH if strategic else MERGE_PATCH
        body = json.dumps(document).encode()
        try:
            await self.api.patch(resource, namespace, name, body, subresource=subresource, content_type=how)
        except NotFoundError:
            pass
        except ClientError as error:
            self.notes.setdefault("refused", f"{kind} refused: {str(error)[:200]}")

    async def remove(self, kind, name):
        """Delete an object; a pod goes at once."""
        resource = RESOURCES[kind]
        namespace = "default" if resource.namespaced else ""
        self.written.pop((resource, namespace, name), None)
        with suppress(NotFoundError):
            await self.api.delete(resource, namespace, name, b'{"gracePeriodSeconds": 0}')

    async def remove_written(self):
        """Delete all that was written, the last first."""
        for several in batched(list(self.written)[::-1], 16):
            await asyncio.gather(*(self._remove(*each) for each in several))

    async def _remove(self, resource, namespace, name):
        with suppress(ClientError):
            await self.api.delete(resource, namespace, name, b'{"gracePeriodSeconds": 0}')
        self.written.pop((resource, namespace, name), None)

    async def ordinary_pods(self, each_second):
        """Submit small pods of another user at a steady rate, for ever."""
        loop = asyncio.get_running_loop()
        start, number = loop.time(), 0
        while True:
            document = pod(f"ordinary-{number}", labels=ORDINARY)
            document["metadata"]["namespace"] = OTHERS
            body = json.dumps(document).encode()
            with suppress(ClientError):
                await self.api.create(PODS, OTHERS, body)
            number += 1
            await asyncio.sleep(max(0.0, start + number / each_second - loop.time()))

    async def placed(self, names):
        """Wait until the pods of these names have nodes."""
        while True:
            listed = bounded(json.loads)(await self.api.call("GET", PODS.collection("default")))["items"]
            found = {each["metadata"]["name"] for each in listed if each["spec"].get("nodeName")}
            if names <= found:
                return
            await asyncio.sleep(RESTART_SECONDS)

    async def ordinary_events(self):
        """What a watch says of those pods: their names and nodes."""
        # From a list on: an API server on etcd 3.4 sends no events of what is there already.
        listed = bounded(json.loads)(await self.api.call("GET", PODS.collection(OTHERS)))
        version = listed["metadata"]["resourceVersion"]
        source = WatchSource(PODS, label_selector="written-by=another-user")
        while True:
            with suppress(ClientError):
                async for lines in watch_lines(self.transport, source, version, 3600):
                    for event in map(json.loads, lines):
                        known = event["object"]
                        version = known["metadata"].get("resourceVersion", version)
                        if event["type"] in ("ADDED", "MODIFIED"):
                            yield known["metadata"]["name"], known["spec"].get("nodeName", "")

    async def end_scheduler(self):
        """Seconds until SIGTERM ended the scheduler, None where it did not."""
        loop = asyncio.get_running_loop()
        started = loop.time()
        with suppress(ProcessLookupError):
            self.scheduler._process.terminate()
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await self.scheduler.wait()
        except TimeoutError:
            return None
        return loop.time() - started

    async def close(self):
        """End every process."""
        if self.scheduler is not None:
            await self.scheduler.stop(grace_seconds=1.0)
        if self.sandbox is not None:
            await self.sandbox.stop()  # it ends a control plane in order, and removes its folder
        if self.transport is not None:
            await self.transport.aclose()


@asynccontextmanager
async def arena(folder, nodes, *, objects=(), configuration="", flags=(), real=False, program=()):
    """A sandbox with so many nodes and these objects, and a scheduler that is ready, Berth by itself."""
    made = Arena(Path(folder), nodes, real=real, program=program)
    others = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": OTHERS}}
    try:
        await made.start_sandbox([others, *(node(i) for i in range(nodes)), *objects])
        await made.start_scheduler(configuration, flags)
        yield made
    finally:
        await made.close()


def cpu_seconds(pid):
    """What a process has used of the CPU, 0 where it has ended."""
    with suppress(OSError):
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return 0.0


def cpu_wait_seconds(pid):
    """How long a process's first thread has waited for a CPU that others used; 0 where it has ended."""
    with suppress(OSError):
        return int(Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()[1]) / 1e9
    return 0.0


@cache
def anything():
    """TLS that trusts any certificate: the scheduler makes its own at its start."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def node(number):
    """A node of a cluster of three zones."""
    name = f"node-{number}"
    amounts = {"cpu": "32", "memory": "128Gi", "pods": "250", "ephemeral-storage": "500Gi"}
    labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": f"zone-{number % 3}"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"capacity": amounts, "allocatable": amounts},
    }


def pod(name, *, labels=None, container=None, status=None, annotations=None, owners=(), **spec):
    """A pod of one small container."""
    requests = {"cpu": "10m", "memory": "16Mi"}
    main = {"name": "main", "image": "app:1", "resources": {"requests": requests}, **(container or {})}
    metadata = {"name": name, "namespace": "default", "labels": labels or {}}
    if annotations:
        metadata["annotations"] = annotations
    if owners:
        metadata["ownerReferences"] = list(owners)
    document = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [main], **spec},
    }
    return {**document, "status": status} if status else document


def batched(things, size):
    """The things in order, so many at a time."""
    each = list(things)
    return (each[start : start + size] for start in range(0, len(each), size))


__all__ = ["LOOPBACK", "Arena", "anything", "arena", "batched", "node", "pod"]
