"""Kind `schedule`: one pod, every node, each plugin alone and all of them together."""

import random

import msgspec
import numpy as np

from berth.cycle.schedule_pod import SchedulePod
from berth.evaluation.caching.cached_evaluation import CachedEvaluation
from berth.evaluation.caching.equivalence_cache import EquivalenceCache
from berth.evaluation.caching.node_plugins import NodePlugins
from berth.evaluation.find_nodes import Feasible
from berth.evaluation.points.filtering import filter_codes
from berth.evaluation.points.pre_filtering import run_pre_filters
from berth.evaluation.select_host import score_nodes
from berth.framework.attempts.attempt import Attempt
from berth.framework.attempts.diagnosis import Diagnosis, FitError
from berth.framework.interface import FilterPlugin, PreFilterPlugin
from berth.framework.node_scores import NodeScores
from berth.framework.runtime import Framework
from berth.framework.status import PluginError, Status
from berth.objects.pods.pod import Pod
from berth.plugins.volume_binding import VolumeBinding
from tests.golden.cluster import Cluster, build, pod_of

NAMES = {
    "cpu": "milliCPU",
    "memory": "memory",
    "ephemeral-storage": "ephemeralStorage",
}


async def answer(scenario):
    """What the vectors call `expected`, and the plugins that could not be asked."""
    cluster, pod = build(scenario), pod_of(scenario["pod"])
    framework = cluster.frameworks[pod.spec.scheduler_name]
    found = {
        "preFilter": {p.name: await alone_before(p, cluster, pod) for p in framework.plugins.pre_filter},
        "filter": {p.name: await alone(p, framework, cluster, pod) for p in framework.plugins.filter},
        "nodeTotals": totals(cluster),
        "feasible": [],
    }
    overall = await run_pre_filters(framework.plugins.pre_filter, cluster.attempt(pod))
    found["preFilterOverall"] = spelled(overall.status, overall.node_names, plugin=True)
    found |= await together(framework, cluster, pod)
    if overall.status.ok:
        found |= await every_node(framework, cluster, pod)
    return found, cluster.missing


def spelled(status: Status, node_names=None, *, plugin=False):
    """A status as the vectors write it."""
    text = {"code": str(status.code)}
    if status.reasons:
        text["reasons"] = sorted(status.reasons)
    if plugin and status.plugin:
        text["plugin"] = status.plugin
    if node_names is not None:
        text["nodes"] = sorted(node_names)
    return text


async def alone_before(plugin: PreFilterPlugin, cluster: Cluster, pod: Pod):
    """One plugin's PreFilter."""
    attempt = cluster.attempt(pod)
    result = plugin.pre_filter(attempt.state, pod, attempt.nodes)
    return spelled(result.status, result.node_names)


async def alone(plugin: FilterPlugin, framework: Framework, cluster: Cluster, pod: Pod):
    """One plugin's Filter on every node, after its own PreFilter."""
    attempt = cluster.attempt(pod)
    if plugin in framework.plugins.pre_filter:
        outcome = await run_pre_filters([plugin], attempt)
        if plugin.name in attempt.state.skip_filter:
            return "Skip"
        if not outcome.status.ok:
            return "NotRun"
    codes = await filter_codes(plugin, attempt)
    return {
        attempt.nodes.names[row]: spelled(plugin.filter_status(attempt.state, int(codes[row])))
        for row in np.flatnonzero(codes)
    }


async def together(framework: Framework, cluster: Cluster, pod: Pod):
    """What becomes of the pod before preemption is tried: its outcome, and the scores that led to it."""
    attempt = cluster.attempt(pod)
    details = CachedEvaluation(NodePlugins(framework.plugins), detailed=True)
    found = await cluster.search().find(framework, attempt, details)
    if isinstance(found, Status):
        return {"schedule": _failure(found)}
    scheduled = {"outcome": "scheduled"}
    row = attempt.nodes.row_of.get(pod.nominated_node_name)
    if row is not None and found.mask[row] and found.evaluated == 1:
        scheduled["viaNominatedNode"] = True
    answers = await scored(framework, attempt, details, found)
    if "best" in answers:
        await check_equal_pod(framework, cluster, pod, answers)
    return {"schedule": scheduled, **answers}


class Choices(random.Random):
    """Chance that remembers among how many it chose."""

    def __init__(self):
        super().__init__(1)
        self.among = []

    def randrange(self, n):
        self.among.append(n)
        return super().randrange(n)


async def check_equal_pod(framework: Framework, cluster: Cluster, pod: Pod, answers):
    """Decide on the pod three times, the last time by what is remembered, each row being asked about again.

    Raises: AssertionError where the scores of the best nodes, or their number, are others than `answers` has.
    """
    chance = Choices()
    algorithm = SchedulePod(cluster.search(), chance, EquivalenceCache(cluster.snapshot))
    for _ in range(3):
        attempt = cluster.attempt(pod)
        decision = await algorithm.decide(framework, attempt)
        assert decision.node_name in answers["best"], decision
        if len(answers["total"]) > 1 and not pod.nominated_node_name:
            assert attempt.record.score == max(answers["total"].values())
            assert (chance.among or [1])[-1] == len(answers["best"])
        chance.among.clear()
        for row in range(len(cluster.snapshot)):
            cluster.snapshot.changed_footprints.note(row)


def _failure(status: Status):
    text = {"outcome": "unschedulable" if status.rejected else "error", "message": status.message}
    if isinstance(status.error, FitError):
        text["unschedulablePlugins"] = sorted(status.error.diagnosis.unschedulable_plugins)
    return text


async def every_node(framework: Framework, cluster: Cluster, pod: Pod):
    """Every node's status, and those that pass; the pod's own nomination cuts this short and is set aside."""
    plain = msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, nominated_node_name=""))
    attempt = cluster.attempt(plain)
    found = await cluster.search().find(framework, attempt, cluster.answers(plain))
    names = attempt.nodes.names
    if isinstance(found, Status):
        diagnosis = found.error.diagnosis if isinstance(found.error, FitError) else Diagnosis(names)
        return {"nodeStatus": _statuses(diagnosis), "feasible": []}
    feasible = sorted(names[row] for row in np.flatnonzero(found.mask))
    answers = {"nodeStatus": _statuses(found.diagnosis_builder.diagnosis()), "feasible": feasible}
    plugin = framework.plugins.by_name.get("VolumeBinding")
    if plugin is not None:
        answers["volumes"] = volumes(plugin, attempt, feasible)
    return answers


def volumes(plugin: VolumeBinding, attempt: Attempt, feasible: list[str]):
    """What the pod's claims would get on each node where it fits."""
    found = {name: plugin.volumes_on(attempt.state, attempt.nodes, name) for name in feasible}
    return {
        name: {
            "static": {claim.name: volume.name for claim, volume in here.static},
            "provision": sorted(claim.name for claim in here.provisions),
        }
        for name, here in found.items()
        if here is not None
    }


def _statuses(diagnosis: Diagnosis):
    return {
        diagnosis.node_names[row]: spelled(status, plugin=True)
        for row, status in diagnosis.statuses().items()
    }


async def scored(framework: Framework, attempt: Attempt, details: CachedEvaluation, found: Feasible):
    """The scores of the feasible nodes."""
    try:
        scores = await score_nodes(attempt, details, found)
    except PluginError as error:
        return {"scores": str(error)}
    names = [attempt.nodes.names[row] for row in scores.rows]
    total = dict(zip(names, scores.totals.tolist(), strict=True))
    best = max(total.values(), default=0)
    return {
        "scores": _parts(framework, scores, names),
        "total": total,
        "best": sorted(name for name, score in total.items() if score == best),
    }


def _parts(framework: Framework, scores: NodeScores, names: list[str]):
    parts = {plugin.name: {"skip": True, "weight": weight} for plugin, weight in framework.plugins.score}
    for part in scores.parts:
        triples = zip(part.raw.tolist(), part.final.tolist(), strict=True)
        nodes = {
            name: [raw, final, final * part.weight] for name, (raw, final) in zip(names, triples, strict=True)
        }
        parts[part.plugin] = {"nodes": nodes, "weight": part.weight}
    return parts


def totals(cluster: Cluster):
    """What each node has and what is requested of it."""
    nodes = cluster.snapshot
    return {
        name: {
            "allocatable": amounts(column(nodes, nodes.allocatable, i)),
            "requested": amounts(column(nodes, nodes.requested, i)),
            "nonZeroRequested": {
                "milliCPU": int(nodes.non_zero_requested[0, i]),
                "memory": int(nodes.non_zero_requested[1, i]),
            },
            "pods": int(nodes.pod_count[i]),
        }
        for i, name in enumerate(nodes.names)
    }


def column(nodes, table, row):
    """One node's amounts by resource name."""
    return dict(zip(nodes.resource_names, table[:, row].tolist(), strict=True))


def amounts(units):
    """Amounts by resource as the vectors write them; scalars of 0 count as absent in a table's columns."""
    basic = {label: units.get(name, 0) for name, label in NAMES.items()}
    scalars = {name: amount for name, amount in units.items() if name not in NAMES and amount}
    return basic | ({"scalar": scalars} if scalars else {})
