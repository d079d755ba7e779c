"""A sandbox, a scheduler with the default profile as a real process, and all that the API says of pods."""

import asyncio
import json
import urllib.parse
from contextlib import AsyncExitStack, asynccontextmanager, suppress

from berth.client.api import Api
from berth.client.authentication.credentials import load_endpoint
from berth.client.resources import PODS
from berth.client.transport import Transport
from berth.client.wire import encode
from berth.demo.processes import Child, program
from berth.demo.surface import Surface
from tests.e2e.api_servers import THREADED
from tests.e2e.threaded_sandbox import threaded_sandbox
from tests.pod_events import current_pods, pod_events
from tests.suite import PATIENCE_SECONDS

LOOK_SECONDS = 0.02
AT_ONCE = 16

CONFIGURATION = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {{kubeconfig: {kubeconfig}, qps: -1}}
leaderElection: {{leaderElect: false}}
"""
BERTH = ("berth", "scheduler")


class Running:
    """Both, and what a user does with them."""

    def __init__(self, transport, scheduler, surface):
        self.transport, self.scheduler, self._surface = transport, scheduler, surface
        self._api = Api(transport)

    async def create(self, resource, documents):
        """Create objects, a few at a time."""
        for i in range(0, len(documents), AT_ONCE):
            batch = documents[i : i + AT_ONCE]
            await asyncio.gather(*(self._create(resource, document) for document in batch))

    async def _create(self, resource, document):
        await self._api.create(resource, document["metadata"].get("namespace", ""), encode(document))

    async def patch(self, resource, name, patch, namespace="", subresource=""):
        """Merge something into an object."""
        await self._api.patch(resource, namespace, name, encode(patch), subresource=subresource)

    async def delete(self, resource, name, namespace="", **options):
        """Delete an object."""
        await self._api.delete(resource, namespace, name, encode(options) if options else b"")

    async def metrics(self, *names):
        """The scheduler's metrics of these names, each sample's value by its name and labels."""
        query = urllib.parse.urlencode([("name[]", name) for name in names])
        text = (await asyncio.to_thread(self._surface.read, f"/metrics?{query}")).decode()
        lines = [line.rpartition(" ") for line in text.splitlines() if not line.startswith("#")]
        return {name: float(value) for name, _, value in lines}

    @asynccontextmanager
    async def watching(self, look, resource=PODS):
        """Tell `look` of each event of each pod or other object, those there are as added: (type, object)."""
        documents, resource_version = await current_pods(self.transport, resource)
        for document in documents:
            look("ADDED", document)
        task = asyncio.create_task(self._watch(resource_version, look, resource))
        try:
            yield
            assert not task.done(), "the watch ended before its time"
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _watch(self, resource_version, look, resource):
        async for kind, document in pod_events(self.transport, resource_version, resource):
            look(kind, document)

    async def reach(self, claim):
        """Wait until the claim holds."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not claim():
                self.scheduler.check()
                await asyncio.sleep(LOOK_SECONDS)


@asynccontextmanager
async def default_cluster(
    folder, documents, configuration=CONFIGURATION, flags=(), *, scheduler=BERTH, server=THREADED
):
    """Sandbox with these objects, and scheduler, with further flags of its own: Berth, or another program."""
    kubeconfig, objects = folder / "kubeconfig", folder / "objects.json"
    async with AsyncExitStack() as stack:
        if server.threaded:
            stack.enter_context(threaded_sandbox(kubeconfig, documents))
        else:
            objects.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": documents}))
            up = server.command(kubeconfig, f"--load={objects}", pod_groups=bool(flags))
            sandbox = await Child.start("sandbox", up, folder / "sandbox.log")
            stack.push_async_callback(sandbox.stop)
            await sandbox.wait_for(kubeconfig, PATIENCE_SECONDS)
        transport = Transport(load_endpoint(kubeconfig=str(kubeconfig)), max_connections=AT_ONCE + 2)
        stack.push_async_callback(transport.aclose)
        configured = folder / "scheduler.yaml"
        configured.write_text(configuration.format(kubeconfig=kubeconfig))
        running, surface = await start_scheduler(folder / "scheduler.log", configured, scheduler, flags)
        stack.push_async_callback(running.stop)
        await surface.wait_ready(running, PATIENCE_SECONDS)
        yield Running(transport, running, surface)


async def start_scheduler(log, configured, command=BERTH, flags=()):
    """Start a scheduler with that configuration: its process, and where it serves metrics and health."""
    surface = Surface.free()
    command = [
        program(command[0]),
        *command[1:],
        f"--config={configured}",
        "--bind-address=127.0.0.1",
        f"--secure-port={surface.port}",
        "--authorization-always-allow-paths=/readyz,/metrics",
        *flags,
    ]
    return await Child.start("scheduler", command, log), surface
