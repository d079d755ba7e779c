"""Real processes with a fault proxy between them: a sandbox, the proxy, and schedulers behind it."""

import asyncio
import json
import os
import signal
import sys
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path

import msgspec

from berth.client.api import Api
from berth.client.endpoint import endpoint_of
from berth.client.errors import ConflictError, RetryError
from berth.client.resources import PODS
from berth.client.transport import Transport
from berth.client.watching.reflector import Reflector
from berth.client.watching.watch import WatchSource
from berth.demo.processes import Child, program
from berth.demo.surface import LOOPBACK, Surface
from berth.sandbox.kubeconfig import kubeconfig_text
from tests.e2e.fault_rules import DIRECT
from tests.suite import PATIENCE_SECONDS

LOOK_SECONDS = 0.1
REPOSITORY = Path(__file__).parents[2]
ELECTION = {"duration": "4s", "deadline": "3s", "period": "500ms"}
NO_LIMIT = -1
"""The qps of a client that sends as much as it likes."""

CONFIGURATION = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {{kubeconfig: {kubeconfig}, qps: {qps}}}
leaderElection:
  leaderElect: {elect}
  leaseDuration: {duration}
  renewDeadline: {deadline}
  retryPeriod: {period}
podInitialBackoffSeconds: 1
podMaxBackoffSeconds: 2
"""
BINDING = r"/api/v1/namespaces/default/pods/[^/]+/binding"


class FaultProxy:
    """The proxy process and its control connection."""

    def __init__(self, process, reader, writer):
        self._process, self._reader, self._writer = process, reader, writer
        self._turn = asyncio.Lock()

    @classmethod
    @asynccontextmanager
    async def started(cls, seed):
        """A proxy before no server yet."""
        command = [sys.executable, "-m", "tests.e2e.fault_proxy", str(seed)]
        process = await asyncio.create_subprocess_exec(
            *command, stdout=asyncio.subprocess.PIPE, cwd=REPOSITORY
        )
        writer = None
        try:
            control = int(await process.stdout.readline())
            reader, writer = await asyncio.open_connection(LOOPBACK, control, limit=1 << 26)
            yield cls(process, reader, writer)
        finally:
            process.kill()
            await process.wait()
            if writer is not None:
                writer.transport.abort()
                await asyncio.sleep(0)

    async def ask(self, do, **arguments):
        """Give a command, and its answer."""
        async with self._turn:
            self._writer.write(json.dumps({"do": do, **arguments}).encode() + b"\n")
            return json.loads(await self._reader.readline())

    async def rules(self, *rules):
        """Let these faults happen instead of those before; none for peace."""
        await self.ask("rules", rules=[{**rule, "fault": rule["fault"].value} for rule in rules])

    async def bindings(self, via=""):
        """The binding requests of a client, of all where none is named."""
        log = await self.ask("log")
        return [e for e in log if is_binding(e) and via in ("", e["via"])]


class Witness:
    """Sees every write to a pod, straight from the API server, and notes what must not happen."""

    def __init__(self, room):
        self.room, self.wrongs = room, []
        self.on = {}
        self.bound = {}
        self.documents = {}

    def on_add(self, pod):
        self._look(pod)

    def on_update(self, _old, pod):
        self._look(pod)

    def on_delete(self, pod):
        uid = pod["metadata"]["uid"]
        self.on.get(pod["spec"].get("nodeName"), set()).discard(uid)
        self.documents.pop(uid, None)

    def on_synced(self):
        pass

    def _look(self, pod):
        uid, node = pod["metadata"]["uid"], pod["spec"].get("nodeName")
        self.documents[uid] = pod
        if not node:
            return
        if self.bound.setdefault(uid, node) != node:
            self.wrongs.append(f"{pod['metadata']['name']} moved from {self.bound[uid]} to {node}")
        there = self.on.setdefault(node, set())
        there.add(uid)
        if len(there) > self.room:
            self.wrongs.append(f"{node} holds {len(there)} pods, {self.room} fit")


class FaultyCluster:
    """The processes, and what the API server says without a proxy in between."""

    def __init__(self, folder, proxy, witness, *, real=False, kubelets=False, release=""):
        self.folder, self.proxy, self.witness = folder, proxy, witness
        self.real, self.kubelets, self.release = real, kubelets, release
        self.schedulers, self.surfaces = {}, {}
        self.sandbox = None
        self.command = (program("berth"), "scheduler")
        self.may_exit = False
        """Whether a scheduler may end by itself, as kube-scheduler does when it has lost its lease."""

    async def start_sandbox(self):
        """Start the API server, or, in memory, start it again with what it held."""
        kubeconfig = self.folder / "sandbox.kubeconfig"
        kubeconfig.unlink(missing_ok=True)
        kept = ("--real",) if self.real else ("--data-file", str(self.folder / "data"))
        run_pods = "--kubelets" if self.kubelets else "--no-kubelets"
        command = [program("berth"), "sandbox", "up", run_pods, "--kubeconfig", str(kubeconfig), *kept]
        command += [f"--release={self.release}"] if self.release else []
        self.sandbox = await Child.start("sandbox", command, self.folder / "sandbox.log")
        await self.sandbox.wait_for(kubeconfig, PATIENCE_SECONDS)
        await self.proxy.ask("target", kubeconfig=str(kubeconfig))

    async def kill_sandbox(self):
        """Let the API server drop dead."""
        os.kill(self.sandbox.pid, signal.SIGKILL)
        await self.sandbox.stop()

    async def start_scheduler(
        self, name, *flags, elect=False, direct=False, user="", qps=NO_LIMIT, rest="", **election
    ):
        """Start a scheduler, with a listener of its own unless it is to go past the proxy.

        The server takes it for `user` where one is named; `rest` is what follows in its configuration's file.
        """
        configuration, kubeconfig = self.folder / f"{name}.yaml", self.folder / "sandbox.kubeconfig"
        if not direct:
            port = await self.proxy.ask("listen", name=name, user=user)
            kubeconfig = self.folder / f"{name}.kubeconfig"
            kubeconfig.write_text(kubeconfig_text(f"http://{LOOPBACK}:{port}"))
        fields = {"kubeconfig": kubeconfig, "elect": str(elect).lower(), "qps": qps, **ELECTION, **election}
        configuration.write_text(CONFIGURATION.format(**fields) + rest)
        surface = self.surfaces[name] = Surface.free()
        command = [
            *self.command,
            f"--config={configuration}",
            *("--bind-address=127.0.0.1", f"--secure-port={surface.port}"),
            "--authorization-always-allow-paths=/*",
            *flags,
        ]
        environment = {"OTEL_TRACES_EXPORTER": "none"}
        self.schedulers[name] = await Child.start(name, command, self.log(name), environment)

    def log(self, name):
        """The log of a scheduler."""
        return self.folder / f"{name}.log"

    def signal(self, name, number):
        """Send a scheduler a signal."""
        os.kill(self.schedulers[name].pid, number)

    async def ready(self, name):
        """Wait until a scheduler knows everything."""
        await self.surfaces[name].wait_ready(self.schedulers[name], PATIENCE_SECONDS)

    async def show(self, name, path):
        """What a scheduler answers on its own port."""
        return (await asyncio.to_thread(self.surfaces[name].read, path)).decode()

    async def kill(self, name):
        """Let a scheduler drop dead."""
        self.signal(name, signal.SIGKILL)
        await self.schedulers.pop(name).stop()

    async def end(self, name):
        """Ask a scheduler to end, and give its exit status."""
        child = self.schedulers.pop(name)
        await child.stop()
        return child._process.returncode

    async def create(self, *documents):
        """Create objects."""
        for several in batched(documents):
            await asyncio.gather(*map(self._create, several))

    async def _create(self, document):
        """Create an object; over a connection that outlived its server this takes a second try."""
        while True:
            try:
                await self.api.call("POST", PATHS[document["kind"]], json.dumps(document).encode())
            except ConflictError:
                return  # The first try landed.
            except RetryError:
                await asyncio.sleep(LOOK_SECONDS)
            else:
                return

    async def get(self, path):
        """An answer of the API server itself."""
        return json.loads(await self.api.call("GET", path))

    async def until(self, claim, why):
        """Wait until the claim holds, and give what it gave; it may be a coroutine function."""
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while not (found := await _value(claim)):
                    self._check()
                    await asyncio.sleep(LOOK_SECONDS)
                return found
        except TimeoutError:
            raise AssertionError(f"not in time: {why}; {self.summary()}") from None

    def summary(self):
        """How the pods stand, in a line."""
        undecided = [pod["metadata"]["name"] for pod in self.pods() if not decided(pod)]
        return f"{len(self.pods())} pods, {len(self.witness.bound)} bound, undecided: {undecided[:5]}"

    def pods(self):
        """All pods as last written."""
        return list(self.witness.documents.values())

    @asynccontextmanager
    async def watched(self):
        """Connected to the API server, with the witness watching."""
        port = await self.proxy.ask("listen", name=DIRECT)
        transport = Transport(endpoint_of(f"http://{LOOPBACK}:{port}"))
        self.api = Api(transport)
        reflector = Reflector(transport, WatchSource(PODS), msgspec.json.decode, self.witness)
        watching = asyncio.create_task(reflector.run())
        try:
            yield
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
            await transport.aclose()

    async def stop(self):
        """End every process."""
        for child in [*self.schedulers.values(), self.sandbox]:
            if child is not None:
                with suppress(ProcessLookupError):
                    os.kill(child.pid, signal.SIGCONT)
                    os.kill(child.pid, signal.SIGKILL)
                await child.stop()

    def _check(self):
        assert not self.witness.wrongs, self.witness.wrongs
        for child in () if self.may_exit else self.schedulers.values():
            child.check()

    def bury(self):
        """Forget the schedulers that have ended."""
        for name, child in list(self.schedulers.items()):
            if child._process.returncode is not None:
                del self.schedulers[name]


@asynccontextmanager
async def faulty_cluster(folder, *, room, seed=0, real=False, kubelets=False, release=""):
    """An API server, a proxy before it and a witness beside it; schedulers are the test's to start."""
    async with AsyncExitStack() as stack:
        proxy = await stack.enter_async_context(FaultProxy.started(seed))
        cluster = FaultyCluster(folder, proxy, Witness(room), real=real, kubelets=kubelets, release=release)
        stack.push_async_callback(cluster.stop)
        await cluster.start_sandbox()
        await stack.enter_async_context(cluster.watched())
        # A real API server is ready before it has made these.
        await cluster.create(*map(namespace, ("default", "kube-system")))
        yield cluster


LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
PATHS = {
    "Namespace": "/api/v1/namespaces",
    "Node": "/api/v1/nodes",
    "Pod": "/api/v1/namespaces/default/pods",
    "PersistentVolume": "/api/v1/persistentvolumes",
    "PersistentVolumeClaim": "/api/v1/namespaces/default/persistentvolumeclaims",
    "PriorityClass": "/apis/scheduling.k8s.io/v1/priorityclasses",
    "StorageClass": "/apis/storage.k8s.io/v1/storageclasses",
    "DeviceClass": "/apis/resource.k8s.io/v1/deviceclasses",
    "ResourceSlice": "/apis/resource.k8s.io/v1/resourceslices",
    "ResourceClaim": "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims",
}


def is_binding(entry):
    """Whether a request of the proxy's log binds a pod."""
    return entry["path"].partition("?")[0].endswith("/binding")


def namespace(name):
    """A namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def node(name, pods=1, **labels):
    """A node with room for so many pods."""
    resources = {"cpu": "1000", "memory": "4Ti", "pods": str(pods)}
    labels = {"kubernetes.io/hostname": name, **labels}
    status = {"capacity": resources, "allocatable": resources}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": status,
    }


def pod(name, **spec):
    """A pod of one small container."""
    container = {"name": "main", "image": "app:1", "resources": {"requests": {"cpu": "1"}}}
    metadata = {"name": name, "namespace": "default"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [container], **spec},
    }


def decided(pod):
    """Whether the pod is bound, or says that it is not and why."""
    conditions = pod.get("status", {}).get("conditions", ())
    refused = [c for c in conditions if c["type"] == "PodScheduled" and c["status"] == "False"]
    return bool(pod["spec"].get("nodeName")) or any(c.get("message") for c in refused)


def bound_names(pods):
    """The names of the pods that are on nodes."""
    return sorted(pod["metadata"]["name"] for pod in pods if pod["spec"].get("nodeName"))


def batched(documents, size=16):
    """The documents in order, so many at a time."""
    return (documents[start : start + size] for start in range(0, len(documents), size))


async def _value(claim):
    found = claim()
    return await found if asyncio.iscoroutine(found) else found
