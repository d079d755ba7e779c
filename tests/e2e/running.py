"""A cluster of real processes for a test: sandbox, gpu-share, scheduler, each started and ended at will."""

import asyncio
import copy
import json
import os
import random
import signal
from contextlib import asynccontextmanager, suppress

from berth.client.api import Api
from berth.client.authentication.credentials import load_endpoint
from berth.client.transport import Transport
from berth.demo.checker import check, fetch_state
from berth.demo.dataset import open_dataset
from berth.demo.errors import ChildFailedError
from berth.demo.files import RunFiles
from berth.demo.processes import Child, program
from berth.demo.submission import create_all
from berth.demo.surface import Surface
from tests.e2e.api_servers import IN_MEMORY
from tests.suite import PATIENCE_SECONDS

LOOK_SECONDS = 0.1
# A successor need not wait as long as in production until the lease of a killed leader has run out.
QUICK_ELECTION = "leaderElect: true\n  leaseDuration: 3s\n  renewDeadline: 2s\n  retryPeriod: 500ms"
IMPOSSIBLE = "impossible"


class Cluster:
    """The processes of a run and what the API says of its pods."""

    def __init__(self, files, environment):
        self.files = files
        self.children = {}
        self.surface = Surface.free()
        self._transport = None
        self._environment = {"BERTH_TRACE_FILE": str(files.traces), **environment}

    @asynccontextmanager
    async def connected(self, kubeconfig):
        """Talk to the API."""
        self._transport = Transport(load_endpoint(kubeconfig=kubeconfig), max_connections=16)
        try:
            yield
        finally:
            await self._transport.aclose()

    async def start_plugin(self):
        """Start gpu-share."""
        command = [program("berth-gpu-share"), "--address", f"unix:{self.files.socket}"]
        await self._start("gpu-share", command)

    async def start_scheduler(self):
        """Start the scheduler and wait until it watches everything."""
        command = [
            program("berth"),
            "scheduler",
            f"--config={self.files.configuration}",
            f"--plugins={self.files.plugins}",
            "--bind-address=127.0.0.1",
            f"--secure-port={self.surface.port}",
            "--authorization-always-allow-paths=/healthz,/livez,/readyz,/metrics,/apis/explain.berth.dev/*",
        ]
        scheduler = await self._start("scheduler", command)
        await self.surface.wait_ready(scheduler, PATIENCE_SECONDS)

    async def kill(self, name):
        """End a process at once, so that it can finish nothing."""
        child = self.children.pop(name)
        os.kill(child.pid, signal.SIGKILL)
        async with asyncio.timeout(PATIENCE_SECONDS):
            while True:
                try:
                    child.check()
                except ChildFailedError:
                    return
                await asyncio.sleep(LOOK_SECONDS)

    def send(self, name, number):
        """Send a process a signal."""
        os.kill(self.children[name].pid, number)

    async def create(self, documents):
        """Create objects."""
        await create_all(Api(self._transport), documents)

    async def pods(self):
        """All pods, as the API has them."""
        return json.loads(await self._get("/api/v1/pods"))["items"]

    async def reach(self, wanted, why):
        """Wait until the pods are as wanted, and give them."""
        pods = []
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while True:
                    if wanted(pods := await self.pods()):
                        return pods
                    await asyncio.sleep(LOOK_SECONDS)
        except TimeoutError:
            waiting = [pod["metadata"]["name"] for pod in pods if not decided(pod)]
            raise AssertionError(f"not in time: {why}; undecided: {waiting[:5]} ({len(waiting)})") from None

    async def report(self, **allowed):
        """What the checker says of the API's state."""
        return check(*await fetch_state(self._get), **allowed)

    async def stop(self):
        """End what runs."""
        for child in reversed(self.children.values()):
            with suppress(ProcessLookupError):
                os.kill(child.pid, signal.SIGCONT)
            await child.stop()

    async def _start(self, name, command):
        child = await Child.start(name, command, self.files.log(name), self._environment)
        self.children[name] = child
        return child

    async def _get(self, path):
        return (await self._transport.request("GET", path)).body


@asynccontextmanager
async def cluster(folder, socket_folder, *, nodes, server=IN_MEMORY, **environment):
    """Sandbox, gpu-share and scheduler, some nodes of the trace, and no pods yet."""
    files = RunFiles(folder, socket_folder)
    files.prepare()
    configuration = files.configuration.read_text()
    files.configuration.write_text(configuration.replace("leaderElect: true", QUICK_ELECTION))
    kubeconfig = str(files.kubeconfig)
    found = Cluster(files, environment)
    sandbox = await Child.start("sandbox", server.command(kubeconfig), files.log("sandbox"))
    try:
        await found.start_plugin()
        await sandbox.wait_for(files.kubeconfig, PATIENCE_SECONDS)
        async with found.connected(kubeconfig):
            objects = open_dataset().load()
            await found.create([*objects.others, *random.Random(0).sample(objects.nodes, nodes)])
            await found.start_scheduler()
            yield found
    finally:
        await found.stop()
        await sandbox.stop()


def some_pods(*, gpu, others):
    """Pods of the trace, some for gpu-share and some for the other profiles, mixed; one fits nowhere."""
    pods = open_dataset().load().pods
    sharing = [pod for pod in pods if pod["spec"]["schedulerName"] == "gpu-share"][:gpu]
    plain = [pod for pod in pods if pod["spec"]["schedulerName"] != "gpu-share"][:others]
    hopeless = copy.deepcopy(plain[0])
    hopeless["metadata"]["name"] = IMPOSSIBLE
    hopeless["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "4000"
    chosen = [*sharing, *plain, hopeless]
    random.Random(1).shuffle(chosen)
    return chosen


def bound(pod):
    """Whether the pod is on a node."""
    return bool(pod["spec"].get("nodeName"))


def decided(pod):
    """Whether the pod is bound, or says that it does not fit and why."""
    conditions = pod.get("status", {}).get("conditions", ())
    reasons = [c for c in conditions if c["type"] == "PodScheduled" and c.get("reason") == "Unschedulable"]
    return bound(pod) or any(condition.get("message") for condition in reasons)
