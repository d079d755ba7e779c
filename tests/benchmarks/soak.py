"""Churn for an hour, of everything that users, nodes, drivers and plugins name themselves: nothing may grow.

    python -m tests.benchmarks soak --minutes 60

As many objects come as go, each with names, labels, keys and texts of its own. What the scheduler holds is
asked every few seconds (`/debug/sizes`, and its memory from the kernel), shown on a plot, and compared: a
size whose least in the last third is above its most in the first third grew, and the run fails.
"""

import asyncio
import http.client
import json
import sys
import tempfile
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import click

from berth.client.errors import ClientError
from tests.benchmarks.soak_plot import plot
from tests.benchmarks.tables import Table
from tests.hostile.arena import LOOPBACK, anything, arena, node, pod
from tests.hostile.cases.devices import claim, device, device_class, resource_slice
from tests.hostile.cases.sidecars import PROFILES, Sidecar
from tests.hostile.probes import resident_mebibytes

NODES = 300
PATIENCE_SECONDS = 60.0
PODS_EACH_SECOND = 12
LIVING_PODS, LIVING_NODES = 200, 20
NODE_SECONDS, PLUGIN_SECONDS = 1.0, 20.0
SAMPLES, LEAST_SAMPLE_SECONDS = 120, 3.0
WARM_UP = 0.25
"""Of the run: maps fill, and memory finds its level."""
NOISE, FEW = 0.05, 64
MEBIBYTES = "resident MiB"
BOUNDED = {
    "_kept": 16_384,
    "_by_uid": 20_000,
    "_by_uid[]": 100_000,
    "_deltas": 512,
    "_known": 8_192,
    "_written": 8_192,
    "_asked": 8_192,
    "_asked[]": 4_096,
    "_asked[].namespaces": 4_096,
    "_asked[].rules": 4_096,
    "_asked[].column": 32 << 20,
    "_asked_by_selector._by_key[]": 4_096,
    "_asked_by_selector._by_key[][]": 4_096,
}
"""Maps that hold the last things by design: these fill up to so many, and no further."""
ZONE = "topology.kubernetes.io/zone"
HOST = "kubernetes.io/hostname"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def run(options):
    """The table of what grew, and the plot; exits with 1 where something did."""
    with tempfile.TemporaryDirectory(prefix="soak-", ignore_cleanup_errors=True) as folder:
        samples = asyncio.run(soaked(Path(folder), options.minutes * 60))
    drawn = Path("run/soak.svg")
    drawn.parent.mkdir(exist_ok=True)
    grown = what_grew(samples)
    drawn.write_text(plot(samples.seconds, samples.sizes, [MEBIBYTES, *grown]), encoding="utf-8")
    title = f"what grew in {options.minutes:g} minutes: {samples.pods:,} pods, {samples.nodes:,} nodes"
    click.echo(f"plot in {drawn}; {samples.missed} samples missed", err=True)
    table = Table(title, ["size", "after warm-up", "in the middle", "at the end", "for 1,000 pods"])
    for name in [MEBIBYTES, *grown]:
        series = after_warm_up(samples.sizes[name])
        parts = thirds(series)
        pods = samples.pods * (1 - WARM_UP) * 2 / 3
        slope = (mean(parts[2]) - mean(parts[0])) / pods * 1_000
        table.add(name, *(mean(part) for part in parts), slope)
    table.show()
    if grown:
        click.echo(f"{len(grown)} sizes grew")
        sys.exit(1)


@dataclass
class Samples:
    """Sizes over time; one that a sample has not is 0 there."""

    seconds: list[float] = field(default_factory=list)
    sizes: dict[str, list[float]] = field(default_factory=dict)
    pods: int = 0
    nodes: int = 0
    missed: int = 0

    def add(self, seconds, sizes):
        """Add a sample."""
        known = len(self.seconds)
        self.seconds.append(seconds)
        for name in self.sizes.keys() | sizes.keys():
            self.sizes.setdefault(name, [0.0] * known).append(float(sizes.get(name, 0)))


async def soaked(folder, seconds):
    """The samples of a run."""
    sidecar, samples = Sidecar("nothing", folder), Samples()
    await sidecar.start()
    around = {"configuration": PROFILES, "flags": (f"--plugins={sidecar.list}",)}
    pools = [
        resource_slice(f"node-{i}", [device(j) for j in range(4)], nodeName=f"node-{i}") for i in range(20)
    ]
    objects = [device_class(), *pools]
    try:
        async with arena(folder, NODES, objects=objects, **around) as made:
            churn = [pods(made, samples), nodes(made, samples), restarts(sidecar)]
            tasks = [asyncio.create_task(each) for each in churn]
            try:
                await sampled(made, samples, seconds)
            finally:
                for task in tasks:
                    task.cancel()
                ended = await asyncio.gather(*tasks, return_exceptions=True)
                if failed := [e for e in ended if not isinstance(e, asyncio.CancelledError)]:
                    click.echo(f"the churn ended early: {failed}", err=True)
    finally:
        await sidecar.remove()
    return samples


async def sampled(made, samples, seconds):
    """Look at the scheduler until the time is over."""
    began = time.monotonic()
    every = max(seconds / SAMPLES, LEAST_SAMPLE_SECONDS)
    for number in count(1):
        await asyncio.sleep(max(0.0, began + number * every - time.monotonic()))
        now = time.monotonic() - began
        if now > seconds:
            return
        made.scheduler.check()
        sizes = await asyncio.to_thread(sizes_reported, made.surface.port)
        if sizes is None:
            samples.missed += 1
            continue
        samples.add(now, {**sizes, MEBIBYTES: resident_mebibytes(made.scheduler.pid)})


def sizes_reported(port):
    """What the scheduler says of its sizes, None where it does not answer, or is too busy to."""
    asked = http.client.HTTPSConnection(LOOPBACK, port, timeout=PATIENCE_SECONDS, context=anything())
    try:
        asked.request("GET", "/debug/sizes")
        answer = asked.getresponse()
        return json.loads(answer.read()) if answer.status == http.HTTPStatus.OK else None
    except OSError:
        return None
    finally:
        asked.close()


async def pods(made, samples):
    """Pods of every kind, each gone when so many younger ones are there."""
    living, start = deque(), time.monotonic()
    for number in count():
        name = f"pod-{number}"
        with suppress(ClientError):
            for document in KINDS[number % len(KINDS)](number):
                await made.write(document)
                living.append((document["kind"], document["metadata"]["name"], number))
        samples.pods = number
        while living and living[0][2] <= number - LIVING_PODS:
            kind, name, _ = living.popleft()
            with suppress(ClientError):
                await made.remove(kind, name)
        await asyncio.sleep(max(0.0, start + number / PODS_EACH_SECOND - time.monotonic()))


async def nodes(made, samples):
    """Nodes that join with labels, taints, images and resources of their own, and leave."""
    for number in count(NODES):
        joined = node(number)
        joined["metadata"]["labels"][f"example.com/pool-{number}"] = "x"
        joined["spec"] = {"taints": [{"key": "owner", "value": f"t{number}", "effect": "PreferNoSchedule"}]}
        joined["status"]["images"] = [{"names": [f"registry.example.com/i-{number}:1"], "sizeBytes": 1 << 28}]
        joined["status"]["allocatable"] |= {f"example.com/of-{number}": "1"}
        await made.write(joined)
        samples.nodes = number - NODES
        if number - NODES >= LIVING_NODES:
            with suppress(ClientError):
                await made.remove("Node", f"node-{number - LIVING_NODES}")
        await asyncio.sleep(NODE_SECONDS)


async def restarts(sidecar):
    """The plugin ends and starts again, for ever."""
    while True:
        await asyncio.sleep(PLUGIN_SECONDS)
        await sidecar.stop()
        await asyncio.sleep(PLUGIN_SECONDS / 4)
        await sidecar.start()


def labelled(i):
    """Labels of its own."""
    yield pod(f"pod-{i}", labels={f"key-{i}-{j}": f"value-{i}" for j in range(10)})


def apart(i):
    """A term of its own."""
    term = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": f"app-{i}"}}}
    yield pod(f"pod-{i}", labels={"app": f"app-{i}"}, affinity={"podAntiAffinity": {REQUIRED: [term]}})


def spread(i):
    """A selector of its own."""
    constraint = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"set": f"set-{i}"}},
    }
    yield pod(f"pod-{i}", labels={"set": f"set-{i}"}, topologySpreadConstraints=[constraint])


def choosy(i):
    """A key of its own, which no node has."""
    yield pod(f"pod-{i}", nodeSelector={f"wanted-{i}": "x"})


def odd_topology(i):
    """A topology key of its own."""
    constraint = {"maxSkew": 1, "topologyKey": f"level-{i}", "whenUnsatisfiable": "ScheduleAnyway"}
    yield pod(f"pod-{i}", topologySpreadConstraints=[{**constraint, "labelSelector": {}}])


def odd_resource(i):
    """A resource of its own, of which it wants nothing."""
    amounts = {f"example.com/r-{i}": "0", "cpu": "10m"}
    yield pod(f"pod-{i}", container={"resources": {"requests": amounts, "limits": amounts}})


def port(i):
    """A host port of its own."""
    ports = [
        {"containerPort": 80, "hostPort": 1 + i % 60_000, "hostIP": f"10.{i >> 16}.{i >> 8 & 255}.{i & 255}"}
    ]
    yield pod(f"pod-{i}", container={"ports": ports})


def unbound(i):
    """A claim of a volume that no driver provides."""
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": f"class-{i}",
        "resources": {"requests": {"storage": f"{i + 1}"}},
    }
    yield {"kind": "PersistentVolumeClaim", "metadata": {"name": f"pvc-{i}"}, "spec": spec}
    yield pod(f"pod-{i}", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": f"pvc-{i}"}}])


def with_device(i):
    """A claim of a device by an expression of its own."""
    yield claim(f"claim-{i}", f'device.driver != "d{i}"')
    yield pod(f"pod-{i}", resourceClaims=[{"name": "c", "resourceClaimName": f"claim-{i}"}])


def gated(i):
    """A gate of its own."""
    yield pod(f"pod-{i}", schedulingGates=[{"name": f"example.com/gate-{i}"}])


def asked_of_a_sidecar(i):
    """A pod of the plugin's profile."""
    yield pod(f"pod-{i}", schedulerName="hostile", container={"image": f"registry.example.com/image-{i}:1"})


def preferring(i):
    """A preference and a toleration of its own."""
    expression = {"key": ZONE, "operator": "NotIn", "values": [f"z-{i}"]}
    wish = {"weight": 1, "preference": {"matchExpressions": [expression]}}
    near = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [wish]}}
    yield pod(f"pod-{i}", affinity=near, tolerations=[{"key": f"taint-{i}", "operator": "Exists"}])


KINDS = (
    labelled,
    apart,
    spread,
    choosy,
    odd_topology,
    odd_resource,
    port,
    unbound,
    with_device,
    gated,
    asked_of_a_sidecar,
    preferring,
)


def after_warm_up(series):
    """What comes after maps have filled."""
    return series[int(len(series) * WARM_UP) :]


def thirds(series):
    """Three parts of a series."""
    third = max(len(series) // 3, 1)
    return series[:third], series[third:-third], series[-third:]


def mean(series):
    """The mean, 0 of nothing."""
    return sum(series) / max(len(series), 1)


def what_grew(samples):
    """The sizes that grew beyond noise, those first that grew most."""
    found = {}
    for name, series in samples.sizes.items():
        first, _, last = thirds(after_warm_up(series))
        growth = mean(last) - mean(first)
        bound = next((most for end, most in BOUNDED.items() if name.endswith(f".{end}")), None)
        fills = name.endswith("()") or (bound is not None and max(last) <= bound)
        if (
            name != MEBIBYTES
            and not fills
            and min(last) > max(first)
            and growth > max(NOISE * mean(first), FEW)
        ):
            found[name] = growth / max(mean(first), 1)
    return sorted(found, key=found.__getitem__, reverse=True)
