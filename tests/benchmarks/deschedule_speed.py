"""Plans for large clusters: 8,000 pods on the wrong half of 1,000 nodes, in CPU seconds of this process.

`--nodes` and `--pods` choose another size, `--match` strategies by a part of their name.
"""

import json
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from berth.config.descheduling.policy_file import read_policy
from berth.config.loading import load
from berth.descheduling.cluster import read_files
from berth.descheduling.planner import plan
from berth.scheduler.loop.event_loop import collect_seldom
from berth.simulation.running.options import SimulationOptions
from tests.benchmarks.tables import Table
from tests.unit.descheduling.kit import node, policy, running
from tests.unit.simulation.kit import written

NOW = datetime(2026, 11, 23, 8, 0, tzinfo=UTC)
NODES, PODS, OWNERS, ZONES = 1_000, 8_000, 200, 5
ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
OLD = [{"key": "old", "value": "x", "effect": "NoSchedule"}]
BUDGETS = 50


def taints(owner):
    """Pods of any kind; their nodes are tainted."""
    del owner
    return {}


def spread(owner):
    """Pods that are to be spread over zones, all of them in the first ones."""
    constraint = {
        "maxSkew": 1,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": owner}},
    }
    return {"topologySpreadConstraints": [constraint]}


def apart(owner):
    """Pods that keep others of their owner off their node."""
    term = {"topologyKey": HOST, "labelSelector": {"matchLabels": {"app": owner}}}
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


STRATEGIES = {
    "RemovePodsViolatingNodeTaints": ({}, taints),
    "RemoveDuplicates": ({}, taints),
    "LowNodeUtilization": ({"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 30}}, taints),
    "RemovePodsViolatingTopologySpreadConstraint": ({}, spread),
    "RemovePodsViolatingInterPodAntiAffinity": ({}, apart),
}


def run(options):
    """A row a strategy: evictions, CPU seconds, and microseconds for each pod."""
    collect_seldom()
    nodes, pods = options.nodes or NODES, options.pods or PODS
    table = Table(
        f"deschedule, {nodes:,} nodes, {pods:,} pods",
        ["strategy", "evicted", "left alone", "CPU s", "µs a pod"],
    )
    with tempfile.TemporaryDirectory(prefix="berth-") as folder:
        for name in STRATEGIES:
            if options.match in name:
                found, seconds = planned(name, nodes, pods, Path(folder))
                left = f"{len(found.left_alone):,}"
                table.add(
                    name, f"{len(found.moves):,}", left, f"{seconds:.1f}", f"{1e6 * seconds / pods:.0f}"
                )
    table.show()


def planned(name, nodes, pods, folder):
    """The plan and its CPU seconds; reading files does not count."""
    args, spec = STRATEGIES[name]
    chosen = read_policy(json.dumps(policy((name, args))).encode(), "policy")
    cluster = read_files([written(folder / "cluster.json", *documents(nodes, pods, spec))], chosen)
    started = time.process_time()
    found = plan(cluster, chosen, SimulationOptions(load(None)), NOW)
    return found, time.process_time() - started


def documents(nodes, pods, spec):
    """The first half of the nodes has all pods; that half is tainted where the pods have no rules."""
    half = nodes // 2
    each = -(-pods // half)
    for i in range(nodes):
        made = node(f"n{i}", cpu=str(each // 5 + 1), labels={ZONE: f"z{i * ZONES // nodes}", HOST: f"n{i}"})
        made["status"]["capacity"] |= {"memory": "1Ti"}
        if i < half and spec is taints:
            made["spec"] = {"taints": OLD}
        yield made
    owners = min(OWNERS, max(1, pods // 8))
    for i in range(pods):
        owner = f"o{i % owners}"
        # Two pods of an owner stand on one node.
        where = i // owners // 2 * owners + i % owners
        yield running(
            f"p{i}", f"n{where % half}", owner=owner, cpu="100m", labels={"app": owner}, **spec(owner)
        )
    for i in range(BUDGETS):
        yield {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": f"b{i}"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": f"o{i}"}}},
            "status": {"disruptionsAllowed": pods, "observedGeneration": 1},
        }
