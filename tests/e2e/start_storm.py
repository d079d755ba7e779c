"""Starts of a scheduler with TLS and leader election on a loaded machine: `python -m tests.e2e.start_storm`.

Each start has to get the lease, prove its view and bind a pod; then it is ended, and has to end well.
`--load` is how many processes compute meanwhile, `--loop` the event loop; both loops where none is named.
"""

import argparse
import asyncio
import json
import sys
import tempfile
from contextlib import asynccontextmanager
from pathlib import Path

from berth.client.api import Api
from berth.client.authentication.credentials import load_endpoint
from berth.client.resources import NODES, PODS
from berth.client.transport import Transport
from berth.client.wire import encode
from berth.demo.errors import DemoError
from berth.demo.processes import Child, program
from berth.sandbox.free_port import LOOPBACK, free_port
from tests.e2e.faults import CONFIGURATION, ELECTION, NO_LIMIT, node, pod
from tests.suite import LOOP_VARIABLE, LOOPS, PATIENCE_SECONDS

"""Also until a scheduler that was asked to end has ended: a loaded machine takes its time."""
LOOK_SECONDS = 0.05
BUSY = (sys.executable, "-c", "while True: pass")


@asynccontextmanager
async def cluster(folder, pods):
    """A sandbox with TLS and RBAC, and room for the pods: its kubeconfig and its API."""
    kubeconfig = folder / "kubeconfig"
    command = [program("berth"), "sandbox", "up", "--port=0", "--authorization-mode=RBAC", "--no-kubelets"]
    sandbox = await Child.start("sandbox", [*command, f"--kubeconfig={kubeconfig}"], folder / "sandbox.log")
    try:
        await sandbox.wait_for(kubeconfig, PATIENCE_SECONDS)
        transport = Transport(load_endpoint(kubeconfig=str(kubeconfig)))
        api = Api(transport)
        await api.create(NODES, "", encode(node("n1", pods)))
        try:
            yield kubeconfig, api
        finally:
            await transport.aclose()
    finally:
        await sandbox.stop()


@asynccontextmanager
async def load(count):
    """So many processes that do nothing but compute."""
    busy = [await asyncio.create_subprocess_exec(*BUSY) for _ in range(count)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
        await asyncio.gather(*(process.wait() for process in busy))


async def one_start(folder, kubeconfig, api, name, loop):
    """What went wrong in one start that has to bind the pod of that name; None for nothing."""
    configuration = folder / "configuration.yaml"
    configuration.write_text(
        CONFIGURATION.format(kubeconfig=kubeconfig, elect="true", qps=NO_LIMIT, **ELECTION)
    )
    await api.create(PODS, "default", encode(pod(name)))
    options = (f"--config={configuration}", f"--bind-address={LOOPBACK}", f"--secure-port={free_port()}")
    command = [program("berth"), "scheduler", *options]
    scheduler = await Child.start(name, command, folder / f"{name}.log", {LOOP_VARIABLE: loop})
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not json.loads(await api.get(PODS, "default", name))["spec"].get("nodeName"):
                scheduler.check()
                await asyncio.sleep(LOOK_SECONDS)
        await scheduler.stop(PATIENCE_SECONDS)
    except (DemoError, TimeoutError) as error:
        await scheduler.stop(PATIENCE_SECONDS)
        return f"{type(error).__name__}: {error}\n{scheduler.last_words()}"
    if scheduler.exit_code:
        return f"exit code {scheduler.exit_code}\n{scheduler.last_words()}"
    log = scheduler.log.read_text()
    return log if "Traceback" in log else None


async def run(folder, starts, busy, loop):
    """What went wrong, for each start that did not go well."""
    async with cluster(folder, starts) as (kubeconfig, api), load(busy):
        ends = [await one_start(folder, kubeconfig, api, f"start-{i}", loop) for i in range(starts)]
    return [end for end in ends if end is not None]


def main():
    """Print how many starts went well on each loop, and what went wrong with the others."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--starts", type=int, default=50)
    parser.add_argument("--load", type=int, default=20)
    parser.add_argument("--loop", choices=LOOPS)
    options = parser.parse_args()
    failed = 0
    for loop in (options.loop,) if options.loop else LOOPS:
        with tempfile.TemporaryDirectory(prefix="berth-") as folder:
            wrong = asyncio.run(run(Path(folder), options.starts, options.load, loop))
        sys.stdout.write(f"{loop}: {options.starts - len(wrong)} of {options.starts} starts went well\n")
        sys.stdout.writelines(f"{each}\n" for each in wrong)
        failed += len(wrong)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
