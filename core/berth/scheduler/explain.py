"""Why there, why not: one pod tried on every node as the cluster stands now, and what was tried before.

A pod that is on a node already is tried as if it were not there. Nothing is held, written or requeued.
"""

import asyncio
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from berth.evaluation.answers import Answers
from berth.evaluation.extending import add_priorities
from berth.evaluation.find_nodes import Feasible, NodeSearch, Rotation
from berth.evaluation.node_plugins import NodePlugins
from berth.evaluation.select_host import score_nodes
from berth.framework.attempt import Attempt
from berth.framework.cycle_budget import OverBudgetError
from berth.framework.cycle_record import CycleRecord
from berth.framework.cycle_state import CycleState
from berth.framework.diagnosis import Diagnosis, FitError
from berth.framework.node_scores import NodeScores
from berth.framework.runtime import Framework
from berth.framework.status import PluginError, Status
from berth.objects.pod import Pod
from berth.scheduler.attempt_log import AttemptLog
from berth.scheduler.scheduler import Scheduler
from berth.snapshot.snapshot import Snapshot


class UnknownPodError(LookupError):
    """The scheduler knows no pod of that name; says where it looked."""


@dataclass(frozen=True, slots=True)
class Explainer:
    """Answers between two turns of the scheduling loop (`turn` is the loop's lock)."""

    scheduler: Scheduler
    attempts: AttemptLog
    turn: asyncio.Lock

    async def explain(self, namespace: str, name: str) -> dict[str, Any]:
        """The pod's whereabouts, its last attempts, and each node's verdict or scores.

        Raises: UnknownPodError.
        """
        async with self.turn:
            pod = self._find(namespace, name)
            framework = self.scheduler.profiles.frameworks.get(pod.spec.scheduler_name)
            nodes = {} if framework is None else await self._nodes(framework, pod)
        return {
            "pod": pod.key,
            "profile": pod.spec.scheduler_name,
            "node": pod.node_name,
            "queue": self._queue(pod),
            "attempts": [attempt._asdict() for attempt in self.attempts.of(pod.uid)],
            **nodes,
        }

    def _find(self, namespace: str, name: str) -> Pod:
        scheduler = self.scheduler
        pod = scheduler.unassigned.get(name, namespace) or scheduler.cache.find_pod(namespace, name)
        if pod is None:
            raise UnknownPodError(
                f"no pod {namespace}/{name} is waiting for one of our profiles or running on a node"
            )
        return pod

    def _queue(self, pod: Pod) -> dict[str, Any]:
        record = self.scheduler.queue.record(pod.namespace, pod.name)
        if record is None:
            return {}
        return {
            "attempts": record.attempts,
            "rejectedBy": sorted(record.rejectors),
            "gatedBy": record.gating_plugin,
            "since": record.timestamp,
        }

    async def _nodes(self, framework: Framework, pod: Pod) -> dict[str, Any]:
        scheduler = self.scheduler
        # Plugins in other processes are asked about the nodes of this one; it is to have them all.
        scheduler.cache.update_snapshot(scheduler.snapshot)
        nodes = scheduler.cache.fresh_snapshot(without=pod.uid)
        waiting = _unplaced(pod)
        framework = Framework(framework.profile_name, framework.plugins, percentage_of_nodes_to_score=0)
        record = CycleRecord(waiting, framework.profile_name, 0, b"", b"", 0, 0, 0)
        meter = scheduler.budgets.look(pod.namespace, len(nodes))
        attempt = Attempt(waiting, nodes, CycleState(meter), record)
        try:
            return await meter.timed(self._tried(framework, attempt))
        except OverBudgetError as error:
            return {"message": str(error), "nodes": []}

    async def _tried(self, framework: Framework, attempt: Attempt) -> dict[str, Any]:
        nodes = attempt.nodes
        search = NodeSearch(self.scheduler.queue.nominator, Rotation(), exhaustive=True)
        answers = Answers(NodePlugins(framework.plugins), detailed=True)
        found = await search.find(framework, attempt, answers)
        if isinstance(found, Status):
            diagnosis = found.error.diagnosis if isinstance(found.error, FitError) else Diagnosis(nodes.names)
            return {"message": found.message, "nodes": _verdicts(nodes, diagnosis, None)}
        message = ""
        try:
            scores = await _scores(framework, attempt, answers, found)
        except PluginError as error:
            message, scores = str(error), _without_scores(found)
        return {"message": message, "nodes": _verdicts(nodes, found.why_not.diagnosis(), scores)}


def _unplaced(pod: Pod) -> Pod:
    """The pod on no node and nominated to none, so that every node is looked at."""
    if not (pod.node_name or pod.nominated_node_name):
        return pod
    status = msgspec.structs.replace(pod.status, nominated_node_name="")
    return msgspec.structs.replace(pod.placed_on(""), status=status)


def _without_scores(feasible: Feasible) -> NodeScores:
    rows = np.flatnonzero(feasible.mask)
    return NodeScores(rows, np.zeros(rows.size, dtype=np.int64))


async def _scores(framework: Framework, attempt: Attempt, answers: Answers, feasible: Feasible) -> NodeScores:
    scores = await score_nodes(attempt, answers, feasible)
    await add_priorities(framework.extenders, attempt, scores)
    return scores


def _verdicts(nodes: Snapshot, diagnosis: Diagnosis, scores: NodeScores | None) -> list[dict[str, Any]]:
    """Each node: who turned it down and why, or what it scored; the best first, the rejected last."""
    fits = {} if scores is None else {row: i for i, row in enumerate(scores.rows.tolist())}
    statuses = diagnosis.statuses()
    verdicts = []
    for row, name in enumerate(nodes.names):
        if row in fits and scores is not None:
            verdicts.append({"name": name, **_scored(scores, fits[row])})
        else:
            status = statuses.get(row, diagnosis.absent)
            verdicts.append(
                {
                    "name": name,
                    "plugin": status.plugin,
                    "code": str(status.code),
                    "reasons": list(status.reasons),
                }
            )
    return sorted(verdicts, key=lambda v: (-v.get("total", -1), v["name"]))


def _scored(scores: NodeScores, i: int) -> dict[str, Any]:
    parts = {
        part.plugin: {
            "raw": int(part.raw[i]),
            "score": int(part.final[i]),
            "weighted": int(part.final[i]) * part.weight,
        }
        for part in scores.parts
    }
    return {"total": int(scores.totals[i]), "scores": parts}
