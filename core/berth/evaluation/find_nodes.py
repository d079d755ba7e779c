"""From a pod to the nodes it fits on, or to the reasons why there are none.

Source: spec/core.md 4.3-4.8.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from berth.evaluation.extending import run_extender_filters
from berth.evaluation.filtering import (
    PreFilterOutcome,
    filter_one,
    filter_with_nominated,
    filter_within,
    follow_pods,
    run_filters,
    run_pre_filters,
)
from berth.evaluation.kept import Kept
from berth.evaluation.nominated import NominatedPods, Promised, with_pods
from berth.evaluation.remembered import OutdatedError, Remembered
from berth.framework.attempt import Attempt
from berth.framework.diagnosis import NO_NODES_AVAILABLE, Diagnosis, FitError
from berth.framework.handle import Nominator
from berth.framework.runtime import Framework
from berth.framework.status import Code, PluginError, Status, failed, unresolvable
from berth.snapshot.columns import Mask, Rows, every_row, rows_where
from berth.snapshot.snapshot import Snapshot

log = logging.getLogger(__name__)

MIN_FEASIBLE_NODES = 100
NARROWED = "narrowed"


@dataclass(slots=True)
class Feasible:
    """Where the pod fits, and why not elsewhere. Shapes: mask bool (n,)."""

    mask: Mask
    count: int
    evaluated: int
    diagnosis: Diagnosis


@dataclass(slots=True)
class Rotation:
    """Where the next sampled search starts; shared by all profiles for the life of the process."""

    start: int = 0


@dataclass(slots=True)
class NodeSearch:
    """Finds feasible nodes for one profile after another.

    `percentage_of_nodes_to_score` 0 means all nodes: Berth looks at the whole cluster unless told otherwise.
    An `exhaustive` search does so whatever it is told.
    """

    nominator: Nominator
    rotation: Rotation
    percentage_of_nodes_to_score: int = 0
    exhaustive: bool = False
    nominated: NominatedPods = field(init=False)

    def __post_init__(self) -> None:
        self.nominated = NominatedPods(self.nominator)

    async def find(
        self, framework: Framework, attempt: Attempt, kept: Kept | None = None
    ) -> Feasible | Status:
        """The feasible nodes, or the status that ends the cycle (a FitError where no node fits).

        Answers for equal pods go to `kept`, if every node was looked at.
        """
        if not attempt.node_count:
            error = PluginError(NO_NODES_AVAILABLE)
            return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, error=error)
        diagnosis = Diagnosis(attempt.nodes.names, count=attempt.node_count)
        pre_filter = await run_pre_filters(framework.plugins.pre_filter, attempt, kept)
        if not pre_filter.status.ok:
            return self._pre_filter_failed(pre_filter, diagnosis)
        try:
            return await self._search(framework, attempt, pre_filter, diagnosis, kept)
        except PluginError as error:
            return failed(error)

    def _pre_filter_failed(self, pre_filter: PreFilterOutcome, diagnosis: Diagnosis) -> Status:
        status = pre_filter.status
        if not status.rejected:
            return status
        diagnosis.absent = status
        diagnosis.pre_filter_message = status.message
        diagnosis.blame(status)
        diagnosis.unschedulable_plugins.update(pre_filter.narrowing)
        return does_not_fit(diagnosis)

    async def find_again(
        self, framework: Framework, attempt: Attempt, remembered: Remembered
    ) -> Feasible | None:
        """What `find` finds, by what is remembered of an equal pod; None where no node is feasible.

        Raises: OutdatedError where another plugin than before has something to say; PluginError.
        """
        record, state, asked = attempt.record, attempt.state, remembered.unsettled
        remembered.hand_over(attempt)
        pre_filter = await run_pre_filters(asked.pre_filter, attempt)
        if not pre_filter.status.ok or pre_filter.node_names is not None:
            raise OutdatedError(NARROWED)
        state.skip_filter |= remembered.skip_filter
        diagnosis = Diagnosis(attempt.nodes.names)
        mask = np.ones(len(attempt.nodes), dtype=bool)
        await self._with_nominated(framework, attempt, mask, diagnosis)
        point = record.begin("Filter")
        await remembered.refresh_fits(attempt, point)
        mask &= remembered.fits
        await filter_within(asked.filter, attempt, mask, diagnosis, point=point)
        record.end(point)
        if not mask.any():
            return None
        feasible = self._sampled(framework, mask, every_row(mask.size), diagnosis, attempt.nodes)
        return await self._left_by_extenders(framework, attempt, feasible)

    async def _search(
        self,
        framework: Framework,
        attempt: Attempt,
        pre_filter: PreFilterOutcome,
        diagnosis: Diagnosis,
        kept: Kept | None,
    ) -> Feasible | Status:
        nominated = attempt.nodes.row_of.get(attempt.pod.nominated_node_name)
        if (
            nominated is not None
            and attempt.allows(nominated)
            and await self._fits_alone(framework, attempt, nominated, diagnosis)
        ):
            return Feasible(_only(nominated, attempt), 1, 1, diagnosis)
        candidates = self._candidates(attempt, pre_filter, diagnosis)
        if kept is not None:
            kept.whole = pre_filter.node_names is None
        rows = rows_where(candidates)
        await self._with_nominated(framework, attempt, candidates, diagnosis)
        mask = await run_filters(framework.plugins.filter, attempt, candidates, diagnosis, kept)
        feasible = self._sampled(framework, mask, rows, diagnosis, attempt.nodes)
        return await self._left_by_extenders(framework, attempt, feasible) or does_not_fit(diagnosis)

    async def _left_by_extenders(
        self, framework: Framework, attempt: Attempt, feasible: Feasible
    ) -> Feasible | None:
        if framework.extenders:
            feasible.mask = await run_extender_filters(
                framework.extenders, attempt, feasible.mask, feasible.diagnosis
            )
            feasible.count = int(np.count_nonzero(feasible.mask))
        return feasible if feasible.count else None

    async def _fits_alone(
        self, framework: Framework, attempt: Attempt, row: int, diagnosis: Diagnosis
    ) -> bool:
        """Whether the pod's own nomination still holds; the node's status is remembered where it does not."""
        try:
            status = await self._status_of(framework, attempt, row)
            left = _only(row, attempt)
            if status.ok and framework.extenders:
                left = await run_extender_filters(framework.extenders, attempt, left, diagnosis)
        except PluginError as error:
            log.warning("nominated node not looked at pod=%s error=%s", attempt.pod.key, error)
            return False
        if not status.ok:
            diagnosis.single[row] = status
            diagnosis.blame(status)
        return status.ok and bool(left[row])

    async def _status_of(self, framework: Framework, attempt: Attempt, row: int) -> Status:
        plugins = framework.plugins.filter
        others = self.nominated.on_node(attempt.pod, attempt.nodes.names[row])
        if others:
            status = await filter_with_nominated(plugins, framework.extensions, attempt, row, others)
            if not status.ok:
                return status
        return await filter_one(plugins, attempt.on(attempt.nodes.view(slice(row, row + 1)), attempt.state))

    def _candidates(self, attempt: Attempt, pre_filter: PreFilterOutcome, diagnosis: Diagnosis) -> Mask:
        if pre_filter.node_names is None:
            diagnosis.single.clear()
            return attempt.mask_within()
        mask = np.zeros(len(attempt.nodes), dtype=bool)
        mask[[attempt.nodes.row_of[name] for name in _known(pre_filter.node_names, attempt)]] = True
        for row in [row for row in diagnosis.single if mask[row]]:
            del diagnosis.single[row]
        diagnosis.absent = unresolvable(
            f"node(s) didn't satisfy plugin(s) [{' '.join(pre_filter.narrowing)}]"
        )
        diagnosis.unschedulable_plugins.update(pre_filter.narrowing)
        return mask

    async def _with_nominated(
        self, framework: Framework, attempt: Attempt, candidates: Mask, diagnosis: Diagnosis
    ) -> None:
        """Take out the nodes that the pod does not fit on once the pods nominated to them are there."""
        if not self.nominated.any():
            return
        promised = self.nominated.beside(attempt.pod, attempt.nodes).among(candidates)
        if not promised.rows.size:
            return
        skipped = attempt.state.skip_filter
        if all(p.follows_side_by_side or p.name in skipped for p in framework.extensions):
            await _all_with_nominated(framework, attempt, promised, candidates, diagnosis)
            return
        for row in promised.rows.tolist():
            others = promised.pods[row]
            status = await filter_with_nominated(
                framework.plugins.filter, framework.extensions, attempt, row, others
            )
            if not status.ok:
                diagnosis.single[row] = status
                diagnosis.blame(status)
                candidates[row] = False

    def _sampled(
        self, framework: Framework, mask: Mask, rows: Rows, diagnosis: Diagnosis, nodes: Snapshot
    ) -> Feasible:
        """Keep the feasible nodes that a search in rotation order finds before it has enough.

        Shapes: mask bool (n,); rows intp (k,), the candidates.
        """
        wanted = self._wanted(framework, rows.size)
        count, scanned = int(np.count_nonzero(mask)), rows.size
        if count > wanted:
            order = np.roll(_in_search_order(rows, nodes), -(self.rotation.start % rows.size))
            scanned = int(np.searchsorted(np.cumsum(mask[order]), wanted)) + 1
            mask[order[scanned:]] = False
            count = wanted
        self.rotation.start = (self.rotation.start + scanned) % mask.size
        return Feasible(mask, count, scanned, diagnosis)

    def _wanted(self, framework: Framework, candidates: int) -> int:
        """How many feasible nodes are enough: one will do where nobody chooses between them."""
        if self.exhaustive:
            return candidates
        if not framework.plugins.score and not any(e.filters or e.prioritizes for e in framework.extenders):
            return 1
        percentage = framework.percentage_of_nodes_to_score
        if percentage is None:
            percentage = self.percentage_of_nodes_to_score
        return nodes_to_find(candidates, percentage)


def _in_search_order(rows: Rows, nodes: Snapshot) -> Rows:
    """The candidates, zone by zone in turn. Shapes: rows and result intp (k,)."""
    order = nodes.search_rows()
    return order if rows.size == order.size else order[np.isin(order, rows)]


async def _all_with_nominated(
    framework: Framework,
    attempt: Attempt,
    promised: Promised,
    candidates: Mask,
    diagnosis: Diagnosis,
) -> None:
    """The same for all nodes at once, each of them a world of its own."""
    rows = promised.rows
    crowded = attempt.on(with_pods(attempt.nodes, promised), attempt.state.clone())
    following = [plugin for plugin in framework.extensions if plugin.name not in attempt.state.skip_filter]
    if following:
        coming = [(i, info) for i, row in enumerate(rows.tolist()) for info in promised.pods[row]]
        follow_pods(following, crowded, coming, 1)
    why_not = Diagnosis(crowded.nodes.names)
    everywhere = np.ones(rows.size, dtype=bool)
    fits = await run_filters(framework.plugins.filter, crowded, everywhere, why_not)
    for rejections in why_not.rejections:
        diagnosis.record(replace(rejections, rows=rows[rejections.rows]))
    candidates[rows[~fits]] = False


def nodes_to_find(n: int, percentage: int) -> int:
    """How many feasible nodes end the search; 0 % stands for all of them."""
    if n < MIN_FEASIBLE_NODES or percentage == 0:
        return n
    return max(MIN_FEASIBLE_NODES, n * percentage // 100)


def does_not_fit(diagnosis: Diagnosis) -> Status:
    """The status of a cycle that found no node."""
    return Status(Code.UNSCHEDULABLE, error=FitError(diagnosis, diagnosis.node_count))


def _only(row: int, attempt: Attempt) -> Mask:
    mask = np.zeros(len(attempt.nodes), dtype=bool)
    mask[row] = True
    return mask


def _known(names: Iterable[str], attempt: Attempt) -> list[str]:
    row_of = attempt.nodes.row_of
    return [name for name in names if name in row_of and attempt.allows(row_of[name])]
