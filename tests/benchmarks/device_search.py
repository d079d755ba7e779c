"""What other pods notice of claims that are hard to allocate: sandbox and scheduler as real processes.

A user who may create pods and resource claims writes claims that cannot be met, which may take hours to find
out; meanwhile ordinary pods of others come, one after the other. BERTH_CORE names the folder of another
version's `core` to measure instead of this one.
"""

import asyncio
import os
import tempfile
import time
from contextlib import AsyncExitStack, aclosing, suppress
from pathlib import Path

from berth.client.api import Api
from berth.client.authentication.credentials import load_endpoint
from berth.client.resources import DEVICE_CLASSES, NAMESPACES, NODES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES
from berth.client.transport import Transport
from berth.client.wire import encode
from berth.demo.files import RunFiles
from berth.demo.processes import Child, program
from berth.demo.surface import Surface
from tests.benchmarks.tables import Table, quantiles
from tests.pod_events import current_pods, pod_events

READY_SECONDS = 60.0
MEASURED_SECONDS = 40
BETWEEN_PODS_SECONDS = 0.2
NODES_COUNT, DEVICES, WANTED = 5, 24, 12
DRIVER = "gpu.example"
NOTHING = [{"cel": {"expression": f'device.attributes["{DRIVER}"].uuid == "none"'}}]


def run(options):
    """A row for each kind of claim."""
    table = Table(
        f"ordinary pods beside hard claims, {MEASURED_SECONDS} s",
        ["claims", "of", "ordinary pods", "bound", "p50 s", "p99 s", "most s", "scheduler's CPU s"],
    )
    for name, count, requests in (
        ("none", 0, []),
        ("ten requests, the last one impossible", 1, [*asked(9), *asked(1, "z", selectors=NOTHING)]),
        ("counters that almost suffice", 1, asked(1, count=WANTED)),
        ("counters again", 200, asked(1, count=WANTED)),
    ):
        if options.match in name:
            table.add(name, str(count), *asyncio.run(measured(count, requests)))
    table.show()


def asked(number, name="r", **more):
    exactly = {"deviceClassName": "gpu", **more}
    return [{"name": f"{name}{i}", "exactly": exactly} for i in range(number)]


def pod(name, namespace, claim=""):
    claims = {"resourceClaims": [{"name": "c", "resourceClaimName": claim}]} if claim else {}
    container = {"name": "c", "image": "i"}
    return {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"containers": [container], **claims},
    }


def slices(node):
    """A node's devices, no two of which are equal: the more of one shared counter, the less of the other."""
    common = {"driver": DRIVER, "nodeName": node}
    pool = {"name": node, "generation": 1, "resourceSliceCount": 2}
    enough = {"value": str(41 * WANTED)}
    counters = [{"name": "whole", "counters": {"slots": enough, "links": enough}}]
    devices = [
        {
            "name": f"d{i}",
            "attributes": {"uuid": {"string": f"u{i}"}},
            "consumesCounters": [
                {
                    "counterSet": "whole",
                    "counters": {"slots": {"value": str(7 + 3 * i)}, "links": {"value": str(76 - 3 * i)}},
                }
            ],
        }
        for i in range(DEVICES)
    ]
    for part, content in enumerate(({"sharedCounters": counters}, {"devices": devices})):
        yield {"metadata": {"name": f"{node}-{part}"}, "spec": {**common, "pool": pool, **content}}


async def measured(count, requests):
    """(pods, bound, p50, p99 and most seconds from created to bound, CPU seconds of the scheduler)."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="berth-")))
        files = RunFiles(folder, folder)
        files.prepare()

        async def child(name, *command, **environment):
            process = await Child.start(name, (program("berth"), *command), files.log(name), environment)
            stack.push_async_callback(process.stop)
            return process

        sandbox = await child("sandbox", "sandbox", "up", "--kubeconfig", str(files.kubeconfig))
        await sandbox.wait_for(files.kubeconfig, READY_SECONDS)
        transport = Transport(load_endpoint(kubeconfig=str(files.kubeconfig)), max_connections=32)
        stack.push_async_callback(transport.aclose)
        api = Api(transport)
        await stand_up(api)
        configuration = files.configuration.read_text(encoding="utf-8").partition("profiles:")[0]
        files.configuration.write_text(configuration, encoding="utf-8")
        other = {"PYTHONPATH": os.environ["BERTH_CORE"]} if "BERTH_CORE" in os.environ else {}
        flags = f"--config={files.configuration}", f"--secure-port={Surface.free().port}"
        scheduler = await child("scheduler", "scheduler", *flags, "--bind-address=127.0.0.1", **other)
        _, version = await current_pods(transport)
        bound = {}
        watching = asyncio.create_task(watch(pod_events(transport, version), bound))
        await api.create(PODS, "default", encode(pod("first", "default")))
        async with asyncio.timeout(READY_SECONDS):
            while "first" not in bound:  # noqa: ASYNC110 - another task's watch fills it
                await asyncio.sleep(0.05)
        before = scheduler.usage().cpu_seconds
        await hard_claims(api, count, requests)
        created = await trickle(api)
        await asyncio.sleep(1)
        watching.cancel()
        used = scheduler.usage().cpu_seconds - before
    waits = [bound.get(name, time.monotonic()) - at for name, at in created.items()]
    done = sum(name in bound for name in created)
    return str(len(created)), str(done), *quantiles(waits, 0.5, 0.99, 1.0), used


async def stand_up(api):
    await api.create(NAMESPACES, "", encode({"metadata": {"name": "hostile"}}))
    await api.create(DEVICE_CLASSES, "", encode({"metadata": {"name": "gpu"}, "spec": {}}))
    for name in (f"n{i}" for i in range(NODES_COUNT)):
        offers = {"cpu": "64", "memory": "256Gi", "pods": "1000"}
        node = {"metadata": {"name": name}, "status": {"allocatable": offers, "capacity": offers}}
        await api.create(NODES, "", encode(node))
        for part in slices(name):
            await api.create(RESOURCE_SLICES, "", encode(part))


async def hard_claims(api, count, requests):
    for number in range(count):
        name = f"hard{number}"
        claim = {
            "metadata": {"name": name, "namespace": "hostile"},
            "spec": {"devices": {"requests": requests}},
        }
        await api.create(RESOURCE_CLAIMS, "hostile", encode(claim))
        await api.create(PODS, "hostile", encode(pod(name, "hostile", name)))


async def trickle(api):
    """Ordinary pods, and when each was created."""
    created, begun = {}, time.monotonic()
    while time.monotonic() < begun + MEASURED_SECONDS:
        name = f"ordinary{len(created)}"
        created[name] = time.monotonic()
        await api.create(PODS, "default", encode(pod(name, "default")))
        await asyncio.sleep(BETWEEN_PODS_SECONDS)
    return created


async def watch(events, bound):
    """Note when each pod was first seen on a node."""
    with suppress(asyncio.CancelledError):
        async with aclosing(events):
            async for _, seen in events:
                if seen["spec"].get("nodeName"):
                    bound.setdefault(seen["metadata"]["name"], time.monotonic())
