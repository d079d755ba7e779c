"""Pod groups in one part of the cluster each, every placement scored: what a pod costs the scheduler.

The cluster is that of upstream's benchmark TopologyAwareScheduling: 5,000 nodes in racks of 100, gangs of 4.
First the scheduler's core in one process and in virtual time; then a gang of 256 in a topology of three
levels on 100,000 nodes; then real processes on the sandbox, beside kube-scheduler where its program is at
hand (tests/kube_scheduler.py). `--nodes` and `--pods` change the first and the last. With `--real` these
processes alone, on a real kube-apiserver (KUBEBUILDER_ASSETS).

Source: test/integration/scheduler_perf/podgroup/tas (Kubernetes v1.37).
"""

import asyncio
import time
from functools import partial

import click

from berth.objects.decode import from_document
from berth.objects.pod_groups import CompositePodGroup
from berth.pod_groups.group_cycle import PodGroupCycle
from berth.scheduler.loop.event_loop import collect_seldom, leave_alone_what_there_is
from berth.simulation.cluster.virtual_time import VirtualTimeLoop
from tests.benchmarks.end_to_end import cells, measured, ratio
from tests.benchmarks.tables import Table, quantiles
from tests.kube_scheduler import WITHOUT, kube_scheduler
from tests.scenarios.pod_groups.kit import TOPOLOGY, Groups

NODES, PODS, SIZE = 5_000, 3_000, 4
ZONE, BLOCK, RACK = 10_000, 1_000, 100
LEVELS = {"zone": ZONE, "block": BLOCK, "rack": RACK}
MANY_NODES, MANY_PODS = 100_000, 256
NEWER = {"GenericWorkload": True, "TopologyAwareWorkloadScheduling": True}
GATES = {(1, 36): TOPOLOGY, (1, 37): NEWER, (1, 38): NEWER}
AMOUNTS = {"cpu": "100m", "memory": "100Mi"}
SERVED = {(1, 36): "v1alpha2", (1, 37): "v1beta1"}
"""The versions of PodGroups that API servers of these releases have."""


def run(options):
    """Three tables, with `--real` the last one."""
    nodes, pods = options.nodes or NODES, options.pods or PODS
    if not options.real:
        core(nodes, pods).show()
        levels(options.rounds or 5).show()
    processes(nodes, pods, real=options.real).show()
    if not kube_scheduler():
        click.echo(WITHOUT)


def core(nodes, pods):
    """Gangs of four, by release."""
    table = Table(
        f"{pods:,} pods in gangs of {SIZE}, {nodes:,} nodes in {nodes // RACK} racks, the core alone "
        "(goal: 1,200 pods a second)",
        ["release", "bound", "placements scored", "CPU ms a pod", "pods a CPU second"],
    )
    for release in GATES:
        bound, placements, seconds = _in_virtual_time(gangs(release, nodes, pods))
        name = ".".join(map(str, release))
        table.add(name, f"{bound:,} of {pods:,}", placements, 1e3 * seconds / bound, bound / seconds)
    return table


def levels(rounds):
    """One gang of 256 in a zone, a block, a rack, and in a rack of a block of a zone, as a tree of groups."""
    table = Table(
        f"a gang of {MANY_PODS} on {MANY_NODES:,} nodes, CPU ms of its decision (goal: 50)",
        ["within one", "placements", "first", "p50", "highest"],
    )
    for name, placements, first, others in _in_virtual_time(large_gangs(rounds)):
        table.add(name, placements, first, *quantiles(others, 0.5), max(others))
    return table


def processes(nodes, pods, *, real=False):
    """The same gangs of four by real processes."""
    table = Table(
        f"{pods:,} pods in gangs of {SIZE}, {nodes:,} nodes, real processes on "
        + ("a real API server" if real else "the sandbox"),
        ["scheduler", "bound", "pods/s", "CPU ms a pod", "peak MiB", "API server's CPU ms a pod"],
    )
    for release in ((1, 36),) if real else SERVED:
        flag = "--feature-gates=" + ",".join(f"{gate}=true" for gate in GATES[release])
        name = ".".join(map(str, release))
        served = ("--real", "--pod-groups", f"--api-server-flag={flag}") if real else ("--release", name)
        objects = partial(documents, nodes, pods, release)
        ours = asyncio.run(measured(objects(), ("berth", "scheduler", flag), flags=served))
        table.add(f"Berth, by v{name}", *cells(ours))
        if release > (1, 36) or not (program := kube_scheduler()):
            continue
        theirs = asyncio.run(measured(objects(), (program, flag), flags=served))
        table.add("kube-scheduler", *cells(theirs))
        table.add("  times", "", ratio(ours, theirs, "rate"), ratio(ours, theirs, "cpu_ms"), *[""] * 2)
    return table


def _in_virtual_time(measurement):
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(measurement)


async def gangs(release, nodes, pods):
    """How many pods are bound, how many placements each gang had, and the CPU seconds of it all."""
    cluster = Groups(release=release, gates=GATES[release])
    await add_nodes(cluster, nodes)
    async with cluster.paused():
        for gang in range(pods // SIZE):
            add_gang(cluster, f"g{gang}", SIZE, "rack")
        started = time.process_time()
    while len(cluster.bound) < pods:
        await cluster.tick(1)
    return len(cluster.bound), nodes // RACK, time.process_time() - started


async def add_nodes(cluster, nodes):
    """Nodes in racks of blocks of zones, which the scheduler has seen."""
    for i in range(nodes):
        labels = {level: f"{level}-{i // size}" for level, size in LEVELS.items()}
        cluster.add_node(f"node-{i}", cpu="4", memory="32Gi", labels=labels)
    cluster.add_pod("first", cpu="1m")
    await cluster.run()
    cluster.delete_pod("first")
    await cluster.tick(60)
    collect_seldom()
    leave_alone_what_there_is()


def add_gang(cluster, name, size, level, **spec):
    """A gang that goes to one domain of that level."""
    cluster.add_group(name, size, topology=level, **spec)
    cluster.add_members(*[f"{name}-{i}" for i in range(size)], group=name, **AMOUNTS)


async def large_gangs(rounds):
    """For each level: its name, how many placements there are, and CPU ms of the first and of other gangs."""
    release = (1, 38)
    cluster = Groups(release=release, gates={**GATES[release], "CompositePodGroup": True})
    await add_nodes(cluster, MANY_NODES)
    found = []
    for level, size in LEVELS.items():
        taken = [await decided(cluster, f"{level}{i}", level) for i in range(1 + rounds)]
        found.append((level, MANY_NODES // size, taken[0], taken[1:]))
    taken = [await decided(cluster, f"tree{i}", "rack", tree=True) for i in range(1 + rounds)]
    found.append(("rack of a block of a zone", MANY_NODES // RACK, taken[0], taken[1:]))
    return found


async def decided(cluster, name, level, *, tree=False):
    """CPU ms of the decision on one more gang."""
    taken, decide = [], PodGroupCycle.decide

    async def timed(cycle, question):
        started = time.process_time()
        result = await decide(cycle, question)
        taken.append(1e3 * (time.process_time() - started))
        assert result.status.ok, result.status
        return result

    PodGroupCycle.decide = timed
    try:
        async with cluster.paused():
            parent = {}
            if tree:
                cluster.add(composite(f"{name}-zone", "zone"))
                cluster.add(composite(f"{name}-block", "block", f"{name}-zone"))
                parent = {"parentCompositePodGroupName": f"{name}-block"}
            add_gang(cluster, name, MANY_PODS, level, **parent)
        await cluster.tick(1)
    finally:
        PodGroupCycle.decide = decide
    return taken[0]


def composite(name, level, parent=""):
    """A group of groups that goes to one domain of that level."""
    spec = {
        "schedulingPolicy": {"gang": {"minGroupCount": 1}},
        "schedulingConstraints": {"topology": [{"key": level}]},
        "parentCompositePodGroupName": parent,
    }
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    return from_document({"metadata": metadata, "spec": spec}, CompositePodGroup)


def documents(nodes, pods, release=(1, 36)):
    """Nodes and pod groups, and the groups' pods, as they are written to an API server of that release."""
    around = [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": f"node-{i}", "labels": {"rack": f"rack-{i // RACK}"}},
            "status": {"allocatable": {"cpu": "4", "memory": "32Gi", "pods": "110"}},
        }
        for i in range(nodes)
    ]
    around += [
        {
            "apiVersion": f"scheduling.k8s.io/{SERVED[release]}",
            "kind": "PodGroup",
            "metadata": {"name": f"gang-{i}", "namespace": "default"},
            "spec": {
                "schedulingPolicy": {"gang": {"minCount": SIZE}},
                "schedulingConstraints": {"topology": [{"key": "rack"}]},
            },
        }
        for i in range(pods // SIZE)
    ]
    return around, [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"pod-{i}", "namespace": "default"},
            "spec": {
                "schedulingGroup": {"podGroupName": f"gang-{i // SIZE}"},
                "containers": [{"name": "main", "image": "app:1", "resources": {"requests": AMOUNTS}}],
            },
        }
        for i in range(pods)
    ]
