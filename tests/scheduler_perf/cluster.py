"""The processes: an API server without kubelets, and one scheduler after the other on it.

Kubelets are left out as upstream leaves them out: a bound pod stays Pending.
"""

import os
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import yaml

from berth.client.authentication.credentials import load_endpoint
from berth.client.transport import Transport
from berth.demo.processes import Child, program
from berth.demo.surface import Surface
from tests.scheduler_perf import gates

READY_SECONDS = 120.0
REQUEST_SECONDS = 600.0
CONNECTIONS = 48
# As upstream's tests have it: util.go mustSetupCluster.
QPS, BURST = 5_000, 5_000


@dataclass(frozen=True)
class Scheduler:
    """A scheduler's name in the table, and its command."""

    name: str
    command: tuple[str, ...]


class Cluster:
    """An API server, and the scheduler that is on it at the moment."""

    def __init__(self, folder, scheduler, workload, *, real):
        self._folder = folder
        self._scheduler = scheduler
        self._workload = workload
        self._real = real
        self._kubeconfig = folder / "kubeconfig"
        self._server = None
        self._child = None
        self._surface = None
        self.transport = None

    @asynccontextmanager
    async def running(self):
        """The API server, until the context ends; a scheduler that was started ends with it."""
        flags = ["--no-kubelets"]
        if self._real:
            flags += [
                "--real",
                *(f"--api-server-flag={f}" for f in gates.api_server_flags(self._workload.gates)),
            ]
        command = (program("berth"), "sandbox", "up", "--kubeconfig", str(self._kubeconfig), *flags)
        self._server = server = await Child.start("API server", command, self._folder / "api-server.log")
        try:
            await server.wait_for(self._kubeconfig, READY_SECONDS)
            endpoint = load_endpoint(kubeconfig=str(self._kubeconfig))
            self.transport = Transport(endpoint, max_connections=CONNECTIONS, request_seconds=REQUEST_SECONDS)
            try:
                yield self
            finally:
                await self.stop_scheduler()
                await self.transport.aclose()
        finally:
            await server.stop()

    async def start_scheduler(self):
        """Start the scheduler and wait until it is ready."""
        configuration = self._folder / "scheduler.yaml"
        configuration.write_text(yaml.safe_dump(self._configuration()), encoding="utf-8")
        self._surface = Surface.free()
        name, *arguments = self._scheduler.command
        command = (
            program(name),
            *arguments,
            f"--config={configuration}",
            f"--secure-port={self._surface.port}",
            "--bind-address=127.0.0.1",
            "--authorization-always-allow-paths=/readyz,/metrics",
            *gates.scheduler_flags(self._workload.gates),
        )
        self._child = await Child.start(self._scheduler.name, command, self._folder / "scheduler.log")
        await self._surface.wait_ready(self._child, READY_SECONDS)

    def _configuration(self):
        path = self._workload.scheduler_config
        found = yaml.safe_load(path.read_text(encoding="utf-8")) if path else {}
        connection = {"kubeconfig": str(self._kubeconfig), "qps": QPS, "burst": BURST}
        if not self._real:
            # The sandbox reads resource claims as JSON alone (docs/sandbox.md).
            connection["contentType"] = "application/json"
        return {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            **found,
            "clientConnection": connection,
            "leaderElection": {"leaderElect": False},
        }

    async def stop_scheduler(self):
        """End the scheduler, where one runs."""
        if self._child is not None:
            await self._child.stop()
            self._child = None

    def check(self):
        """Raises: ChildFailedError where the scheduler has ended by itself."""
        if self._child is not None:
            self._child.check()

    def usage(self):
        """What the scheduler has used. Raises: ChildFailedError where it has ended."""
        self.check()
        return self._child.usage()

    def server_cpu_seconds(self):
        """What the API server has used, etcd and all other processes that it started included."""
        return cpu_seconds_of_tree(self._server.pid)

    def metrics(self):
        """The scheduler's metrics, as text."""
        return self._surface.read("/metrics").decode()


def cpu_seconds_of_tree(pid):
    """What a process and those that it started have used, as the kernel accounts it."""
    parents, used = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended meanwhile
            fields = path.read_text(encoding="utf-8").rpartition(")")[2].split()
            number = int(path.parent.name)
            parents[number], used[number] = int(fields[1]), int(fields[11]) + int(fields[12])
    tree = {pid}
    while more := {child for child, parent in parents.items() if parent in tree} - tree:
        tree |= more
    return sum(used.get(each, 0) for each in tree) / os.sysconf("SC_CLK_TCK")
