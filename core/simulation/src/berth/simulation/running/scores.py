"""The nodes' scores for a pod at the time of its decision."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec
import numpy as np

from berth.cycle.schedule_one import ScheduleOne
from berth.evaluation.caching.cached_evaluation import CachedEvaluation
from berth.evaluation.caching.node_plugins import NodePlugins
from berth.evaluation.find_nodes import Feasible, NodeSearch, Rotation
from berth.evaluation.select_host import score_nodes
from berth.framework.attempts.attempt import Attempt
from berth.framework.attempts.cycle_record import CycleRecord
from berth.framework.attempts.cycle_state import CycleState
from berth.framework.node_scores import NodeScores
from berth.framework.queueing.queued_pod import QueuedPodInfo
from berth.framework.runtime import Framework
from berth.framework.status import Status
from berth.objects.pods.pod import Pod
from berth.scheduler.scheduler import Scheduler


class NodeScore(msgspec.Struct, rename="camel", frozen=True):
    """A node's weighted sum and the plugins' parts of it; or why the pod did not fit there."""

    total: int | None = None
    parts: dict[str, int] = {}
    message: str = ""


@dataclass(slots=True)
class ScoreNotes:
    """Wraps the scheduling cycle: records scores of the wanted nodes before each pod's decision.

    `wanted` are the nodes of each pod, by its key; the first attempt that could choose counts.
    """

    core: Scheduler
    wanted: Mapping[str, Collection[str]]
    found: dict[str, dict[str, NodeScore]] = field(default_factory=dict)
    _real: ScheduleOne = field(init=False)

    def __post_init__(self) -> None:
        self._real = self.core.schedule_one

    async def schedule(self, info: QueuedPodInfo) -> None:
        """Record, then run the scheduling cycle."""
        pod = info.pod
        if pod.key in self.wanted and pod.spec.scheduler_name in self.core.profiles.frameworks:
            self.found[pod.key] = await node_scores(self.core, pod, self.wanted[pod.key])
        await self._real.schedule(info)


class ScoredPod(NamedTuple):
    """A profile's evaluation of a pod: feasible nodes and their scores, or why there is none."""

    feasible: Feasible | Status
    scores: NodeScores | None = None


async def ask(core: Scheduler, framework: Framework, pod: Pod, search: NodeSearch) -> ScoredPod:
    """Evaluate the pod on the core's current cluster."""
    core.cache.update_snapshot(core.snapshot)
    attempt = Attempt(pod, core.snapshot, CycleState(), CycleRecord(pod, "", 1, b"", b"", 0, 0, 0))
    details = CachedEvaluation(NodePlugins(framework.plugins), detailed=True)
    feasible = await search.find(framework, attempt, details)
    if isinstance(feasible, Status):
        return ScoredPod(feasible)
    return ScoredPod(feasible, await score_nodes(attempt, details, feasible))


async def node_scores(core: Scheduler, pod: Pod, names: Collection[str]) -> dict[str, NodeScore]:
    """The current scores of these nodes for the pod."""
    framework = core.profiles.frameworks[pod.spec.scheduler_name]
    asked = await ask(core, framework, pod, NodeSearch(core.queue.nominator, Rotation()))
    return scores_of(core, asked, names)


def scores_of(core: Scheduler, asked: ScoredPod, names: Collection[str]) -> dict[str, NodeScore]:
    """The scores of these nodes; to be called before the core changes."""
    feasible, scores = asked
    if isinstance(feasible, Status) or scores is None:
        message = feasible.message if isinstance(feasible, Status) else ""
        return dict.fromkeys(names, NodeScore(message=message))
    places = {core.snapshot.names[row]: place for place, row in enumerate(scores.rows.tolist())}
    found = {}
    for name in names:
        place = places.get(name)
        if place is None:
            found[name] = NodeScore(message=_why_not(core, feasible, name))
        else:
            parts = {part.plugin: int(part.final[place]) * part.weight for part in scores.parts}
            found[name] = NodeScore(int(scores.totals[place]), parts)
    return found


def _why_not(core: Scheduler, feasible: Feasible, name: str) -> str:
    row = core.snapshot.row_of.get(name)
    if row is None:
        return "no such node"
    return feasible.diagnosis_builder.diagnosis().node_status(int(np.intp(row))).message
