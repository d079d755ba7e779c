"""One pod tried on every node by the engine that decides on pods, with nothing left out and nothing held.

Extenders are asked one after the other, as in a cycle, so that each is named that turns a node down.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import msgspec
import numpy as np

from berth.evaluation.caching.cached_evaluation import CachedEvaluation
from berth.evaluation.caching.node_plugins import NodePlugins
from berth.evaluation.find_nodes import Feasible, NodeSearch, Rotation
from berth.evaluation.points.extending import add_extender_scores, run_extender_filters
from berth.evaluation.select_host import score_nodes
from berth.framework.attempts.attempt import Attempt
from berth.framework.attempts.cycle_budget import CycleMeter
from berth.framework.attempts.cycle_record import CycleRecord
from berth.framework.attempts.cycle_state import CycleState
from berth.framework.attempts.diagnosis import Diagnosis, FitError
from berth.framework.extender import Extender
from berth.framework.extender_binding import interested
from berth.framework.handle import Nominator
from berth.framework.hypothetical_pod import HypotheticalPod
from berth.framework.interface import FilterPlugin, PreFilterPlugin
from berth.framework.node_scores import NodeScores
from berth.framework.runtime import Framework, ProfilePlugins
from berth.framework.status import PluginError, Status, unschedulable
from berth.objects.pods.pod import Pod
from berth.snapshot.columns.growing import Mask
from berth.snapshot.snapshot import Snapshot

NO_REASON = unschedulable("left out of the answer, without a reason")


class Verdict(NamedTuple):
    """Who turns a node down, and why; `of_pod` where PreFilter did, before any node was looked at."""

    plugin: str
    status: Status
    of_pod: bool = False


@dataclass(frozen=True)
class PodTrial:
    """What became of the pod on every node. Shapes: fits bool (n,)."""

    attempt: Attempt
    fits: Mask
    diagnosis: Diagnosis
    message: str = ""
    scores: NodeScores | None = None
    broken: bool = False
    feasible: Feasible | None = None
    """Where it fits as far as plugins are concerned, for scoring."""
    beside_extenders: Mapping[int, Verdict] | None = None
    """`against`, where extenders were asked."""

    @cached_property
    def against(self) -> Mapping[int, Verdict]:
        """A verdict for each row that does not fit, none where the pod could not be tried at all.

        Cost: O(n), when first asked for.
        """
        if self.beside_extenders is not None:
            return self.beside_extenders
        return {} if self.broken else _against(self.diagnosis, self.fits)

    @property
    def nodes(self) -> Snapshot:
        """The nodes it was tried on."""
        return self.attempt.nodes


class Trying(msgspec.Struct, frozen=True):
    """Tries pods on snapshots of its caller's; `nominator` knows which nodes were promised to others."""

    nominator: Nominator

    async def tried(
        self,
        framework: Framework,
        pod: Pod,
        nodes: Snapshot,
        meter: CycleMeter,
        instead_of: Pod | None = None,
    ) -> PodTrial:
        """Each node's verdict, and the scores of those that fit; `instead_of` is the pod as it is written.

        Raises: OverBudgetError.
        """
        attempt = _attempt(framework, pod, nodes, meter, instead_of)
        answers = CachedEvaluation(NodePlugins(framework.plugins), detailed=True)
        found = await self._found(framework, attempt, answers)
        if found.fits.any():
            found = await _scored(framework, found, answers)
        return found

    async def filtered(
        self,
        framework: Framework,
        pod: Pod,
        nodes: Snapshot,
        meter: CycleMeter,
        instead_of: Pod | None = None,
    ) -> PodTrial:
        """The same without scores; the pod fits nowhere if a plugin fails. Raises: OverBudgetError."""
        attempt = _attempt(framework, pod, nodes, meter, instead_of)
        return await self._found(framework, attempt, CachedEvaluation(NodePlugins(framework.plugins)))

    async def by_plugin(
        self, framework: Framework, pod: Pod, nodes: Snapshot, meter: CycleMeter
    ) -> list[dict[int, Verdict]]:
        """What each plugin that looks at nodes has against which rows, asked as if it were the only one.

        Raises: OverBudgetError.
        """
        plugins = framework.plugins
        names = dict.fromkeys(plugin.name for plugin in (*plugins.filter, *plugins.pre_filter))
        found = []
        for name in names:
            alone = _alone(
                framework,
                [p for p in plugins.pre_filter if p.name == name],
                [p for p in plugins.filter if p.name == name],
            )
            attempt = _attempt(alone, pod, nodes, meter)
            tried = await self._found(alone, attempt, CachedEvaluation(NodePlugins(alone.plugins)))
            if tried.against:
                found.append(dict(tried.against))
        return found

    async def _found(self, framework: Framework, attempt: Attempt, answers: CachedEvaluation) -> PodTrial:
        search = NodeSearch(self.nominator, Rotation(), exhaustive=True)
        without = Framework(framework.profile_name, framework.plugins, percentage_of_nodes_to_score=0)
        found = await search.find(without, attempt, answers)
        if isinstance(found, Status):
            return _nowhere(attempt, found)
        diagnosis = found.diagnosis_builder.diagnosis()
        tried = PodTrial(attempt, found.mask, diagnosis, feasible=found)
        if framework.extenders:
            return await _left_by_extenders(framework, tried, attempt)
        return tried


def _attempt(
    framework: Framework, pod: Pod, nodes: Snapshot, meter: CycleMeter, instead_of: Pod | None = None
) -> Attempt:
    """An attempt whose record is shown to no one; the pod is on no node and nominated to none."""
    state = CycleState(meter)
    if instead_of is not None and instead_of is not pod:
        state.write(HypotheticalPod, HypotheticalPod(instead_of, pod))
    pod = unplaced(pod)
    record = CycleRecord(pod, framework.profile_name, 0, b"", b"", 0, 0, 0)
    return Attempt(pod, nodes, state, record)


def in_this_process(framework: Framework) -> Framework:
    """The profile without extenders and without sidecars, which answer at once."""
    plugins = framework.plugins
    return _alone(
        framework,
        [plugin for plugin in plugins.pre_filter if plugin.in_process],
        [plugin for plugin in plugins.filter if plugin.in_process],
    )


def without(framework: Framework, plugin: str) -> Framework:
    """The profile without one of its plugins, extenders included."""
    plugins = framework.plugins
    return _alone(
        framework,
        [each for each in plugins.pre_filter if each.name != plugin],
        [each for each in plugins.filter if each.name != plugin],
        framework.extenders,
    )


def in_other_processes(framework: Framework) -> frozenset[str]:
    """The names of the sidecars with Filter or Score."""
    plugins = framework.plugins
    return frozenset(p.name for p in (*plugins.pre_filter, *plugins.filter) if not p.in_process)


def unplaced(pod: Pod) -> Pod:
    """The pod on no node and nominated to none, so that every node is looked at."""
    if not (pod.node_name or pod.nominated_node_name):
        return pod
    status = msgspec.structs.replace(pod.status, nominated_node_name="")
    return msgspec.structs.replace(pod.placed_on(""), status=status)


def _alone(
    framework: Framework,
    pre_filter: Sequence[PreFilterPlugin],
    filters: Sequence[FilterPlugin],
    extenders: Sequence[Extender] = (),
) -> Framework:
    plugins = ProfilePlugins(pre_filter=list(pre_filter), filter=list(filters))
    plugins.by_name = {plugin.name: plugin for plugin in (*pre_filter, *filters)}
    return Framework(framework.profile_name, plugins, percentage_of_nodes_to_score=0, extenders=extenders)


def _nowhere(attempt: Attempt, status: Status) -> PodTrial:
    """Turned down by PreFilter or by filters everywhere, or a plugin that failed."""
    nowhere = np.zeros(len(attempt.nodes), dtype=bool)
    if not isinstance(status.error, FitError):
        return PodTrial(attempt, nowhere, Diagnosis(attempt.nodes.names), status.message, broken=True)
    return PodTrial(attempt, nowhere, status.error.diagnosis, status.message)


def _against(diagnosis: Diagnosis, fits: Mask) -> dict[int, Verdict]:
    statuses = diagnosis.statuses()
    found = {}
    for row in np.flatnonzero(~fits).tolist():
        status = statuses.get(row, diagnosis.absent)
        of_pod = bool(diagnosis.pre_filter_message)
        found[row] = Verdict(status.plugin or ", ".join(diagnosis.narrowing), status, of_pod)
    return found


async def _left_by_extenders(framework: Framework, tried: PodTrial, attempt: Attempt) -> PodTrial:
    """The same after one extender after the other has had its say, each under its own name."""
    left, diagnosis, against = tried.fits, tried.diagnosis, dict(tried.against)
    for extender in interested(framework.extenders, attempt.pod, lambda extender: extender.filters):
        name = f"extender {extender.name}"
        try:
            passed = await run_extender_filters([extender], attempt, left, diagnosis)
        except PluginError as error:
            nowhere = np.zeros(left.size, dtype=bool)
            message = f"{name}: {error}"
            return replace(
                tried, fits=nowhere, message=message, feasible=None, broken=True, beside_extenders=against
            )
        for row in np.flatnonzero(left & ~passed).tolist():
            status = diagnosis.single.get(row, NO_REASON)
            against[row] = Verdict(name, status if any(status.reasons) else NO_REASON)
        left = passed
    message = "" if left.any() else str(FitError(diagnosis, diagnosis.node_count))
    return replace(tried, fits=left, message=message, beside_extenders=against)


async def _scored(framework: Framework, tried: PodTrial, answers: CachedEvaluation) -> PodTrial:
    """The same with the scores of the nodes that fit, all 0 where a plugin fails to score them."""
    assert tried.feasible is not None, "some node fits"
    count = int(np.count_nonzero(tried.fits))
    whole = tried.feasible.matches_cache and count == tried.feasible.count
    feasible = replace(tried.feasible, mask=tried.fits, count=count, matches_cache=whole)
    try:
        scores = await score_nodes(tried.attempt, answers, feasible)
        await add_extender_scores(framework.extenders, tried.attempt, scores)
    except PluginError as error:
        rows = np.flatnonzero(tried.fits)
        return replace(
            tried, message=str(error), scores=NodeScores(rows, np.zeros(rows.size, dtype=np.int64))
        )
    return replace(tried, scores=scores)
