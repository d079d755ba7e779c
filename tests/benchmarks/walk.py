"""Through how much code a pod goes from pop to confirmation, and a sidecar's question from start to answer.

A walk is the Python functions of `berth` in the order in which they are called. A module counts once; a
change is a call of a function of another module than that of the call before. The client is left out: pods
and bindings come and go as objects. Stand-ins for time and events (`berth.simulation`, `berth.testing`) do
not count.
"""

import asyncio
import itertools
import sys
from contextlib import contextmanager

import uvloop

from berth.out_of_tree.points.sidecar_point import SidecarPoint
from berth.simulation.cluster.virtual_time import VirtualTimeLoop
from tests.benchmarks.sidecar import ANSWERED_SECONDS, with_sidecars
from tests.benchmarks.sidecar_commands import LOCAL_PLUGIN
from tests.benchmarks.tables import Table
from tests.benchmarks.workloads import pod_template, read_pod
from tests.scenarios.kit.cluster import Cluster

NODES, PODS, ROUNDS = 20, 5, 10
PACKAGE, STAND_INS = "berth.", ("berth.simulation.", "berth.testing.")


def run(options):
    """A table of the walks; with `--match`, the modules of those whose name has this in it."""
    table = Table(
        "a walk: modules and changes of module (goal for a known pod: 40 and 170)",
        ["what", "modules", "changes of module", "packages", "changes of package", "calls"],
    )
    walks = {
        "a pod of a known class": in_virtual_time(of_a_pod(equal=True)),
        "a pod of a new class": in_virtual_time(of_a_pod(equal=False)),
        "a sidecar's question about one row": uvloop.run(of_a_question()),
    }
    for what, walk in walks.items():
        packages = [module.split(".")[1] for module in walk]
        table.add(what, len(set(walk)), changes(walk), len(set(packages)), changes(packages), len(walk))
    table.show()
    for what, walk in walks.items():
        if options.match and options.match in what:
            by_module(what, walk).show()


def in_virtual_time(work):
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(work)


def by_module(what, walk):
    """How often each module is come to, and how many calls are made in it."""
    table = Table(what, ["module", "come to", "calls"])
    arrivals = [now for before, now in zip(("", *walk), walk, strict=False) if before != now]
    for module in sorted(set(walk), key=lambda each: (-arrivals.count(each), each)):
        table.add(module, arrivals.count(module), walk.count(module))
    return table


def changes(walk):
    """How often the next is another one."""
    return sum(before != now for before, now in itertools.pairwise(walk))


@contextmanager
def walked():
    """The modules of `berth` whose functions are called in this context, in order."""
    walk = []

    def note(frame, event, _argument):
        if event == "call":
            module = frame.f_globals.get("__name__", "")
            generated = frame.f_code.co_filename.startswith("<")
            if module.startswith(PACKAGE) and not module.startswith(STAND_INS) and not generated:
                walk.append(module)

    sys.setprofile(note)
    try:
        yield walk
    finally:
        sys.setprofile(None)


async def of_a_pod(*, equal):
    """From its pop until the watch has brought it back as bound; equal pods came before, or others."""
    cluster = Cluster()
    for number in range(NODES):
        cluster.add_node(f"n{number}")
    for number in range(PODS):
        cluster.add_pod(f"p{number}", labels={} if equal else {"app": str(number)})
        await cluster.run()
    cluster.add_pod("last", labels={} if equal else {"app": "last"})
    with walked() as walk:
        await cluster.run()
    return walk


async def of_a_question():
    """From the beginning of a decision on a known class to its end, one row being asked about."""
    async with with_sidecars(1, LOCAL_PLUGIN) as (core, host, _):
        template, decode = pod_template(), host.pods.decoding(read_pod)
        for number in range(ROUNDS):
            pod = decode(template.bytes(1, number + 1))
            await asyncio.sleep(ANSWERED_SECONDS)
            core.cache.update_snapshot(core.snapshot)
            with walked() as walk:
                decision = await core.decide(pod)
            core.cache.assume_pod(pod.placed_on(decision.node_name))
    assert any(SidecarPoint.__module__ == module for module in walk), "the sidecar was asked"
    return walk
