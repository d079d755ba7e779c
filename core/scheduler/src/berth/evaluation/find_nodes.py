"""From a pod to the nodes it fits on, or to the reasons why there are none.

Source: pkg/scheduler/schedule_one.go findNodesThatFitPod, findNodesThatPassFilters, numFeasibleNodesToFind
(Kubernetes v1.36).
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from berth.evaluation.caching.cached_evaluation import CachedEvaluation
from berth.evaluation.caching.filter_results import FilterResults
from berth.evaluation.filter_with_nominated import filter_with_nominated, rejected_with_nominated
from berth.evaluation.nominated_rows import NominatedPods
from berth.evaluation.points.extending import run_extender_filters
from berth.evaluation.points.filter_accumulator import FilterAccumulator, record_rejections
from berth.evaluation.points.filtering import ask_filters, filter_one
from berth.evaluation.points.pre_filtering import PreFilterOutcome
from berth.evaluation.points.reasons import Numbers
from berth.framework.attempts.attempt import Attempt
from berth.framework.attempts.diagnosis import NO_NODES_AVAILABLE, Diagnosis, FitError
from berth.framework.handle import Nominator
from berth.framework.runtime import Framework
from berth.framework.status import Code, PluginError, Status, failed, unresolvable
from berth.snapshot.columns.growing import Mask, Rows
from berth.snapshot.snapshot import Snapshot

log = logging.getLogger(__name__)

MIN_FEASIBLE_NODES = 100
MANY = 1 << 30


@dataclass(slots=True)
class Feasible:
    """Where the pod fits. Shapes: mask bool (n,), not to be written to; rows intp (count,).

    With `rows`, the pod may go to these alone, and the mask is that of the cached filter results.
    """

    mask: Mask
    count: int
    evaluated: int
    diagnosis_builder: "DiagnosisBuilder"
    matches_cache: bool = False
    """Whether these are exactly the rows that the cached filter results let pass."""
    rows: Rows | None = None


class DiagnosisBuilder:
    """Builds the diagnosis of a pod that does not fit, on demand.

    Shapes: candidates bool (n,), the rows that Filter plugins ran on, None for all; why (n,), None where the
        cached `filter_results` are complete, with no uncacheable plugin.
    """

    __slots__ = ("_attempt", "_diagnosis", "candidates", "filter_results", "why")

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt
        self._diagnosis: Diagnosis | None = None
        self.candidates: Mask | None = None
        self.filter_results: FilterResults | None = None
        self.why: Numbers | None = None

    @property
    def diagnosis_so_far(self) -> Diagnosis:
        """The diagnosis without the cached filter results."""
        if self._diagnosis is None:
            self._diagnosis = Diagnosis(self._attempt.nodes.names, count=self._attempt.node_count)
        return self._diagnosis

    def diagnosis(self) -> Diagnosis:
        """The whole diagnosis; to be called once, after the search."""
        diagnosis, filter_results, self.filter_results = self.diagnosis_so_far, self.filter_results, None
        if filter_results is None:
            return diagnosis
        if self.why is None and self.candidates is None:
            rejections = filter_results.rejections()
            if rejections is not None:
                diagnosis.record(rejections)
            return diagnosis
        why = filter_results.why if self.why is None else self.why
        among = why if self.candidates is None else np.where(self.candidates, why, 0)
        record_rejections(diagnosis, among, filter_results.reasons)
        return diagnosis


@dataclass(slots=True)
class Rotation:
    """Where the next sampled search starts; shared by all profiles for the life of the process."""

    start: int = 0


@dataclass(slots=True)
class NodeSearch:
    """Finds feasible nodes for one profile after another.

    `percentage_of_nodes_to_score` 0 means all nodes: Berth looks at the whole cluster by default. An
    `exhaustive` search always does.
    """

    nominator: Nominator
    rotation: Rotation
    percentage_of_nodes_to_score: int = 0
    exhaustive: bool = False
    nominated: NominatedPods = field(init=False)

    def __post_init__(self) -> None:
        self.nominated = NominatedPods(self.nominator)

    async def find(
        self, framework: Framework, attempt: Attempt, evaluation: CachedEvaluation
    ) -> Feasible | Status:
        """The feasible nodes, or the status that ends the cycle (a FitError where no node fits).

        The attempt's record counts the nodes that were evaluated, and those of them that fit, in either case.

        Raises: StartOverError where the cached evaluation cannot be refreshed.
        """
        attempt.record.evaluated_count = attempt.record.feasible_count = 0
        if not attempt.node_count:
            error = PluginError(NO_NODES_AVAILABLE)
            return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, error=error)
        evaluation.begin(attempt)
        pre_filter = evaluation.pre_filter(attempt)
        if not isinstance(pre_filter, PreFilterOutcome):
            pre_filter = await pre_filter
        diagnosis_builder = DiagnosisBuilder(attempt)
        if not pre_filter.status.ok:
            return _pre_filter_failed(pre_filter, diagnosis_builder.diagnosis_so_far)
        try:
            return await self._search(framework, attempt, evaluation, pre_filter, diagnosis_builder)
        except PluginError as error:
            return failed(error)

    async def _search(
        self,
        framework: Framework,
        attempt: Attempt,
        evaluation: CachedEvaluation,
        pre_filter: PreFilterOutcome,
        diagnosis_builder: DiagnosisBuilder,
    ) -> Feasible | Status:
        if attempt.pod.nominated_node_name:
            evaluation.keys_may_change()
            alone = await self._own_nomination(framework, attempt, diagnosis_builder)
            if alone is not None:
                attempt.record.evaluated_count = attempt.record.feasible_count = 1
                return alone
        if attempt.within is not None and self._by_rows(framework, evaluation, pre_filter):
            feasible = await _passed_within(attempt, evaluation, attempt.within, diagnosis_builder)
            attempt.record.evaluated_count = attempt.within.size
            attempt.record.feasible_count = feasible.count
            return feasible if feasible.count else does_not_fit(diagnosis_builder.diagnosis())
        candidates = _candidates(attempt, pre_filter, diagnosis_builder)
        asked = len(attempt.nodes) if candidates is None else int(np.count_nonzero(candidates))
        left = candidates
        if self.nominated.any():
            evaluation.keys_may_change()
            left = await self._beside_nominated(framework, attempt, candidates, diagnosis_builder)
        feasible = await _passed(attempt, evaluation, left, diagnosis_builder)
        self._sample(framework, feasible, candidates, asked, attempt.nodes)
        attempt.record.evaluated_count = feasible.evaluated
        if framework.extenders:
            evaluation.keys_may_change()
            await _leave_to_extenders(framework, attempt, feasible, diagnosis_builder)
        attempt.record.feasible_count = feasible.count
        return feasible if feasible.count else does_not_fit(diagnosis_builder.diagnosis())

    def _by_rows(
        self, framework: Framework, evaluation: CachedEvaluation, pre_filter: PreFilterOutcome
    ) -> bool:
        """Whether the cached filter results of these rows alone decide where the pod fits."""
        known = evaluation.known and evaluation.uncacheable is None and pre_filter.node_names is None
        return known and not (framework.extenders or self.samples(framework) or self.nominated.any())

    async def _own_nomination(
        self, framework: Framework, attempt: Attempt, diagnosis_builder: DiagnosisBuilder
    ) -> Feasible | None:
        """The pod's nominated node alone, where the pod still fits on it."""
        row = attempt.nodes.row_of.get(attempt.pod.nominated_node_name)
        if row is None or not attempt.allows(row):
            return None
        if not await self._fits_alone(framework, attempt, row, diagnosis_builder.diagnosis_so_far):
            return None
        return Feasible(_only(row, attempt), 1, 1, diagnosis_builder)

    async def _fits_alone(
        self, framework: Framework, attempt: Attempt, row: int, diagnosis: Diagnosis
    ) -> bool:
        """Whether the pod fits on that node; its status goes into the diagnosis where it does not."""
        try:
            status = await self._status_of(framework, attempt, row)
            left = _only(row, attempt)
            if status.ok and framework.extenders:
                left = await run_extender_filters(framework.extenders, attempt, left, diagnosis)
        except PluginError as error:
            log.warning("nominated node not looked at pod=%s err=%s", attempt.pod.key, error)
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

    async def _beside_nominated(
        self,
        framework: Framework,
        attempt: Attempt,
        candidates: Mask | None,
        diagnosis_builder: DiagnosisBuilder,
    ) -> Mask | None:
        """The candidates without nodes that the pod does not fit on beside the pods nominated to them."""
        nominated = self.nominated.beside(attempt.pod, attempt.nodes)
        if candidates is not None:
            nominated = nominated.among(candidates)
        if not nominated.rows.size:
            return candidates
        rows = await rejected_with_nominated(
            framework, attempt, nominated, diagnosis_builder.diagnosis_so_far
        )
        if not rows.size:
            return candidates
        left = attempt.mask_within() if candidates is None else candidates.copy()
        left[rows] = False
        return left

    def _sample(
        self,
        framework: Framework,
        feasible: Feasible,
        candidates: Mask | None,
        asked: int,
        nodes: Snapshot,
    ) -> None:
        """Keep the feasible nodes that a search in rotation order finds before it has enough.

        Shapes: candidates bool (n,), of which there are so many as were `asked` about; None for all.
        """
        wanted, scanned = self._wanted(framework, asked), asked
        if feasible.count > wanted:
            mask = feasible.mask.copy()
            order = np.roll(_in_search_order(candidates, nodes), -(self.rotation.start % asked))
            scanned = int(np.searchsorted(np.cumsum(mask[order]), wanted)) + 1
            mask[order[scanned:]] = False
            feasible.mask, feasible.count, feasible.matches_cache = mask, wanted, False
        feasible.evaluated = scanned
        self.rotation.start = (self.rotation.start + scanned) % len(nodes)

    def samples(self, framework: Framework) -> bool:
        """Whether a search may end before all nodes were looked at."""
        return self._wanted(framework, MANY) < MANY

    def _wanted(self, framework: Framework, candidates: int) -> int:
        """How many feasible nodes are enough: one where no plugin or extender scores."""
        if self.exhaustive:
            return candidates
        if not framework.plugins.score and not any(e.filters or e.prioritizes for e in framework.extenders):
            return 1
        percentage = framework.percentage_of_nodes_to_score
        if percentage is None:
            percentage = self.percentage_of_nodes_to_score
        return nodes_to_find(candidates, percentage)


def _pre_filter_failed(pre_filter: PreFilterOutcome, diagnosis: Diagnosis) -> Status:
    status = pre_filter.status
    if not status.rejected:
        return status
    diagnosis.absent = status
    diagnosis.pre_filter_message = status.message
    diagnosis.blame(status)
    diagnosis.narrowing = pre_filter.narrowing
    diagnosis.unschedulable_plugins.update(pre_filter.narrowing)
    return does_not_fit(diagnosis)


def _candidates(
    attempt: Attempt, pre_filter: PreFilterOutcome, diagnosis_builder: DiagnosisBuilder
) -> Mask | None:
    """The rows to ask about, None for all of them."""
    if pre_filter.node_names is None:
        if attempt.pod.nominated_node_name:
            diagnosis_builder.diagnosis_so_far.single.clear()
        return None if attempt.within is None else attempt.mask_within()
    mask = np.zeros(len(attempt.nodes), dtype=bool)
    mask[[attempt.nodes.row_of[name] for name in _known(pre_filter.node_names, attempt)]] = True
    diagnosis = diagnosis_builder.diagnosis_so_far
    for row in [row for row in diagnosis.single if mask[row]]:
        del diagnosis.single[row]
    diagnosis.absent = unresolvable(f"node(s) didn't satisfy plugin(s) [{' '.join(pre_filter.narrowing)}]")
    diagnosis.narrowing = pre_filter.narrowing
    diagnosis.unschedulable_plugins.update(pre_filter.narrowing)
    return mask


async def _passed(
    attempt: Attempt,
    evaluation: CachedEvaluation,
    candidates: Mask | None,
    diagnosis_builder: DiagnosisBuilder,
) -> Feasible:
    """The candidates that all Filter plugins let pass. Shapes: candidates bool (n,), None for all rows."""
    point = attempt.record.begin("Filter")
    try:
        later = evaluation.refresh_filters(attempt, candidates, point)
        if later is not None:
            await later
        filter_results = evaluation.filter_results
        diagnosis_builder.candidates, diagnosis_builder.filter_results = candidates, filter_results
        uncacheable = evaluation.uncacheable
        if uncacheable is None or not uncacheable.filter:
            if candidates is None or not evaluation.kept:
                return Feasible(
                    filter_results.fits, filter_results.count, 0, diagnosis_builder, matches_cache=True
                )
            mask = filter_results.fits & candidates
        else:
            everywhere = np.ones(len(attempt.nodes), dtype=bool) if candidates is None else candidates
            accumulator = FilterAccumulator(
                filter_results.reasons, everywhere, filter_results.why, lasting=False
            )
            await ask_filters(uncacheable.filter, attempt, accumulator, point)
            diagnosis_builder.why, mask = accumulator.why, accumulator.feasible
        count = int(np.count_nonzero(mask))
        return Feasible(mask, count, 0, diagnosis_builder, matches_cache=count == filter_results.count)
    finally:
        attempt.record.end(point)


async def _passed_within(
    attempt: Attempt, evaluation: CachedEvaluation, within: Rows, diagnosis_builder: DiagnosisBuilder
) -> Feasible:
    """Those of the rows that pass by the cached results; others cost nothing. Shapes: within intp (k,)."""
    point = attempt.record.begin("Filter")
    try:
        later = evaluation.refresh_filters(attempt, None, point)
        if later is not None:
            await later
    finally:
        attempt.record.end(point)
    results = diagnosis_builder.filter_results = evaluation.filter_results
    rows = evaluation.fitting(within)
    if not rows.size:
        diagnosis_builder.candidates = attempt.mask_within()
    same = rows.size == results.count
    return Feasible(results.fits, rows.size, 0, diagnosis_builder, matches_cache=same, rows=rows)


async def _leave_to_extenders(
    framework: Framework, attempt: Attempt, feasible: Feasible, diagnosis_builder: DiagnosisBuilder
) -> None:
    left = await run_extender_filters(
        framework.extenders, attempt, feasible.mask, diagnosis_builder.diagnosis_so_far
    )
    count = int(np.count_nonzero(left))
    feasible.matches_cache &= count == feasible.count
    feasible.mask, feasible.count = left, count


def _in_search_order(candidates: Mask | None, nodes: Snapshot) -> Rows:
    """The candidates, zone by zone in turn. Shapes: candidates bool (n,), None for all; result intp (k,)."""
    order = nodes.search_rows()
    return order if candidates is None else order[candidates[order]]


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
