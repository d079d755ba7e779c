"""One run of the experiment: sandbox, gpu-share and scheduler as real processes, read back from the API.

The pods are there before the scheduler starts, so that it takes them in the order they were drawn in.
"""

import asyncio
import json
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path

from berth.client.api import Api
from berth.client.authentication.credentials import load_endpoint
from berth.client.transport import Transport
from berth.demo.checker import check, fetch_state, summary
from berth.demo.dataset.shapes import MILLI_GPU
from berth.demo.files import PLUGIN_LIST
from berth.demo.processes import Child, program
from berth.demo.submission import create_all
from berth.demo.surface import Surface
from tests.benchmarks.gpu_sharing_draw import SCHEDULER
from tests.sockets import listens

READY_SECONDS = 120.0
LONGEST_SECONDS = 1_200.0
LOOK_SECONDS = 0.5
STILL_LOOKS = 3

CONFIGURATION = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection:
  kubeconfig: {kubeconfig}
  qps: -1
leaderElection:
  leaderElect: false
podInitialBackoffSeconds: 3600
podMaxBackoffSeconds: 3600
profiles:
- schedulerName: {scheduler}
  plugins:
    multiPoint:
      enabled:
      - name: gpu-share
    score:
      disabled:
      - name: "*"
      enabled:
      - name: gpu-share
    postFilter:
      disabled:
      - name: "*"
  pluginConfig:
  - name: gpu-share
    args:
      policy: {policy}
      ties: {ties}
      cpuPods: true
"""


async def allocation(experiment, policy, ties, seed):
    """The figures of one run: GPU allocation in percent, pods, those bound, seconds, CPU seconds."""
    started = time.monotonic()
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="berth-")))
        kubeconfig, socket = folder / "kubeconfig", folder / "gpu-share.sock"
        configuration = CONFIGURATION.format(
            kubeconfig=kubeconfig, scheduler=SCHEDULER, policy=policy, ties=ties
        )
        (folder / "scheduler.yaml").write_text(configuration, encoding="utf-8")
        (folder / "plugins.yaml").write_text(PLUGIN_LIST.format(socket=socket), encoding="utf-8")
        children = []

        async def child(name, *command):
            children.append(await Child.start(name, [program(command[0]), *command[1:]], folder / name))
            stack.push_async_callback(children[-1].stop)
            return children[-1]

        sandbox = await child("sandbox", "berth", "sandbox", "up", "--kubeconfig", str(kubeconfig))
        await sandbox.wait_for(kubeconfig, READY_SECONDS)
        transport = Transport(load_endpoint(kubeconfig=str(kubeconfig)), max_connections=32)
        stack.push_async_callback(transport.aclose)
        await create_all(Api(transport), [*experiment.others, *experiment.nodes, *experiment.pods])
        (folder / "workload.json").write_text(json.dumps(experiment.workload), encoding="utf-8")
        sidecar = ("--address", f"unix:{socket}", "--policy", policy, "--seed", str(seed))
        sidecar += ("--workload", str(folder / "workload.json"))
        await serving(await child("gpu-share", "berth-gpu-share", *sidecar), socket)
        surface = Surface.free()
        scheduler = await child(
            "scheduler",
            "berth",
            "scheduler",
            f"--config={folder / 'scheduler.yaml'}",
            f"--plugins={folder / 'plugins.yaml'}",
            "--bind-address=127.0.0.1",
            f"--secure-port={surface.port}",
            "--authorization-always-allow-paths=/readyz,/metrics",
        )
        await surface.wait_ready(scheduler, READY_SECONDS)
        await all_decided(surface, children, len(experiment.pods))
        cpu_seconds = sum(each.usage().cpu_seconds for each in children)
        figures = await read_back(transport)
    return {**figures, "seconds": round(time.monotonic() - started, 1), "cpu_seconds": round(cpu_seconds, 1)}


async def serving(child, socket):
    """Wait until the sidecar accepts connections."""
    async with asyncio.timeout(READY_SECONDS):
        while not listens(socket):
            child.check()
            await asyncio.sleep(0.02)


async def all_decided(surface, children, pods):
    """Wait until every pod is bound or was turned down, and nothing has changed for a moment.

    Pods that were turned down stay where they are: nothing ever ends here, so no second attempt can succeed.
    """
    still, bound = 0, -1
    async with asyncio.timeout(LONGEST_SECONDS):
        while still < STILL_LOOKS:
            await asyncio.sleep(LOOK_SECONDS)
            for child in children:
                child.check()
            progress = await surface.progress()
            tried = progress.bound + sum(progress.queues.values()) >= pods and not progress.queues["active"]
            still = still + 1 if tried and progress.bound == bound else 0
            bound = progress.bound


async def read_back(transport):
    """What the API's state says of the run.

    Raises: AssertionError: a placement was not allowed.
    """

    async def get(path):
        return (await transport.request("GET", path)).body

    state = await fetch_state(get)
    report = check(state.nodes, state.pods, state.events)
    assert report.ok, report.lines()
    bound = sum("nodeName" in pod["spec"] for pod in state.pods)
    allocated = 100 * summary(state.nodes, state.pods).resources[MILLI_GPU].ratio
    return {"allocation": round(allocated, 3), "pods": len(state.pods), "bound": bound}
