"""Filling clusters: 200,000 copies on 5,000 nodes, and counts beside scheduling one by one.

`--random N` compares on N clusters by chance instead; the figures are CPU seconds of this process.
"""

import json
import tempfile
import time
from pathlib import Path

import msgspec

from berth.config.loading import load
from berth.objects.pods.pod import Pod
from berth.scheduler.loop.event_loop import collect_seldom
from berth.simulation.placing.fill import copy_of, fill
from berth.simulation.placing.one_by_one import without_post_filter
from berth.simulation.reading.inputs import read_cluster, read_pods
from berth.simulation.running.engine import simulate
from berth.simulation.running.options import SimulationOptions
from tests.benchmarks.differing import compared
from tests.benchmarks.tables import Table
from tests.chance.affinity import affinity, spreading, tolerations
from tests.chance.cluster import draw
from tests.chance.draw import APPS, Chance
from tests.unit.simulation.kit import APP, SPREAD, ZONE, node, pod, written

COPIES = 200_000
NODES = 5_000
ZONES = 5
MOST = 120
"""Copies on clusters by chance."""
LOOSELY = {**SPREAD, "maxSkew": 5}
APART = {
    "weight": 1,
    "podAffinityTerm": {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": APP}},
}
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
WORKLOADS = {
    "plain": {},
    "spread over zones": {"topologySpreadConstraints": [LOOSELY]},
    "rather apart": {"affinity": {"podAntiAffinity": {PREFERRED: [APART]}}},
}


def run(options):
    """A row a workload, or how many clusters differ."""
    with tempfile.TemporaryDirectory(prefix="berth-") as folder:
        if options.random:
            compared(options.random, Path(folder), differences)
        else:
            timed(options.pods or COPIES, options.nodes or NODES, Path(folder)).show()


def timed(copies, nodes, folder):
    collect_seldom()
    table = Table(
        f"fill, {nodes:,} nodes (to reach: {COPIES:,} copies in 60 s)",
        ["pod", "copies", "CPU s", "µs a copy"],
    )
    each = -(-copies // nodes)
    machines = [node(f"n{i}", cpu=str(each + 1), labels={ZONE: f"z{i % ZONES}"}) for i in range(nodes)]
    for machine in machines:
        machine["status"]["capacity"] |= {"pods": "1000", "memory": "1Ti"}
    cluster = read_cluster([written(folder / "cluster.json", *machines)])
    for name, spec in WORKLOADS.items():
        pods = read_pods(written(folder / "pod.json", pod("p", labels=APP, **spec)), cluster)
        started = time.process_time()
        found = fill(cluster, pods, SimulationOptions(load(None)), most=copies)
        seconds = time.process_time() - started
        table.add(name, f"{found.count:,}", f"{seconds:.1f}", f"{1e6 * seconds / found.count:.0f}")
    return table


def differences(seed, folder):
    """What fill and scheduling the same copies one by one differ in, on the cluster of that seed."""
    cluster, template, options = drawn(seed, folder)
    found = fill(cluster, [template], options, most=MOST)
    one_by_one = cluster.copy()
    copies = [copy_of(template, number) for number in range(found.count + 3)]
    placed = {key: each for key, each in cluster.of(Pod).items() if each.node_name}
    one_by_one.objects[Pod] = placed | {each.key: each for each in copies}
    outcome = simulate(one_by_one, options)
    nodes = [outcome.placed_on.get(each.key) for each in copies]
    differing = []
    if found.stopped_by is None:
        nodes = nodes[: found.count]
    if found.count != sum(name is not None for name in nodes):
        differing.append(f"fill placed {found.count}, one by one {nodes}")
    if found.nodes != {name: nodes.count(name) for name in sorted(filter(None, set(nodes)))}:
        differing.append(f"fill on {found.nodes}, one by one {nodes}")
    first = next((each for each in outcome.pending if each.pod == copies[found.count].key), None)
    if found.stopped_by and (first is None or first.message != found.stopped_by.message):
        differing.append(f"fill stopped by {found.stopped_by}, one by one {first}")
    return differing


def drawn(seed, folder):
    """A cluster by chance, a pod of rules by chance, and the scheduler's options."""
    chance = Chance(f"fill-{seed}")
    cluster_drawn = draw("placing", seed, nodes_count=chance.randint(2, 10), pods_count=0)
    names = [each["metadata"]["name"] for each in cluster_drawn.objects if each["kind"] == "Node"]
    mix = dict.fromkeys(("node_affinity", "podAffinity", "podAntiAffinity", "spreading", "tolerations"), 0.3)
    spec = {**spreading(chance, mix), **tolerations(chance, mix)}
    if around := affinity(chance, mix, names):
        spec["affinity"] = around
    made = pod("copy", cpu=f"{chance.randint(1, 20) * 50}m", labels={"app": chance.choice(APPS)}, **spec)
    cluster = read_cluster([written(folder / f"c{seed}.json", *cluster_drawn.objects)])
    (template,) = read_pods(written(folder / f"p{seed}.json", made), cluster)
    options = without_post_filter(SimulationOptions(load(json.dumps(cluster_drawn.configuration)), seed=seed))
    names = [profile.scheduler_name for profile in options.loaded.profiles]
    template = template.with_spec(msgspec.structs.replace(template.spec, scheduler_name=names[0]))
    return cluster, template, options
