"""A profile of the default plugins on a small cluster, and preemption in it asked the way a cycle asks."""

import functools
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec
import numpy as np

from berth.config.loading import load
from berth.evaluation.caching.cached_evaluation import CachedEvaluation
from berth.evaluation.caching.node_plugins import NodePlugins
from berth.evaluation.find_nodes import NodeSearch, Rotation
from berth.framework.attempts.attempt import Attempt
from berth.framework.attempts.cycle_record import CycleRecord
from berth.framework.attempts.cycle_state import CycleState
from berth.framework.attempts.diagnosis import Diagnosis, FitError
from berth.framework.handle import Handle
from berth.framework.preempting import PreemptionRequest
from berth.framework.runtime import Framework
from berth.framework.status import Status
from berth.objects.api_object import ObjectMeta
from berth.objects.label_selector import LabelSelector
from berth.objects.pods.pod import Pod, PodCondition
from berth.objects.workloads import DisruptionBudgetStatus, PodDisruptionBudget, WorkloadSpec
from berth.plugins.registry import IN_TREE
from berth.preemption.evaluator import Evaluator
from berth.profiles.profile_builder import build_frameworks
from berth.snapshot.snapshot import Snapshot
from berth.testing.builders import make_node, make_pod
from berth.testing.clusters import table
from berth.testing.handles import FixedNominator, make_handle

PROFILE = "default-scheduler"
NOW = 1_000_000.0


@functools.cache
def profiles():
    """The default profile, of the plugins that there are."""
    (profile,) = load(None).profiles
    points = {
        point: [(plugin, weight) for plugin, weight in plugins if plugin in IN_TREE]
        for point, plugins in profile.points.items()
    }
    return [msgspec.structs.replace(profile, points=points)]


def node(name="n0", cpu="4", **more):
    """A node with that much CPU."""
    return make_node(name, allocatable={"cpu": cpu, "memory": "64Gi", "pods": "110"}, **more)


def placed(name, cpu="1", priority=0, on="n0", *, started=None, terminating=False, conditions=(), **more):
    """A pod on a node; `started` in seconds since the epoch."""
    pod = make_pod(name, requests={"cpu": cpu}, priority=priority, node_name=on, **more)
    start = None if started is None else datetime.fromtimestamp(started, UTC)
    status = msgspec.structs.replace(pod.status, start_time=start, conditions=tuple(conditions))
    pod = msgspec.structs.replace(pod, status=status)
    return leaving(pod) if terminating else pod


def leaving(pod):
    """The same pod once its deletion has begun."""
    metadata = msgspec.structs.replace(pod.metadata, deletion_timestamp=datetime.fromtimestamp(NOW, UTC))
    return msgspec.structs.replace(pod, metadata=metadata)


def preemptor(cpu="4", priority=10, name="high", **more):
    """A pod that waits for a node."""
    return make_pod(name, requests={"cpu": cpu}, priority=priority, scheduler_name=PROFILE, **more)


PREEMPTED = PodCondition(type="DisruptionTarget", status="True", reason="PreemptionByScheduler")


def budget(name="b0", selector=None, allowed=0, disrupted=(), namespace="default"):
    """A disruption budget; the selector is a map of labels, None for none at all."""
    return PodDisruptionBudget(
        metadata=ObjectMeta(name=name, namespace=namespace),
        spec=WorkloadSpec(selector=None if selector is None else LabelSelector(dict(selector))),
        status=DisruptionBudgetStatus(
            disruptions_allowed=allowed, disrupted_pods=dict.fromkeys(disrupted, "")
        ),
    )


@dataclass
class Stage:
    """A cluster and its default profile."""

    snapshot: Snapshot
    handle: Handle
    framework: Framework

    @property
    def preemption(self) -> Evaluator:
        return self.handle.preemption

    async def search(self, pod: Pod):
        """What comes of a search for nodes, and the attempt."""
        attempt = Attempt(pod, self.snapshot, CycleState(), CycleRecord(pod, "", 1, b"", b"", 0, 0, 0))
        answers = CachedEvaluation(NodePlugins(self.framework.plugins))
        search = NodeSearch(self.handle.nominator, Rotation())
        return await search.find(self.framework, attempt, answers), attempt

    async def rejected(self, pod: Pod) -> tuple[Attempt, Diagnosis]:
        """An attempt at the pod, and why it fits nowhere."""
        status, attempt = await self.search(pod)
        assert isinstance(status, Status), "the pod fits"
        assert isinstance(status.error, FitError), status.message
        return attempt, status.error.diagnosis

    async def request(self, pod: Pod, **limits) -> PreemptionRequest:
        """What DefaultPreemption asks for the pod."""
        attempt, diagnosis = await self.rejected(pod)
        return PreemptionRequest("DefaultPreemption", pod, attempt.state, diagnosis, **limits)

    async def outcomes(self, pod: Pod):
        """What a dry run says of each node, by its name."""
        request = await self.request(pod)
        rows = np.arange(len(self.snapshot))
        found = await self.preemption.dry_run(request).run(rows)
        return dict(zip(self.snapshot.names, found, strict=True))

    async def victims(self, pod: Pod):
        """The victims' names by node, most important first, for the nodes that could become free."""
        found = (await self.preemption.candidates(await self.request(pod))).found
        return {candidate.node_name: [victim.name for victim in candidate.victims] for candidate in found}

    async def preempt(self, pod: Pod, **limits):
        """The whole way."""
        return await self.preemption.preempt(await self.request(pod, **limits))


def stage(nodes, pods=(), *, budgets=(), nominated=(), gates=None, plugins=IN_TREE, **handle) -> Stage:
    """A cluster with these pods on its nodes, and those nominated that say so in their status."""
    snapshot = table(nodes, pods)
    frameworks: dict[str, Framework] = {}
    handle = make_handle(
        snapshot, gates=gates, nominator=FixedNominator.of(nominated), frameworks=frameworks, **handle
    )
    handle.clock.seconds = NOW
    for one in budgets:
        handle.listers.pod_disruption_budgets.put(one)
    frameworks.update(build_frameworks(profiles(), plugins, lambda _: handle))
    return Stage(snapshot, handle, frameworks[PROFILE])
