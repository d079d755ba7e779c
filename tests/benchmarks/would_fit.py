"""Which nodes would make pods fit, beside adding nodes one by one and scheduling.

`--random N` compares on N clusters by chance; without it, how long an answer takes for `--pods` pods and
three shapes on a full cluster of `--nodes` nodes. The figures are CPU seconds of this process.
"""

import json
import tempfile
import time
from pathlib import Path

from berth.client.resources import POD_GROUPS, PODS
from berth.config.feature_gates import FeatureGates
from berth.config.loading import load
from berth.objects.node import Node
from berth.objects.pods.pod import Pod
from berth.simulation.placing.fitting import would_fit
from berth.simulation.placing.one_by_one import without_post_filter
from berth.simulation.placing.shapes import AddableNode
from berth.simulation.reading.inputs import ClusterInput, read_cluster, read_objects
from berth.simulation.reading.kinds import KINDS
from berth.simulation.running.engine import after
from berth.simulation.running.options import SimulationOptions
from berth.simulation.what_if.changes import renamed
from tests.benchmarks.differing import compared
from tests.benchmarks.tables import Table
from tests.chance.cluster import draw
from tests.chance.draw import Chance
from tests.e2e import random_groups
from tests.unit.simulation.kit import node, pod, profiles, written

COUNT = 1_000
TEMPLATES = 20
NODES = 5_000
MOST = 6
"""Nodes of a shape on clusters by chance."""
ITS_GROUPS = 3
"""Of four clusters by chance, the one that is of pod groups."""
GANGS_SECONDS = 8.0
"""A gang that has no place is tried again and again; virtual time in which it is some times."""
LATE_SECONDS = 600.0
"""A pod for which hints miss an event is tried again after five minutes; virtual time in which it is."""
STRATEGY = {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 1}]}
MOST_ALLOCATED = {"name": "NodeResourcesFit", "args": {"scoringStrategy": STRATEGY}}
FULLEST = {
    "score": {
        "disabled": [{"name": "*"}],
        "enabled": [{"name": "NodeAffinity", "weight": 100}, {"name": "NodeResourcesFit", "weight": 1}],
    }
}
"""New nodes are alike: without a rule between them, what fits would be up to chance."""
PREEMPTION = "WorkloadAwarePreemption"


def run(options):
    """A row a pod, or how many clusters differ."""
    with tempfile.TemporaryDirectory(prefix="berth-") as folder:
        if options.random:
            compared(options.random, Path(folder), differences)
        else:
            timed(options.pods or COUNT, options.nodes or NODES, Path(folder)).show()


def timed(pods, nodes, folder):
    machines = [node(f"n{i}", cpu="8") for i in range(nodes)]
    fillers = [pod(f"f{i}", cpu="8", nodeName=f"n{i}") for i in range(nodes)]
    cluster = read_cluster([written(folder / "cluster.json", *machines, *fillers)])
    shapes = [
        AddableNode(f"cpu{cpu}", cluster_node(folder, node(f"cpu{cpu}", cpu=str(cpu))), pods)
        for cpu in (4, 8, 16)
    ]
    table = Table("would fit, three shapes", ["pods", "of each kind", "nodes", "CPU s"])
    for kinds in (1, TEMPLATES, pods):
        asking = [pod(f"p{i}", labels={"app": f"a{i % kinds}"}) for i in range(pods)]
        wanted = [*read_cluster([written(folder / "pods.json", *asking)]).of(Pod).values()]
        started = time.process_time()
        found = would_fit(cluster, wanted, shapes, SimulationOptions(load(None)))
        seconds = time.process_time() - started
        table.add(f"{pods:,}", f"{pods // kinds:,}", f"{nodes:,}", f"{seconds:.1f}")
        assert not found.mixture.left
    return table


def cluster_node(folder, document):
    (made,) = read_cluster([written(folder / "shape.json", document)]).of(Node).values()
    return made


def differences(seed, folder):
    """What an answer and adding nodes one by one differ in, on the cluster of that seed."""
    cluster, pods, shapes, options = drawn(seed, folder)
    found = would_fit(cluster, pods, shapes, options)
    return [
        text
        for shape, alone in zip(shapes, found.shapes, strict=True)
        for text in _of_shape((cluster, pods, options), shape, found.placed, alone)
    ]


def _of_shape(asked, shape, at_once, alone):
    """The same for one shape; `at_once` pods are said to fit without a new node."""
    needed = alone.nodes.get(shape.name, 0)
    said = f"{shape.name}: {needed} nodes for {at_once}+{alone.placed}"
    cluster, pods, options = asked
    gangs = any(each.spec.scheduling_group for each in pods)
    further = MOST if gangs else 1
    placed, pending = one_by_one(cluster, pods, shape.node, min(needed + further, shape.most), options)
    # Nodes that bring a gang nearer to its place make no pod fit before the last of them does.
    helped = placed[needed : needed + 1] if gangs else placed[1 : needed + 1]
    if at_once != placed[0] or alone.placed != sum(placed[1:]) or (needed and not all(helped)):
        yield f"{said}, one by one {placed}"
    if alone.left and any(placed[needed + 1 :]):
        yield f"{said}, one by one a further node helps: {placed}"
    if sorted(each.pod.key for each in alone.left) != pending:
        yield f"{said}, left are {sorted(each.pod.key for each in alone.left)}, one by one {pending}"


def one_by_one(cluster, pods, model, nodes, options):
    """How many pods simulations place without a new node and with each further one, and which are pending."""
    at = cluster.running()
    waiting, placed = pods, []
    for number in range(nodes + 1):
        if number:
            joining = renamed(model, f"{model.name}-{number}")
            at.objects[Node][joining.key] = joining
        placed.append(0)
        # Again, as upstream's hints miss that a pod came which a namespace selector of affinity matches; the
        # pod that waits for it is tried minutes later.
        while True:
            at.objects[Pod] |= {each.key: each for each in waiting}
            at = after(at, options, _as_it_is)
            left = [each for each in waiting if not at.of(Pod)[each.key].node_name]
            placed[-1] += len(waiting) - len(left)
            if len(left) in {0, len(waiting)}:
                break
            waiting = left
        waiting = left
    return placed, sorted(each.key for each in waiting)


async def _as_it_is(simulation):
    """The cluster once everything has happened."""
    kept = {kind.type: {each.key: each for each in simulation.state.all(kind.type)} for kind in KINDS}
    return ClusterInput(kept)


def _with_claims_of_their_own(pods):
    """Those that share no ResourceClaim with one before: it would wait until that one is bound."""
    taken, found = set(), []
    for each in pods:
        claims = {claim.resource_claim_name for claim in each.spec.resource_claims}
        if not claims & taken:
            found.append(each)
        taken |= claims
    return found


def drawn(seed, folder):
    """A cluster by chance, pods that want to run there, shapes of nodes, and the scheduler's options."""
    return drawn_groups(seed, folder) if seed % 4 == ITS_GROUPS else drawn_alone(seed, folder)


def drawn_groups(seed, folder):
    """The same of pod groups, which no pods have to leave for."""
    found = random_groups.Drawn(f"would-fit-{seed}")
    groups = [group for step in found.steps for group in step.of(POD_GROUPS)]
    asking = [each for step in found.steps for each in step.of(PODS)]
    cluster = read_cluster([written(folder / f"c{seed}.json", *found.objects, *groups)])
    pods = read_objects([json.dumps(each).encode() for each in asking], "pods", cluster).of(Pod).values()
    models = random_groups.Drawn(f"would-fit-{seed}-shapes").objects
    nodes = read_cluster([written(folder / f"s{seed}.json", *models)]).of(Node).values()
    shapes = [AddableNode(f"shape-{i}", renamed(each, f"shape-{i}"), MOST) for i, each in enumerate(nodes)]
    gates = [*random_groups.GATES[:2], *(gate for gate in found.gates if gate != PREEMPTION)]
    profile = {"schedulerName": "default-scheduler", "plugins": FULLEST, "pluginConfig": [MOST_ALLOCATED]}
    text = json.dumps(profiles(profile))
    loaded = load(text, gates=FeatureGates(dict.fromkeys(gates, True)))
    options = SimulationOptions(loaded, seed=seed, max_seconds=GANGS_SECONDS)
    return cluster, list(pods), shapes[:3], without_post_filter(options)


def drawn_alone(seed, folder):
    """The same of pods that are decided on one by one."""
    chance = Chance(f"would-fit-{seed}")
    subject = chance.choice(("placing", "placing", "everything"))
    cluster_drawn = draw(subject, seed, nodes_count=chance.randint(1, 6), pods_count=chance.randint(5, 30))
    cluster = read_cluster([written(folder / f"c{seed}.json", *cluster_drawn.objects)])
    everything = read_cluster(
        [written(folder / f"p{seed}.json", *cluster_drawn.objects, *cluster_drawn.pods)]
    )
    pods = _with_claims_of_their_own(
        each for key, each in everything.of(Pod).items() if key not in cluster.of(Pod)
    )
    others = [
        each
        for each in draw(subject, f"{seed}-shapes", nodes_count=3, pods_count=0).objects
        if each["kind"] == "Node"
    ]
    models = read_cluster([written(folder / f"s{seed}.json", *others)]).of(Node).values()
    shapes = [AddableNode(f"shape-{i}", renamed(each, f"shape-{i}"), MOST) for i, each in enumerate(models)]
    loaded = load(json.dumps(cluster_drawn.configuration))
    options = SimulationOptions(loaded, seed=seed, max_seconds=LATE_SECONDS)
    return cluster, pods, shapes, without_post_filter(options)
