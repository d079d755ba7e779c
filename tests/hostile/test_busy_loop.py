"""A scheduling loop that is busy for long, or hangs: lease, health and metrics go on, up to a bound."""

import asyncio
import json
import ssl
import threading
from contextlib import asynccontextmanager
from functools import partial

import aiohttp
import pytest

from berth.aggregated_api import kinds
from berth.client import Api, LeaderElector, LeaseSettings, Transport, load_endpoint
from berth.config import load
from berth.sandbox import SandboxOptions, serve
from berth.sandbox.free_port import free_port
from berth.scheduler import process
from berth.scheduler.loop.loop_turns import LoopTurns
from berth.scheduler.process_options import ProcessOptions, Serving
from tests.suite import PATIENCE_SECONDS
from tests.unit.scheduler_at_work import eventually

LEASES = "leases.coordination.k8s.io"
CONFIGURATION = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {{kubeconfig: {kubeconfig}}}
leaderElection: {{leaseDuration: {lease}, renewDeadline: {renewed_by}, retryPeriod: 100ms}}
"""
SHOWN = (
    "/livez*",
    "/healthz",
    "/readyz",
    "/metrics",
    "/configz",
    "/apis/explain.berth.dev/*",
    "/debug/cache",
    "/plugins",
    "/debug/pprof*",
)


class Scheduler(threading.Thread):
    """A scheduler in a thread of its own, whose loop can be kept busy; the sandbox runs in the test's."""

    def __init__(self, kubeconfig, sandbox, *, lease="240s", renewed_by="200s"):
        super().__init__(name="scheduler")
        self.sandbox = sandbox
        self.port = free_port()
        self.ready, self.idle = threading.Event(), threading.Event()
        self.loop = self.stop = None
        self.settings = ProcessOptions(
            load(CONFIGURATION.format(kubeconfig=kubeconfig, lease=lease, renewed_by=renewed_by)),
            seed=1,
            serving=Serving(port=self.port, always_allowed=SHOWN),
        )

    def run(self):
        asyncio.run(self._run())

    async def _run(self):
        self.loop, self.stop = asyncio.get_running_loop(), asyncio.Event()
        await process.run(self.settings, self.stop, on_ready=lambda _: self.ready.set())

    def burn(self):
        """Keep the loop busy in Python from now on, until `idle` is set."""
        self.loop.call_soon_threadsafe(self._burn)

    def _burn(self):
        while not self.idle.is_set():
            pass

    def end(self):
        self.idle.set()
        self.loop.call_soon_threadsafe(self.stop.set)

    async def show(self, path, **options):
        """The status and the text of a page."""
        connector = aiohttp.TCPConnector(ssl=ssl._create_unverified_context(), force_close=True)
        async with (
            aiohttp.ClientSession(connector=connector) as client,
            client.request("GET", f"https://127.0.0.1:{self.port}{path}", **options) as response,
        ):
            return response.status, await response.text()

    async def shows(self, path, status):
        """Wait until a page has that status; its text."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while (answer := await self.show(path))[0] != status:
                pass
        return answer[1]

    @property
    def lease(self):
        """What the lease says now."""
        entries = self.sandbox.store.collection(LEASES).entries()
        return next((entry.decode()["spec"] for entry in entries), {})


@asynccontextmanager
async def scheduling(tmp_path, **election):
    async with await serve(SandboxOptions(kubelets=False)) as sandbox:
        sandbox.write_kubeconfig(tmp_path / "kubeconfig")
        scheduler = Scheduler(tmp_path / "kubeconfig", sandbox, **election)
        scheduler.start()
        try:
            await eventually(lambda: scheduler.ready.is_set() and scheduler.lease.get("holderIdentity"))
            yield scheduler
        finally:
            scheduler.end()
            await asyncio.to_thread(scheduler.join)


@asynccontextmanager
async def candidate(scheduler):
    """Another process that campaigns for the lease."""
    transport = Transport(
        load_endpoint(kubeconfig=scheduler.settings.loaded.configuration.client_connection.kubeconfig)
    )
    try:
        yield LeaderElector(
            Api(transport), LeaseSettings(duration=2.0, renew_deadline=1.0, retry_period=0.1), "another"
        )
    finally:
        await transport.aclose()


async def busy(scheduler):
    """Wait until the loop is seen to be busy; what the check says."""
    scheduler.burn()
    async with asyncio.timeout(PATIENCE_SECONDS):
        while (said := await scheduler.show("/livez/schedulingLoop"))[1].endswith(" 0.0 s"):
            pass
    return said


async def test_a_busy_loop_is_alive(tmp_path):
    """Health says for how long it has been busy, and all that does not belong to the loop is shown."""
    async with scheduling(tmp_path) as scheduler:
        status, said = await busy(scheduler)
        verbose = await scheduler.show("/livez?verbose")
        shown = [(await scheduler.show(path))[0] for path in ("/livez", "/healthz", "/readyz", "/configz")]
        metrics = await scheduler.show("/metrics")

    assert 200 == status
    assert said.startswith("ok: the current turn has taken ")
    assert "[+]schedulingLoop ok: the current turn has taken " in verbose[1]
    assert [200] * 4 == shown
    assert 200 == metrics[0]
    assert 'leader_election_master_status{name="kube-scheduler"} 1.0' in metrics[1]


async def test_a_busy_leader_keeps_its_lease(tmp_path):
    """It is renewed again and again, while the loop does not come round once."""
    async with scheduling(tmp_path) as scheduler:
        await busy(scheduler)
        before = scheduler.lease
        renewed = set()
        while len(renewed) < 10:
            await eventually(lambda: scheduler.lease["renewTime"] not in {*renewed, before["renewTime"]})
            renewed.add(scheduler.lease["renewTime"])

        assert before["holderIdentity"] == scheduler.lease["holderIdentity"]
        assert before["leaseTransitions"] == scheduler.lease["leaseTransitions"]


@pytest.mark.parametrize("path", [kinds.QUEUE.path("", "default-scheduler"), "/debug/cache", "/plugins"])
async def test_what_belongs_to_a_busy_loop(tmp_path, monkeypatch, path):
    """It is asked for in vain for a while, and the answer says why; later it is there."""
    monkeypatch.setattr(process, "LoopTurns", partial(LoopTurns, answer_seconds=0.05))
    async with scheduling(tmp_path) as scheduler:
        await busy(scheduler)
        status, text = await scheduler.show(path)
        scheduler.idle.set()
        await scheduler.shows("/plugins", 200)

    assert 503 == status
    assert text.startswith("no answer from the scheduling loop within ")


async def test_a_busy_loop_is_profiled(tmp_path):
    """A profile shows what keeps it busy, though the loop never comes to know of it."""
    async with scheduling(tmp_path) as scheduler:
        await busy(scheduler)
        status, text = await scheduler.show("/debug/pprof/profile?seconds=0.1")
        stacks = await scheduler.show("/debug/pprof/goroutine")

    assert 200 == status
    assert "Scheduler._burn" in text
    assert "leadership" in stacks[1]


async def test_a_loop_that_hangs(tmp_path, monkeypatch):
    """Beyond the bound it is dead: health fails and says why, and the lease runs out, for another to take."""
    monkeypatch.setattr(process, "LoopTurns", partial(LoopTurns, longest_seconds=0.5))
    async with scheduling(tmp_path, lease="2s", renewed_by="1s") as scheduler:
        await busy(scheduler)
        await scheduler.shows("/livez", 500)
        _, said = await scheduler.show("/livez/schedulingLoop")
        async with candidate(scheduler) as other:
            await other.acquire()
            held_by = scheduler.lease["holderIdentity"]
            await other.release()
        scheduler.idle.set()
        await scheduler.shows("/livez", 200)
        await eventually(lambda: scheduler.lease["holderIdentity"])

    assert said.startswith("internal server error: the current turn has taken ")
    assert "another" == held_by


async def test_metrics_while_everything_is_counted(tmp_path):
    """Expositions are made while pods come and are bound: none stumbles over what changes meanwhile."""
    async with scheduling(tmp_path) as scheduler:
        resources = {"cpu": "4", "memory": "64Gi", "pods": "1000"}
        status = {"capacity": resources, "allocatable": resources}
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": status}
        scheduler.sandbox.load([node])
        for i in range(10):
            scheduler.sandbox.load([pod(f"p{i}-{k}") for k in range(20)])
            answers = await asyncio.gather(*(scheduler.show("/metrics") for _ in range(4)))

            assert [200] * 4 == [status for status, _ in answers]
        async with asyncio.timeout(PATIENCE_SECONDS):
            while (report := json.loads((await scheduler.show("/debug/cache"))[1]))["pods"] < 200:
                pass
            while report["assumed"] or report["inFlight"]:
                report = json.loads((await scheduler.show("/debug/cache"))[1])

    assert [] == report["differences"]


def pod(name):
    """A pod that fits everywhere."""
    spec = {"containers": [{"name": "c", "image": "i"}]}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
