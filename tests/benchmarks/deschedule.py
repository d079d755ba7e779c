"""Plans on clusters by chance, each held against the whole scheduler in virtual time.

`--random N` says how many clusters. For each of them: every pod that is evicted is bound where the plan says,
or on a node that the plan names as good; hard rules that were broken would keep the pod off its old node, and
every pod that they would keep off its node is evicted or left alone with a reason; budgets are not broken;
the same plan made again, on what the first one leaves, moves nothing.
"""

import json
import sys
import tempfile
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click
import msgspec

from berth.config.descheduling.policy_file import read_policy
from berth.config.loading import load
from berth.descheduling.cluster import ClusterObjects, read_files
from berth.descheduling.planner import plan
from berth.objects.node import Node
from berth.objects.pods.pod import NO_STATUS, Pod, PodStatus
from berth.objects.workloads import PodDisruptionBudget
from berth.simulation.cluster.disruption_budgets import Budgets
from berth.simulation.placing.one_by_one import without_post_filter
from berth.simulation.reading.timeline import ARRIVAL
from berth.simulation.running.engine import simulate
from berth.simulation.running.options import SimulationOptions
from tests.benchmarks.tables import Table
from tests.chance.cluster import draw
from tests.chance.draw import Chance
from tests.unit.simulation.kit import written

NOW = datetime(2026, 11, 23, 8, 0, tzinfo=UTC)
RULES = {
    "RemovePodsViolatingNodeAffinity",
    "RemovePodsViolatingNodeTaints",
    "RemovePodsViolatingInterPodAntiAffinity",
}
"""Strategies after which the engine, too, would not place the pod where it was."""
SPREAD = "RemovePodsViolatingTopologySpreadConstraint"
WORDS = {
    "RemovePodsViolatingInterPodAntiAffinity": "anti-affinity",
    SPREAD: "topology spread constraints",
}
"""In the engine's reason where a pod may not be on its node."""
REQUIRED = ["requiredDuringSchedulingIgnoredDuringExecution"]
BOTH = [*REQUIRED, "preferredDuringSchedulingIgnoredDuringExecution"]
LIMITED = "maxNoOfPodsToEvict"
"""In the reason of a pod that is left to the next plan."""
HIGH = "HighNodeUtilization"
CROWD = {"Pod", "PodDisruptionBudget"}
SUBJECTS = ("placing", "profiles", "volumes", "preemption", "everything")


def run(options):
    """A row a strategy: how many pods were moved, and how many were left alone."""
    moved, left, wrong = Counter(), Counter(), {}
    count = options.random or 100
    with tempfile.TemporaryDirectory(prefix="berth-") as folder:
        for seed in range(count):
            found, problems = checked(seed, Path(folder))
            moved.update(each.strategy for each in found.moves)
            left.update(each.strategy for each in found.left_alone)
            if problems:
                wrong[seed] = problems
    table = Table(f"descheduling, {count} clusters by chance", ["strategy", "moved", "left alone"])
    for name in sorted(moved | left):
        table.add(name, f"{moved[name]:,}", f"{left[name]:,}")
    table.show()
    for seed, problems in wrong.items():
        click.echo(f"{seed}: {'; '.join(problems)}")
    click.echo(f"{count} clusters, {sum(moved.values())} evictions, {len(wrong)} clusters with problems")
    if wrong:
        sys.exit(1)


def checked(seed, folder):
    """The plan for the cluster of that seed, and what is wrong with it."""
    cluster, policy, options = drawn(seed, folder)
    found = plan(cluster, policy, options, NOW)
    problems = [*_budgets(cluster, found)]
    running = _settled(cluster.objects, options)
    for move in found.moves:
        problems += _carried_out(running, move, options, _rules_of(policy))
    left = ClusterObjects(
        running, {}, {key: pod for key, pod in cluster.ended.items() if key not in moved(found)}
    )
    again = plan(left, policy, options, NOW)
    if not any(LIMITED in each.why for each in found.left_alone):
        problems += [f"moved again: {each.pod} by {each.strategy}: {each.found}" for each in again.moves]
        problems += _unseen(left, again, policy, options)
    return found, problems


def moved(found):
    return {move.pod for move in found.moves}


def _unseen(cluster, found, policy, options):
    """Pods that a rule would keep off their nodes, and that the plan says nothing of."""
    words = {
        WORDS[name]: name for profile in policy.profiles for name, _ in profile.strategies if name in WORDS
    }
    seen = {(each.pod, each.strategy) for each in found.left_alone}
    for pod in cluster.objects.of(Pod).values():
        if not pod.node_name or pod.status.phase == "Failed":
            continue
        why = _asked(cluster.objects, pod, options) if words else ""
        for word, name in words.items():
            if word in why and (pod.key, name) not in seen:
                yield f"{name} does not see {pod.key} on {pod.node_name}: {why}"


def _asked(objects, pod, options):
    """Why the scheduler would not bind the pod to its node again; empty where it would."""
    there = objects.copy()
    del there.of(Pod)[pod.key]
    again = _alone(there, pod)
    outcome = simulate(again, without_post_filter(options))
    return next((each.message for each in outcome.pending if each.pod == pod.key), "")


def _settled(objects, options):
    """The cluster once its scheduler has placed what waits and fits."""
    running = objects.copy()
    for key, node in simulate(objects, without_post_filter(options)).placed_on.items():
        running.of(Pod)[key] = running.of(Pod)[key].placed_on(node)
    return running


def _budgets(cluster, found):
    pods = cluster.objects.of(Pod)
    for budget in cluster.objects.of(PodDisruptionBudget).values():
        evicted = [pods[move.pod] for move in found.moves if move.pod in pods]
        taken = [pod for pod in evicted if Budgets([budget]).of(pod)]
        if len(taken) > budget.status.disruptions_allowed:
            yield f"{budget.key} allows {budget.status.disruptions_allowed}, {len(taken)} are evicted"


def _rules_of(policy):
    """The strategies whose moves the engine's hard rules alone explain."""
    pairs = [pair for profile in policy.profiles for pair in profile.strategies]
    return RULES | {name for name, args in pairs if name == SPREAD and args.constraints == ("DoNotSchedule",)}


def _is_soft(move):
    return "preferred" in move.gain or "PreferNoSchedule" in move.found


def _carried_out(running, move, options, rules):
    """Make one move in `running`; what the whole scheduler does otherwise than the plan says."""
    pods = running.of(Pod)
    if not move.to:
        return
    pod = pods.pop(move.pod)
    for key, node in move.makes_room_for.items():
        pods[key] = pods[key].placed_on(node)
    if move.strategy in rules and not _is_soft(move) and _would_stand(running, pod, options):
        yield f"{move.pod} could be on {move.from_}, and was evicted by {move.strategy}"
    bound = _bound(running, pod, options)
    if bound not in (move.to, *move.or_to):
        yield f"{move.pod} is bound to {bound}, not {move.to} ({move.strategy}, from {move.from_})"
    covering = [each for each in running.of(PodDisruptionBudget).values() if Budgets([each]).covering(pod)]
    for budget in covering:
        status = msgspec.structs.replace(
            budget.status, disruptions_allowed=budget.status.disruptions_allowed - 1
        )
        running.of(PodDisruptionBudget)[budget.key] = msgspec.structs.replace(budget, status=status)
    started = PodStatus(phase="Running", start_time=NOW)
    metadata = msgspec.structs.replace(pod.metadata, uid=f"{pod.uid}-anew", creation_timestamp=NOW)
    pods[pod.key] = Pod(metadata=metadata, template=pod.template, node_name=move.to, status=started)


def _bound(running, pod, options):
    """Where the scheduler binds the pod that is made anew, after those that wait."""
    return simulate(_with_anew(running, pod), without_post_filter(options)).placed_on.get(pod.key)


def _with_anew(running, pod):
    """The cluster with the pod made anew, which arrives after those that wait."""
    annotations = {**pod.metadata.annotations, ARRIVAL: "100"}
    metadata = msgspec.structs.replace(pod.metadata, uid=f"{pod.uid}-anew", annotations=annotations)
    there = running.copy()
    there.of(Pod)[pod.key] = Pod(metadata=metadata, template=pod.template, status=NO_STATUS)
    return there


def _would_stand(running, pod, options):
    """Whether the scheduler would bind the pod to its node if all others were cordoned."""
    outcome = simulate(_alone(running, pod), without_post_filter(options))
    return outcome.placed_on.get(pod.key) == pod.node_name


def _alone(running, pod):
    """The cluster with the pod made anew, and all nodes cordoned but the one that it was on."""
    there = _with_anew(running, pod)
    for name, node in there.of(Node).items():
        if name != pod.node_name:
            spec = msgspec.structs.replace(node.spec, unschedulable=True)
            there.of(Node)[name] = msgspec.structs.replace(node, spec=spec)
    return there


def drawn(seed, folder):
    """A cluster whose pods stand anywhere, a policy of some strategies, and the scheduler's options."""
    chance = Chance(f"deschedule-{seed}")
    found = draw(
        chance.choice(SUBJECTS), seed, nodes_count=chance.randint(3, 12), pods_count=chance.randint(3, 14)
    )
    names = [each["metadata"]["name"] for each in found.objects if each["kind"] == "Node"]
    waiting = chance.choice((0, 0, 0.1))
    pods = [each for document in found.pods for each in _replicas(document, names, waiting, chance)]
    policy = _policy(chance)
    if HIGH in policy["profiles"][0]["plugins"]["balance"]["enabled"]:
        # A crowd that never leaves would leave no node to be emptied.
        found.objects[:] = [each for each in found.objects if each["kind"] not in CROWD]
        _pack(found.configuration)
    for each in found.objects:
        if each["kind"] == "Pod":
            _own(each, each["metadata"]["name"])
    file = written(folder / f"d{seed}.json", *found.objects, *pods)
    read = read_policy(json.dumps(policy).encode(), "policy")
    return read_files([file], read), read, SimulationOptions(load(json.dumps(found.configuration)), seed=seed)


def _pack(configuration):
    """Let all profiles score by MostAllocated."""
    for profile in configuration.setdefault("profiles", [{}]):
        others = [each for each in profile.get("pluginConfig", ()) if each["name"] != "NodeResourcesFit"]
        args = {"scoringStrategy": {"type": "MostAllocated"}}
        profile["pluginConfig"] = [*others, {"name": "NodeResourcesFit", "args": args}]


def _replicas(document, names, waiting, chance):
    """One to eight pods of one owner and template, each on a node by chance; some spread over nodes."""
    owner = document["metadata"]["name"]
    if chance.maybe(0.3):
        document["metadata"].setdefault("labels", {})["owner"] = owner
        document["spec"]["topologySpreadConstraints"] = [_over_nodes(owner, chance)]
    for number in range(chance.choice((1, 1, 2, 3, 4, 8))):
        made = json.loads(json.dumps(document))
        metadata = made["metadata"]
        metadata["name"] = f"{owner}-{number}"
        if chance.maybe(0.95):
            _own(made, owner)
        metadata["creationTimestamp"] = _time(chance.randint(0, 200_000))
        if not chance.maybe(waiting):
            made["spec"]["nodeName"] = chance.choice(names)
            statuses = [{"name": "c", "restartCount": chance.choice((0, 0, 0, 3, 12)), "state": {}}]
            phase = chance.one_in({"Running": 20, "Failed": 1, "Pending": 1})
            started = {"startTime": metadata["creationTimestamp"]}
            made["status"] = {"phase": phase, "containerStatuses": statuses, **started}
        yield made


def _over_nodes(owner, chance):
    return {
        "maxSkew": chance.choice((1, 1, 2)),
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"owner": owner}},
    }


def _own(document, owner):
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": owner, "uid": owner}
    document["metadata"]["ownerReferences"] = [{**reference, "controller": True}]


def _time(seconds):
    return (NOW - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def _policy(chance):
    resources = chance.some(("cpu", "memory", "pods"), 1, 2)
    low = {name: chance.choice((20, 40)) for name in resources}
    high = {name: low[name] + chance.choice((10, 30)) for name in resources}
    deviation = chance.maybe(0.3)
    arguments = {
        "RemovePodsViolatingNodeAffinity": {"nodeAffinityType": chance.choice((REQUIRED, BOTH))},
        "RemovePodsViolatingNodeTaints": {"includePreferNoSchedule": chance.maybe(0.5)},
        "RemovePodsViolatingInterPodAntiAffinity": {},
        "RemovePodsHavingTooManyRestarts": {"podRestartThreshold": chance.choice((1, 10))},
        "PodLifeTime": {"maxPodLifeTimeSeconds": chance.choice((86_400, 150_000))},
        "RemoveFailedPods": {},
        "RemoveDuplicates": {},
        "RemovePodsViolatingTopologySpreadConstraint": {
            "constraints": chance.choice((["DoNotSchedule"], ["DoNotSchedule", "ScheduleAnyway"]))
        },
        "LowNodeUtilization": {
            "thresholds": low,
            "targetThresholds": high,
            "useDeviationThresholds": deviation,
        },
        "HighNodeUtilization": {"thresholds": low},
    }
    chosen = chance.some(arguments, 1, 4)
    if "LowNodeUtilization" in chosen and HIGH in chosen:
        chosen.remove(HIGH)
    names = list(arguments)
    evictor = {"name": "DefaultEvictor", "args": {"evictLocalStoragePods": True}}
    if HIGH in chosen:
        low.update(dict.fromkeys(low, chance.choice((40, 60, 80))))
    configs = [{"name": name, "args": arguments[name]} for name in chosen]
    plugins = {
        "deschedule": {"enabled": [name for name in chosen if names.index(name) < 6]},
        "balance": {"enabled": [name for name in chosen if names.index(name) >= 6]},
    }
    profile = {"name": "by-chance", "pluginConfig": [evictor, *configs], "plugins": plugins}
    limit = None if HIGH in chosen else chance.choice((None, None, 3))
    limits = {} if limit is None else {"maxNoOfPodsToEvictPerNode": limit}
    return {
        "apiVersion": "descheduler/v1alpha2",
        "kind": "DeschedulerPolicy",
        "profiles": [profile],
        **limits,
    }
