"""A group on a small cluster, placed one by one, by a plan, and in every way that there is."""

import asyncio
import functools
import json
import random
from dataclasses import dataclass

import msgspec

from berth.cache.cache import Cache
from berth.config.feature_gates import FeatureGates
from berth.config.loading import load
from berth.cycle.schedule_pod import SchedulePod
from berth.evaluation.find_nodes import NodeSearch, Rotation
from berth.framework.attempts.attempt import Attempt
from berth.framework.attempts.cycle_budget import UNMETERED
from berth.framework.attempts.cycle_record import CycleRecord
from berth.framework.attempts.cycle_state import CycleState
from berth.framework.group_plans import GroupPlan
from berth.framework.mirrors.listers import Listers
from berth.framework.queueing.queued_pod import QueuedPodInfo
from berth.framework.status import Status
from berth.objects.label_selector import LabelSelector
from berth.objects.pods.pod_spec import (
    Affinity,
    PodAffinity,
    PodAffinityTerm,
    SchedulingGroup,
    TopologySpreadConstraint,
)
from berth.plugins.registry import IN_TREE
from berth.pod_groups.group_algorithm import GroupQuestion, SchedulingContext
from berth.pod_groups.members import Member
from berth.pod_groups.plan_memory import PlanMemory
from berth.pod_groups.planned import try_as_planned
from berth.pod_groups.planning_stage import PlanningStage
from berth.pod_groups.scored_pods import ScoredPods
from berth.profiles.profile_builder import build_frameworks
from berth.queue.pools.nominator import Nominator
from berth.snapshot.pod_group_states import GroupKey, PodGroupStates
from berth.snapshot.pod_info import PodInfo
from berth.snapshot.snapshot import Snapshot
from berth.testing.builders import make_node, make_pod
from berth.testing.handles import make_handle

KEY = GroupKey("default", "g")
GPU = "example.com/gpu"
HOST, ZONE = "kubernetes.io/hostname", "zone"


@functools.cache
def profiles(**args):
    """The default profile and JointPlacement with these arguments."""
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {
                "plugins": {"multiPoint": {"enabled": [{"name": "JointPlacement"}]}},
                "pluginConfig": [{"name": "JointPlacement", "args": args}],
            }
        ],
    }
    return load(json.dumps(document), gates=FeatureGates({})).profiles


@dataclass
class Stage:
    """Nodes, and a group of pods that have none yet."""

    ground: SchedulingContext
    question: GroupQuestion
    listers: Listers

    @property
    def pods(self):
        return [member.pod for member in self.question.members]

    async def one_by_one(self):
        """The worth of placing one pod after the other."""
        return (await self._stage.one_by_one()).worth

    @property
    def _stage(self):
        return PlanningStage.of(self.ground, msgspec.structs.replace(self.question, simulated=True))

    async def jointly(self):
        """The plan that the group's cycle carries out, as node names by pod name."""
        result = await try_as_planned(self.ground, self.question)
        return {pod.name: node for pod, node in result.assignments}

    async def worth(self, node_of):
        """What that placement is worth, its pods placed in that order as far as it is accepted."""
        uid_of = {pod.name: pod.uid for pod in self.pods}
        plan = GroupPlan({uid_of[name]: node for name, node in node_of.items()})
        members = [member for member in self.question.members if member.pod.name in node_of]
        question = msgspec.structs.replace(self.question, members=members, simulated=True)
        stage = PlanningStage.of(self.ground, question)
        try:
            return (await stage.tried(plan)).worth
        finally:
            await stage.take_back()

    async def best(self):
        """How many pods can be placed in the group's order, and with which sum of scores at most.

        Pods of one template are alike, so what was placed is known by its numbers on each node.
        """
        scoring, nodes = ScoredPods.on(self.ground), self.ground.snapshot
        known = {}

        async def best_from(i, placed):
            if i == len(self.pods):
                return 0, 0
            if (i, placed) in known:
                return known[i, placed]
            pod = self.pods[i]
            found = await self._scores(scoring, pod)
            ways = [await best_from(i + 1, placed)]
            for row, score in (
                () if found is None else zip(found.rows.tolist(), found.totals.tolist(), strict=True)
            ):
                trials = self.ground.cache.trials
                self.ground.cache.try_pod(nodes, 1, PodInfo(pod.placed_on(nodes.names[row])))
                count, total = await best_from(i + 1, _with(placed, (id(pod.template), row)))
                self.ground.cache.undo_trials(nodes, trials)
                ways.append((count + 1, total + score))
            known[i, placed] = max(ways)
            return known[i, placed]

        return await best_from(0, frozenset())

    async def _scores(self, scoring, pod):
        record = CycleRecord(pod, "", 1, b"", b"", 0, 0, 0)
        attempt = Attempt(pod, self.ground.snapshot, CycleState(), record)
        scores = await scoring.scores(self.question.framework, attempt)
        return None if isinstance(scores, Status) else scores


def _with(placed, one):
    counts = dict(placed)
    counts[one] = counts.get(one, 0) + 1
    return frozenset(counts.items())


def stage(nodes, pods, placed=(), *, plugins=None, **args):
    """A cluster with pods placed already, and the group."""
    cache = Cache()
    for node in nodes:
        cache.add_node(node)
    for pod in placed:
        cache.add_pod(pod)
    waiting = {pod.uid: pod for pod in pods}
    snapshot, nominator = (
        Snapshot(),
        Nominator(lambda namespace, name: waiting.get(f"{namespace}-{name}") or make_pod(name), waiting.get),
    )
    cache.update_snapshot(snapshot)
    handle = make_handle(snapshot, nominator=nominator)
    (framework,) = build_frameworks(profiles(**args), plugins or IN_TREE, lambda _: handle).values()
    algorithm = SchedulePod(NodeSearch(nominator, Rotation()), random.Random(1))
    states = PodGroupStates()
    for pod in pods:
        states.add(pod)
    members = [
        Member(QueuedPodInfo(pod, 0.0), CycleRecord(pod, "default-scheduler", 1, b"", b"", 0, 0, 0))
        for pod in pods
    ]
    plans = PlanMemory(lambda: (cache.version, nominator.changes.end, handle.listers.generation))
    ground = SchedulingContext(cache, snapshot, nominator, algorithm, plans)
    return Stage(ground, GroupQuestion.of(framework, KEY, members, states, UNMETERED), handle.listers)


def node(name, cpu=8, gpus=0, zone="a"):
    """A node of so many CPUs and GPUs."""
    allocatable = {"cpu": str(cpu), "memory": "64Gi", "pods": "20"}
    if gpus:
        allocatable[GPU] = str(gpus)
    return make_node(name, labels={ZONE: zone, HOST: name}, allocatable=allocatable)


def member(name, cpu=1, gpus=0, **spec):
    """A pod of the group, which has the label app as its group has it."""
    requests = {"cpu": str(cpu), "memory": "1Gi"}
    if gpus:
        requests[GPU] = str(gpus)
    return make_pod(
        name,
        labels={"app": "g", **spec.pop("labels", {})},
        requests=requests,
        scheduling_group=SchedulingGroup("g"),
        **spec,
    )


def term(key, labels):
    return PodAffinityTerm(label_selector=LabelSelector(match_labels=labels), topology_key=key)


def near(key, **labels):
    """Required affinity to pods of these labels."""
    terms = (term(key, labels),)
    return Affinity(pod_affinity=PodAffinity(required_during_scheduling_ignored_during_execution=terms))


def apart(key, **labels):
    """Required anti-affinity."""
    terms = (term(key, labels),)
    return Affinity(pod_anti_affinity=PodAffinity(required_during_scheduling_ignored_during_execution=terms))


def even(key, max_skew=1):
    """The members spread over the key."""
    selector = LabelSelector(match_labels={"app": "g"})
    return (TopologySpreadConstraint(max_skew, key, "DoNotSchedule", selector),)


def drawn(seed, max_pods=12, max_nodes=4):
    """Nodes, a group of up to three kinds of pods, and pods placed already, by chance."""
    chance = random.Random(seed)
    nodes = [
        node(f"n{i}", chance.choice([4, 6, 8, 16]), chance.choice([0, 4, 8]), chance.choice("ab"))
        for i in range(chance.randint(2, max_nodes))
    ]
    many, kinds = chance.randint(min(4, max_pods), max_pods), chance.randint(1, 3)
    pods = []
    for kind in range(kinds):
        more, cpu, gpus = _rule_drawn(chance, kind), chance.randint(1, 4), chance.choice([0, 0, 1, 2, 3])
        labels = {"kind": str(kind)}
        pods += [
            member(f"p{kind}-{i}", cpu, gpus, labels=labels, **more)
            for i in range(many // kinds + (kind < many % kinds))
        ]
    placed = [
        make_pod(f"old-{i}", requests={"cpu": "1"}, node_name=chance.choice(nodes).name)
        for i in range(chance.randint(0, 4))
    ]
    return nodes, pods, placed


def _rule_drawn(chance, kind):
    match chance.randrange(8):
        case 0:
            return {"affinity": near(ZONE, app="g")}
        case 1:
            return {"affinity": apart(HOST, kind=str(kind))}
        case 2:
            return {"topology_spread_constraints": even(ZONE)}
        case 3:
            return {"topology_spread_constraints": even(HOST, 2)}
        case _:
            return {}


async def quality(seed, **limits):
    """(placed, total) one by one, jointly, and at best, of one instance."""
    instance = drawn(seed, **limits)
    greedy = await stage(*instance).one_by_one()
    one = stage(*instance)
    joint = await one.worth(await one.jointly())
    best = await stage(*instance).best()
    return (sum(greedy[1]), greedy[2]), (sum(joint[1]), joint[2]), best


def run(awaitable):
    return asyncio.run(awaitable)
