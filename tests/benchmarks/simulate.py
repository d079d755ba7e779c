"""A simulation of openb beside real processes: the same pods on the same nodes, and what it costs.

The sandbox is an API server in memory, or a real one with `--real`; the scheduler is a process of its own
whose choices come from the same seed. Its pods are there before it starts: it takes them in their order.
"""

import asyncio
import json
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path

import click
import msgspec
import yaml

from berth.client.api import Api
from berth.client.authentication.credentials import load_endpoint
from berth.client.transport import Transport
from berth.config.loading import load
from berth.demo.checker import fetch_state
from berth.demo.dataset import open_dataset
from berth.demo.files import SCHEDULER_CONFIGURATION
from berth.demo.processes import Child, program
from berth.demo.submission import create_all
from berth.demo.surface import Surface
from berth.scheduler.loop.event_loop import collect_seldom
from berth.simulation.reading.inputs import read_cluster
from berth.simulation.running.engine import simulate
from berth.simulation.running.options import SimulationOptions
from tests.benchmarks.gpu_sharing_run import READY_SECONDS, all_decided
from tests.benchmarks.tables import Table
from tests.unit.simulation.kit import written

SEED = 7
GOAL_SECONDS = 10


def run(options):
    """A row, and an exit code of 1 where a pod is on another node."""
    objects = open_dataset(options.openb, seed=0).load()
    if options.pods:
        objects = msgspec.structs.replace(objects, pods=objects.pods[: options.pods])
    with tempfile.TemporaryDirectory(prefix="berth-") as name:
        folder = Path(name)
        simulated, seconds = alone(objects, folder)
        real = asyncio.run(processes(objects, folder, real=options.real))
    different = sorted(pod for pod in simulated | real if simulated.get(pod) != real.get(pod))
    table = Table(
        f"simulation of openb (to reach: {GOAL_SECONDS} s)", ["pods", "placed", "other node", "CPU s"]
    )
    table.add(f"{len(objects.pods):,}", f"{len(simulated):,}", str(len(different)), f"{seconds:.1f}")
    table.show()
    for pod in different[:10]:
        click.echo(f"{pod}: simulated on {simulated.get(pod)}, really on {real.get(pod)}")
    if different:
        sys.exit(1)


def configuration(kubeconfig=""):
    """The demo's three profiles, without the plugin that is a process of its own."""
    document = yaml.safe_load(SCHEDULER_CONFIGURATION.format(kubeconfig=kubeconfig))
    for profile in document["profiles"]:
        profile.pop("plugins", None)
    return {**document, "leaderElection": {"leaderElect": False}}


def alone(objects, folder):
    """The node of each pod in a simulation, and the CPU seconds that it took, reading included."""
    collect_seldom()
    file = written(folder / "cluster.json", *objects.in_creation_order())
    started = time.process_time()
    outcome = simulate(read_cluster([file]), SimulationOptions(load(json.dumps(configuration())), seed=SEED))
    return outcome.placed_on, time.process_time() - started


async def processes(objects, folder, *, real):
    """The node of each pod with processes."""
    kubeconfig = folder / "kubeconfig"
    (folder / "scheduler.yaml").write_text(json.dumps(configuration(str(kubeconfig))), encoding="utf-8")
    async with AsyncExitStack() as stack:
        children = []

        async def child(name, *command):
            children.append(await Child.start(name, list(command), folder / name))
            stack.push_async_callback(children[-1].stop)
            return children[-1]

        up = (program("berth"), "sandbox", "up", "--kubeconfig", str(kubeconfig), *(["--real"] * real))
        await (await child("sandbox", *up)).wait_for(kubeconfig, READY_SECONDS)
        transport = Transport(load_endpoint(kubeconfig=str(kubeconfig)), max_connections=32)
        stack.push_async_callback(transport.aclose)
        await create_all(Api(transport), [*objects.others, *objects.nodes, *objects.pods])
        surface = Surface.free()
        scheduler = await child(
            "scheduler",
            *(sys.executable, "-m", "tests.benchmarks.seeded_scheduler", str(SEED)),
            f"--config={folder / 'scheduler.yaml'}",
            "--bind-address=127.0.0.1",
            f"--secure-port={surface.port}",
            "--authorization-always-allow-paths=/readyz,/metrics",
        )
        await surface.wait_ready(scheduler, READY_SECONDS)
        await all_decided(surface, children, len(objects.pods))

        async def get(path):
            return (await transport.request("GET", path)).body

        state = await fetch_state(get)
    placed = ((pod["metadata"], pod["spec"].get("nodeName")) for pod in state.pods)
    return {f"{meta['namespace']}/{meta['name']}": name for meta, name in placed if name}
