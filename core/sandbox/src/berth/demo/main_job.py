"""The main job: sandbox, sidecar and scheduler as real processes, a production cluster's pods through them.

sandbox -> nodes created -> sidecar -> scheduler ready -> pods created -> all decided -> checked -> reported
"""

import asyncio
import tempfile
from collections.abc import Callable
from contextlib import AsyncExitStack
from http import HTTPStatus
from http.client import HTTPException
from pathlib import Path

import msgspec

from berth.client.api import Api
from berth.client.authentication.credentials import load_endpoint
from berth.client.transport import Transport
from berth.demo.checker import check, fetch_state, summary
from berth.demo.dataset import Objects, open_dataset
from berth.demo.display import Show, display
from berth.demo.errors import DemoError
from berth.demo.files import RunFiles
from berth.demo.latency import latencies, not_taken
from berth.demo.pace import DemoPace
from berth.demo.processes import Child, program
from berth.demo.report import RunResult, report_lines
from berth.demo.submission import create_all
from berth.demo.surface import Surface
from berth.telemetry.traces.trace_file import read_trace_file
from berth.telemetry.traces.tracing import exporter_names

READY_SECONDS = 60.0
LOOK_SECONDS = 1.0
STILL_LOOKS = 3
"""How often in a row nothing must be left to try before the run counts as over."""


class RunOptions(msgspec.Struct, frozen=True):
    """What a run is asked for."""

    folder: Path
    dataset: Path | None = None
    seed: int = 0
    pods: int | None = None
    timeout_seconds: float = 600.0
    keep: bool = False
    real: bool = False
    """A real kube-apiserver and etcd in place of the API server in memory."""


async def run_main_job(options: RunOptions, say: Callable[[str], None]) -> bool:
    """Run it all and report; whether the checker found every placement allowed.

    Raises: DemoError, DatasetError, ClientError.
    """
    objects = await asyncio.to_thread(open_dataset(options.dataset, seed=options.seed).load)
    if options.pods is not None:
        objects = msgspec.structs.replace(objects, pods=objects.pods[: options.pods])
    async with AsyncExitStack() as stack:
        sockets = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="berth-")))
        files = RunFiles(options.folder, sockets)
        await asyncio.to_thread(files.prepare)
        run = await _Run.start(files, objects, stack, say, real=options.real)
        result = await run.schedule(objects, options.timeout_seconds)
        for line in report_lines(result, files, run.port):
            say(line)
        if options.keep:
            say("staying up; interrupt to end")
            await run.stay()
    return result.check.ok


class _Run:
    """The processes of a run and a connection to its API."""

    def __init__(
        self,
        files: RunFiles,
        children: list[Child],
        transport: Transport,
        surface: Surface,
        say: Callable[[str], None],
    ) -> None:
        self._files = files
        self._children = children
        self._transport = transport
        self._api = Api(transport)
        self._surface = surface
        self._say = say

    @classmethod
    async def start(
        cls,
        files: RunFiles,
        objects: Objects,
        stack: AsyncExitStack,
        say: Callable[[str], None],
        *,
        real: bool = False,
    ) -> "_Run":
        """Start everything, each process once the ones it needs are there."""
        children: list[Child] = []

        async def child(name: str, command: list[str], **environment: str) -> Child:
            started = await Child.start(name, command, files.log(name), environment)
            stack.push_async_callback(started.stop)
            children.append(started)
            return started

        berth = program("berth")
        kubeconfig = str(files.kubeconfig)
        up = [berth, "sandbox", "up", "--kubeconfig", kubeconfig, *(("--real",) if real else ())]
        sandbox = await child("sandbox", up)
        await sandbox.wait_for(files.kubeconfig, READY_SECONDS)
        transport = Transport(load_endpoint(kubeconfig=kubeconfig), max_connections=32)
        stack.push_async_callback(transport.aclose)
        created = await create_all(Api(transport), [*objects.others, *objects.nodes])
        say(f"sandbox up, {created} objects created, {len(objects.nodes)} of them nodes")
        traced = {"BERTH_TRACE_FILE": str(files.traces)}
        sidecar = [program("berth-gpu-share"), "--address", f"unix:{files.socket}"]
        gpu_share = await child("gpu-share", sidecar, **traced)
        await gpu_share.wait_for(files.socket, READY_SECONDS)
        surface = Surface.free()
        scheduler = await child("scheduler", [berth, *_scheduler_arguments(files, surface)], **traced)
        await surface.wait_ready(scheduler, READY_SECONDS)
        say("gpu-share and scheduler up, three profiles: default-scheduler, bin-packing, gpu-share")
        say(f"the live page, for a browser on this machine: {surface.url}/live")
        return cls(files, children, transport, surface, say)

    @property
    def port(self) -> int:
        """The scheduler's secure port."""
        return self._surface.port

    async def schedule(self, objects: Objects, timeout_seconds: float) -> RunResult:
        """Submit the pods and wait until each is bound or was turned down."""
        pace = DemoPace(len(objects.pods), timeout_seconds)
        submission = asyncio.create_task(create_all(self._api, objects.pods))
        submission.add_done_callback(lambda _: pace.submitted())
        with display() as show:
            await self._watch(submission, pace, show)
        await submission
        state = await fetch_state(self._get)
        usage = {child.name: child.usage() for child in self._children}
        spans = await asyncio.to_thread(lambda: latencies(read_trace_file(self._files.traces)))
        # After the file was read: what was exported meanwhile is not missed.
        exported = (await self._surface.progress()).traces["exported"]
        return RunResult(
            summary(state.nodes, state.pods),
            check(state.nodes, state.pods, state.events),
            spans,
            usage,
            pace.seconds,
            pace.submit_seconds,
            not_taken(spans, exported, len(exporter_names())),
        )

    async def stay(self) -> None:
        """Stay up until cancelled, or until a process ends."""
        while True:
            for child in self._children:
                child.check()
            await asyncio.sleep(LOOK_SECONDS)

    async def _watch(self, submission: asyncio.Task[int], pace: DemoPace, show: Show) -> None:
        """Show how far it is until the last pod was decided.

        Raises: DemoError where it takes too long, ChildFailedError where a process ends.
        """
        while not pace.still_for(STILL_LOOKS):
            await asyncio.sleep(LOOK_SECONDS)
            for child in self._children:
                child.check()
            try:
                progress = await self._surface.progress()
            except (HTTPException, OSError):
                continue
            rate = pace.look(progress, all_submitted=submission.done())
            show(progress, pace.elapsed, rate)
            if pace.late:
                raise DemoError(
                    f"after {pace.elapsed:.0f} s only {progress.bound} pods are bound, others still to be "
                    f"tried (log: {self._files.log('scheduler')})"
                )

    async def _get(self, path: str) -> bytes:
        response = await self._transport.request("GET", path)
        if response.status != HTTPStatus.OK:
            raise DemoError(
                f"GET {path} was answered with {response.status} (log: {self._files.log('sandbox')})"
            )
        return response.body


def _scheduler_arguments(files: RunFiles, surface: Surface) -> list[str]:
    return [
        "scheduler",
        f"--config={files.configuration}",
        f"--plugins={files.plugins}",
        "--bind-address=127.0.0.1",
        f"--secure-port={surface.port}",
        "--live-page",
        "--authorization-always-allow-paths=/healthz,/livez,/readyz,/metrics,/live*,/apis/explain.berth.dev/*",
    ]
