"""Plays a drawn cluster to the scheduler's core, and says where it differs from the model."""

import asyncio

from berth.objects.pod_groups import CompositePodGroup, PodGroup
from berth.simulation.cluster.virtual_time import VirtualTimeLoop
from berth.testing.builders import make_node
from tests.chance.groups.documents import budget_of, group_of, pod_of, started
from tests.chance.groups.drawing import Drawing
from tests.chance.groups.model import attempted
from tests.scenarios.kit.cluster import Cluster

PLUGINS = (
    *("GangScheduling", "NodeResourcesFit", "TopologyPlacementGenerator", "PodGroupPodsCount"),
    ("NodeAffinity", 100),
    "DefaultPreemption",
)
# What failed waits for its backoff, so that each attempt is seen by itself.
GATES = {
    "GenericWorkload": True,
    "TopologyAwareWorkloadScheduling": True,
    "CompositePodGroup": True,
    "SchedulerPopFromBackoffQ": False,
}
CONDITIONS = {
    PodGroup: "PodGroupInitiallyScheduled",
    CompositePodGroup: "CompositePodGroupInitiallyScheduled",
}
MAX_BRANCHES = 400
SETTLED_SECONDS = 60


def differences(seed):
    """Each thing that the scheduler did otherwise; none where all is as the model has it."""
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        return runner.run(compared(seed))


async def compared(seed):
    """The same, in a running loop of virtual time."""
    drawn = Drawing(seed).drawn()
    played = Played(drawn.cluster)
    for arrival in drawn.arrivals:
        if found := await played.arrive(arrival):
            return [f"{drawn.cluster.release} {arrival.groups[0].name}: {each}" for each in found]
    return []


class Played:
    """The model's cluster, and one that the scheduler works on."""

    def __init__(self, model):
        self.model = model
        self.real = Cluster(*PLUGINS, gates=GATES, release=model.release)
        for node in model.nodes.values():
            amounts = {"cpu": str(node.cpu), "memory": f"{node.memory}Gi", "pods": str(node.pods)}
            self.real.add(make_node(node.name, allocatable=amounts, labels=node.labels))
        for app in sorted(model.protected):
            self.real.add(budget_of(app))
        for group in model.groups.values():
            self.real.add(group_of(group))
        for pod in model.pods.values():
            self._create(pod)

    async def arrive(self, arrival):
        """What differs once the groups and their pods came: at once, and when all has settled."""
        root = arrival.groups[0]
        async with self.real.paused():
            for group in arrival.groups:
                self.model.groups[group.name] = group
                self.real.add(group_of(group))
            for pod in arrival.pods:
                self.model.pods[pod.name] = pod
                self._create(pod)
            before = set(self.model.pods)
        found = self._compared(root, before)
        if not found:
            await self.real.tick(SETTLED_SECONDS)
            found = self._compared(root, before, settled=True)
        if not found:
            self._leave(root)
            await self.real.tick(1)
        return found

    def _compared(self, root, before, *, settled=False):
        """The differences from the nearest of all outcomes that chance may have; the model follows that."""
        seen, nearest = self._seen(root, before), None
        for outcome, cluster in branches(self.model, root, settled=settled):
            found = list(_apart(outcome, seen, settled=settled))
            if nearest is None or len(found) < len(nearest[0]):
                nearest = found, cluster
            if not found:
                break
        found, self.model = nearest
        self._start_bound()
        return found

    def _seen(self, root, before):
        pods = {name: self.real.pod(name) for name in before}
        mine = {
            pod.name for leaf in self.model.leaves(root) for pod in self.model.members(leaf, placed=False)
        }
        conditions = {}
        for group in self.model.every(root):
            kind = CompositePodGroup if group.composite else PodGroup
            stored = self.real.api.get(kind, f"default/{group.name}")
            found = next((c for c in stored.status.conditions if c.type == CONDITIONS[kind]), None)
            if found is not None:
                conditions[group.name] = found.status, found.reason, found.message
        there = {name: pod for name, pod in pods.items() if pod is not None and name in mine}
        return (
            {name: pod.node_name for name, pod in there.items() if pod.node_name},
            {name for name, pod in pods.items() if pod is None},
            {name: pod.nominated_node_name for name, pod in there.items() if pod.nominated_node_name},
            conditions,
        )

    def _start_bound(self):
        """Bound pods start one after the other, as the model has them."""
        latest = max((pod.started for pod in self.model.pods.values()), default=0)
        for pod in self.model.pods.values():
            if pod.node and not pod.started:
                latest += 1
                pod.started = latest
                if self.real.pod(pod.name) is not None:
                    self.real.change_pod(pod.name, status={"start_time": started(pod)})

    def _leave(self, root):
        """Pods that found no node go, and groups without pods."""
        for leaf in self.model.leaves(root):
            for pod in self.model.members(leaf, placed=False):
                del self.model.pods[pod.name]
                self.real.delete_pod(pod.name)
        if not self.model.scheduled(root):
            for group in list(self.model.every(root)):
                self.real.remove(group_of(group))
                del self.model.groups[group.name]

    def _create(self, pod):
        self.real.add(pod_of(pod))


def branches(cluster, root, *, settled):
    """Each outcome that chance may have, and the cluster after it."""
    pending, tried = [[]], 0
    while pending and tried < MAX_BRANCHES:
        path, tried = pending.pop(), tried + 1
        taken, sizes = [], []

        def choose(many, path=path, taken=taken, sizes=sizes):
            place = path[len(taken)] if len(taken) < len(path) else 0
            taken.append(place)
            sizes.append(many)
            return place

        copied = cluster.copy()
        outcome = attempted(copied, root, choose)
        # Once victims are gone, or pods were bound, the group is tried again until nothing changes.
        while settled and outcome.victims:
            bound, outcome = outcome.bound, attempted(copied, root, choose)
            outcome.bound |= bound
        for i in range(len(path), len(taken)):
            pending += [[*taken[:i], other] for other in range(1, sizes[i])]
        yield outcome, copied


def _apart(outcome, seen, *, settled):
    bound, gone, nominated, conditions = seen
    if outcome.bound != bound:
        yield f"bound {bound}: {outcome.bound}"
    if settled:
        return
    if outcome.victims != gone:
        yield f"victims {sorted(gone)}: {sorted(outcome.victims)}"
    if outcome.nominated != nominated:
        yield f"nominated {nominated}: {outcome.nominated}"
    expected = {} if outcome.gated else outcome.conditions
    if expected.keys() != conditions.keys():
        yield f"conditions of {sorted(conditions)}: {sorted(expected)}"
    for name in expected.keys() & conditions.keys():
        *status, texts = expected[name]
        *found, message = conditions[name]
        if status != found or not all(text in message for text in texts):
            yield f"condition of {name} {conditions[name]}: {expected[name]}"
