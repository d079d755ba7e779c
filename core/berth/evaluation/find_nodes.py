"""From a pod to the nodes it fits on, or to the reasons why there are none.

Source: pkg/scheduler/schedule_one.go findNodesThatFitPod, findNodesThatPassFilters, numFeasibleNodesToFind
(Kubernetes v1.36).
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from berth.evaluation.answers import Answers
from berth.evaluation.beside_nominated import filter_with_nominated, turned_down_beside
from berth.evaluation.extending import run_extender_filters
from berth.evaluation.filtering import ask_filters, filter_one
from berth.evaluation.nominated import NominatedPods
from berth.evaluation.pre_filtering import ALL_WELL, PreFilterOutcome
from berth.evaluation.reasons import Numbers
from berth.evaluation.sieve import Sieve, record_rejections
from berth.evaluation.verdicts import Verdicts
from berth.framework.attempt import Attempt
from berth.framework.diagnosis import NO_NODES_AVAILABLE, Diagnosis, FitError
from berth.framework.handle import Nominator
from berth.framework.runtime import Framework
from berth.framework.status import Code, PluginError, Status, failed, unresolvable
from berth.snapshot.columns import Mask, Rows
from berth.snapshot.snapshot import Snapshot

log = logging.getLogger(__name__)

MIN_FEASIBLE_NODES = 100


@dataclass(slots=True)
class Feasible:
    """Where the pod fits. Shapes: mask bool (n,), not to be written to."""

    mask: Mask
    count: int
    evaluated: int
    why_not: "WhyNot"
    settled: bool = False
    """Whether it fits exactly where the settled plugins' verdicts say so."""


class WhyNot:
    """Why the pod does not fit, spelled out on demand.

    Shapes: candidates bool (n,), the rows that Filter plugins had a say in, None for all; why (n,), None
        where the `verdicts` of settled plugins say it all.
    """

    __slots__ = ("_attempt", "_noted", "candidates", "verdicts", "why")

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt
        self._noted: Diagnosis | None = None
        self.candidates: Mask | None = None
        self.verdicts: Verdicts | None = None
        self.why: Numbers | None = None

    @property
    def noted(self) -> Diagnosis:
        """What is known besides the verdicts of Filter plugins."""
        if self._noted is None:
            self._noted = Diagnosis(self._attempt.nodes.names, count=self._attempt.node_count)
        return self._noted

    def diagnosis(self) -> Diagnosis:
        """All of it, once nothing is going to be added any more."""
        diagnosis, verdicts, self.verdicts = self.noted, self.verdicts, None
        if verdicts is None:
            return diagnosis
        if self.why is None and self.candidates is None:
            rejections = verdicts.rejections()
            if rejections is not None:
                diagnosis.record(rejections)
            return diagnosis
        why = verdicts.why if self.why is None else self.why
        among = why if self.candidates is None else np.where(self.candidates, why, 0)
        record_rejections(diagnosis, among, verdicts.reasons)
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

    async def find(self, framework: Framework, attempt: Attempt, answers: Answers) -> Feasible | Status:
        """The feasible nodes, or the status that ends the cycle (a FitError where no node fits).

        The attempt's record counts the nodes that were evaluated, and those of them that fit, in either case.

        Raises: StartOverError where answers have to be begun anew.
        """
        attempt.record.evaluated_count = attempt.record.feasible_count = 0
        if not attempt.node_count:
            error = PluginError(NO_NODES_AVAILABLE)
            return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, error=error)
        answers.begin(attempt)
        pre_filter = ALL_WELL if answers.pre_filtered(attempt.state) else await answers.pre_filter(attempt)
        why_not = WhyNot(attempt)
        if not pre_filter.status.ok:
            return _pre_filter_failed(pre_filter, why_not.noted)
        try:
            return await self._search(framework, attempt, answers, pre_filter, why_not)
        except PluginError as error:
            return failed(error)

    async def _search(
        self,
        framework: Framework,
        attempt: Attempt,
        answers: Answers,
        pre_filter: PreFilterOutcome,
        why_not: WhyNot,
    ) -> Feasible | Status:
        if attempt.pod.nominated_node_name:
            answers.waited = True
            alone = await self._own_nomination(framework, attempt, why_not)
            if alone is not None:
                attempt.record.evaluated_count = attempt.record.feasible_count = 1
                return alone
        candidates = _candidates(attempt, pre_filter, why_not)
        asked = len(attempt.nodes) if candidates is None else int(np.count_nonzero(candidates))
        left = candidates
        if self.nominated.any():
            answers.waited = True
            left = await self._beside_nominated(framework, attempt, candidates, why_not)
        feasible = await _passed(attempt, answers, left, why_not)
        self._sample(framework, feasible, candidates, asked, attempt.nodes)
        attempt.record.evaluated_count = feasible.evaluated
        if framework.extenders:
            answers.waited = True
            await _leave_to_extenders(framework, attempt, feasible, why_not)
        attempt.record.feasible_count = feasible.count
        return feasible if feasible.count else does_not_fit(why_not.diagnosis())

    async def _own_nomination(
        self, framework: Framework, attempt: Attempt, why_not: WhyNot
    ) -> Feasible | None:
        """The pod's own node, where its nomination still holds."""
        row = attempt.nodes.row_of.get(attempt.pod.nominated_node_name)
        if row is None or not attempt.allows(row):
            return None
        if not await self._fits_alone(framework, attempt, row, why_not.noted):
            return None
        return Feasible(_only(row, attempt), 1, 1, why_not)

    async def _fits_alone(
        self, framework: Framework, attempt: Attempt, row: int, diagnosis: Diagnosis
    ) -> bool:
        """Whether the pod fits on that node; the node's status is remembered where it does not."""
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

    async def _beside_nominated(
        self, framework: Framework, attempt: Attempt, candidates: Mask | None, why_not: WhyNot
    ) -> Mask | None:
        """The candidates without nodes that the pod does not fit on beside the pods nominated to them."""
        promised = self.nominated.beside(attempt.pod, attempt.nodes)
        if candidates is not None:
            promised = promised.among(candidates)
        if not promised.rows.size:
            return candidates
        rows = await turned_down_beside(framework, attempt, promised, why_not.noted)
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
            feasible.mask, feasible.count, feasible.settled = mask, wanted, False
        feasible.evaluated = scanned
        self.rotation.start = (self.rotation.start + scanned) % len(nodes)

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
    diagnosis.unschedulable_plugins.update(pre_filter.narrowing)
    return does_not_fit(diagnosis)


def _candidates(attempt: Attempt, pre_filter: PreFilterOutcome, why_not: WhyNot) -> Mask | None:
    """The rows to ask about, None for all of them."""
    if pre_filter.node_names is None:
        if attempt.pod.nominated_node_name:
            why_not.noted.single.clear()
        return None if attempt.within is None else attempt.mask_within()
    mask = np.zeros(len(attempt.nodes), dtype=bool)
    mask[[attempt.nodes.row_of[name] for name in _known(pre_filter.node_names, attempt)]] = True
    diagnosis = why_not.noted
    for row in [row for row in diagnosis.single if mask[row]]:
        del diagnosis.single[row]
    diagnosis.absent = unresolvable(f"node(s) didn't satisfy plugin(s) [{' '.join(pre_filter.narrowing)}]")
    diagnosis.unschedulable_plugins.update(pre_filter.narrowing)
    return mask


async def _passed(attempt: Attempt, answers: Answers, candidates: Mask | None, why_not: WhyNot) -> Feasible:
    """The candidates that all Filter plugins let pass. Shapes: candidates bool (n,), None for all rows."""
    point = attempt.record.begin("Filter")
    try:
        if not answers.refreshed(attempt):
            await answers.refresh(attempt, candidates, point)
        verdicts = answers.verdicts
        why_not.candidates, why_not.verdicts = candidates, verdicts
        unsettled = answers.unsettled
        if unsettled is None or not unsettled.filter:
            if candidates is None or not answers.kept:
                return Feasible(verdicts.fits, verdicts.count, 0, why_not, settled=True)
            mask = verdicts.fits & candidates
        else:
            everywhere = np.ones(len(attempt.nodes), dtype=bool) if candidates is None else candidates
            sieve = Sieve(verdicts.reasons, everywhere, verdicts.why, lasting=False)
            await ask_filters(unsettled.filter, attempt, sieve, point)
            why_not.why, mask = sieve.why, sieve.alive
        count = int(np.count_nonzero(mask))
        return Feasible(mask, count, 0, why_not, settled=count == verdicts.count)
    finally:
        attempt.record.end(point)


async def _leave_to_extenders(
    framework: Framework, attempt: Attempt, feasible: Feasible, why_not: WhyNot
) -> None:
    left = await run_extender_filters(framework.extenders, attempt, feasible.mask, why_not.noted)
    count = int(np.count_nonzero(left))
    feasible.settled &= count == feasible.count
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
