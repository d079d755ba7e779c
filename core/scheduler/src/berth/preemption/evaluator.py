"""Preemption for one profile: from a pod that fits nowhere to a nominated node and evictions on their way.

    DefaultPreemption.post_filter -> eligible? -> candidates -> extenders -> the best of them -> Evictions
                                                                      |
                                            failure handling <- nomination

The evaluator stands above plugins and reaches them through `Handle.preemption`, so that a plugin of any kind
can ask for it and none has to import it.

Source: pkg/scheduler/framework/preemption/preemption.go Preempt (Kubernetes v1.36).
"""

from collections.abc import Mapping, Sequence

import msgspec

from berth.evaluation.nominated_rows import NominatedPods
from berth.evaluation.points.extending import run_extender_preemption
from berth.framework.attempts.attempt import Attempt
from berth.framework.attempts.cycle_record import CycleRecord
from berth.framework.attempts.diagnosis import FitError
from berth.framework.extender import Victims
from berth.framework.extender_binding import interested
from berth.framework.handle import Handle
from berth.framework.interface import (
    CLEAR_NOMINATION,
    NominatingInfo,
    NominatingMode,
    PodGroupPostFilterResult,
    PostFilterResult,
)
from berth.framework.preempting import GroupPreemptionRequest, PreemptionRequest
from berth.framework.runtime import Framework
from berth.framework.status import SUCCESS, Code, PluginError, Status, failed, unschedulable
from berth.objects.pods.pod import Pod
from berth.preemption.candidates import Candidate, best_candidates
from berth.preemption.departures import Departures
from berth.preemption.dry_run import NO_VICTIMS, DryRun
from berth.preemption.eligibility import why_not_eligible
from berth.preemption.eviction import PreemptionEvictions
from berth.preemption.group_preemption import GroupPreemption
from berth.preemption.group_proposals import GroupProposals
from berth.preemption.preemption_metrics import PreemptionMetrics
from berth.preemption.preemptor import alone
from berth.preemption.proposed import ProposedPreemption, fits_without
from berth.preemption.screening import Screening
from berth.preemption.search import Candidates, find_candidates
from berth.preemption.victims import CompiledBudgets, Seniority
from berth.preemption.whole_groups import WholeGroups
from berth.snapshot.pod_info import PodInfo

GENERIC_WORKLOAD = "GenericWorkload"
END_OF_TIME = 253402300799.0
"""9999-12-31T23:59:59Z, later than any pod starts. Units: seconds since the epoch."""


class Evaluator:
    """Implements berth.framework.preempting.Preemption.

    `frameworks` has the profile's own plugins by scheduler name once they are made, for simulated cycles.
    """

    def __init__(
        self,
        handle: Handle,
        frameworks: Mapping[str, Framework],
        *,
        screening: Screening | None = None,
        departures: Departures | None = None,
        metrics: PreemptionMetrics | None = None,
    ) -> None:
        self._handle = handle
        self._frameworks = frameworks
        self._metrics = metrics or PreemptionMetrics()
        self._screening = screening or Screening()
        rules = handle.rules
        self._budgets = CompiledBudgets(
            handle.listers.pod_disruption_budgets, empty_matches_all=rules.empty_selectors_match_all
        )
        self._says_what_it_found = rules.preemption_says_what_it_found
        self._unstarted_are_youngest = rules.unstarted_pods_are_the_youngest
        self._ties_by_uid = rules.smaller_uids_are_more_important
        self._trees_first = rules.trees_are_more_important
        self._nominated = NominatedPods(handle.nominator)
        self._evictions = PreemptionEvictions(handle, self._metrics, departures or Departures())

    @property
    def _framework(self) -> Framework:
        return self._frameworks[self._handle.profile_name]

    def seniority(self) -> Seniority:
        """Which victims of equal priority are more important."""
        unstarted = END_OF_TIME if self._unstarted_are_youngest else self._handle.clock.wall()
        return Seniority(unstarted, ties_by_uid=self._ties_by_uid, trees_first=self._trees_first)

    def attempted(self) -> None:
        """Count an attempt, whatever comes of it."""
        self._metrics.attempted()

    def running(self, uid: str) -> bool:
        """Whether evictions for the pod or pod group of that UID are still on their way."""
        return self._evictions.running(uid)

    async def preempt_for_group(self, request: GroupPreemptionRequest) -> PodGroupPostFilterResult:
        """Have victims evicted so that the whole group fits, or say why not."""
        preemption = GroupPreemption(
            self._handle, self._budgets, self.seniority(), self._evictions, self._metrics
        )
        result = await preemption.run(request)
        self._metrics.attempted_for_group(str(result.status.code))
        return result

    async def evict_for_group(
        self, request: GroupPreemptionRequest, proposals: Sequence[Sequence[PodInfo]]
    ) -> PodGroupPostFilterResult:
        """Have the first of these sets of victims evicted without which the group fits."""
        result = await GroupProposals(self._handle, self._evictions).run(request, proposals)
        self._metrics.attempted_for_group(str(result.status.code))
        return result

    async def preempt(self, request: PreemptionRequest) -> PostFilterResult:
        """Nominate a node and have its victims evicted, or say why not."""
        pod = self._handle.known(request.pod)
        if pod is None:
            return PostFilterResult(failed(f'pod "{request.pod.name}" not found'))
        request = msgspec.structs.replace(request, pod=pod)
        promised = self._handle.nominator.node_of(pod.uid)
        reason = why_not_eligible(pod, self._handle.snapshot, request.diagnosis, promised)
        if reason:
            return PostFilterResult(unschedulable(reason))
        if not len(self._handle.snapshot):
            return PostFilterResult(failed("no nodes available"))
        started = self._handle.clock.monotonic()
        found = await self._evaluate(request)
        code = found.status.code if isinstance(found, PostFilterResult) else Code.SUCCESS
        self._metrics.evaluated(alone(pod).kind, str(code), self._handle.clock.monotonic() - started)
        if isinstance(found, PostFilterResult):
            return found
        return await self._nominate(request.plugin, pod, found)

    async def _evaluate(self, request: PreemptionRequest) -> Candidate | PostFilterResult:
        """The node to be nominated with its victims, or why there is none."""
        candidates = await self.candidates(request)
        return await self._choose(request, candidates) if candidates.found else _none_found(candidates)

    async def candidates(self, request: PreemptionRequest) -> Candidates:
        """The nodes that could become free for the pod, as far as it takes to choose one of them."""
        return await find_candidates(
            self._for_extenders(self.dry_run(request)),
            request.diagnosis,
            self._handle.random,
            percentage=request.min_candidate_nodes_percentage,
            absolute=request.min_candidate_nodes_absolute,
        )

    def dry_run(self, request: PreemptionRequest) -> DryRun:
        """What tries the pod on nodes of the current snapshot."""
        handle, pod, attempt = self._handle, request.pod, self._attempt(request)
        beneath = self._screening.beneath(pod.priority, handle.snapshot)
        nominated = self._nominated.beside(pod, handle.snapshot)
        seniority, whole = self.seniority(), self._whole_groups()
        return DryRun(self._framework, attempt, beneath, self._budgets, nominated, seniority, whole)

    def _for_extenders(self, dry_run: DryRun) -> DryRun:
        """The same, with candidates for which extenders name all victims where the release has these."""
        if not self._handle.rules.extenders_may_name_all_victims:
            return dry_run
        asked = interested(self._framework.extenders, dry_run.attempt.pod, lambda extender: extender.preempts)
        if any(asked):
            return msgspec.structs.replace(dry_run, without_evictions=lambda name: Candidate(name, ()))
        return msgspec.structs.replace(dry_run, without_evictions=lambda _: NO_VICTIMS)

    def _whole_groups(self) -> WholeGroups | None:
        handle = self._handle
        if not handle.rules.pods_evict_whole_groups or not handle.feature_enabled(GENERIC_WORKLOAD):
            return None
        return WholeGroups(handle.listers.trees, handle.pod_groups)

    def _attempt(self, request: PreemptionRequest) -> Attempt:
        """An attempt with a record of its own, which is dropped: simulations are no part of the cycle's."""
        record = CycleRecord(request.pod, self._handle.profile_name, 0, b"", b"", 0, 0, 0)
        return Attempt(request.pod, self._handle.snapshot, request.state, record)

    async def _choose(
        self, request: PreemptionRequest, candidates: Candidates
    ) -> Candidate | PostFilterResult:
        try:
            left = await self._left_by_extenders(request, candidates.found)
        except PluginError as error:
            return PostFilterResult(failed(error))
        best = best_candidates(left, self.seniority())
        if not best:
            return PostFilterResult(unschedulable("no candidate node for preemption"))
        return best[self._handle.random.randrange(len(best))]

    async def evict(
        self, request: PreemptionRequest, node_name: str, victims: Sequence[Pod]
    ) -> PostFilterResult:
        """Nominate that node and have these victims evicted, whom the plugin chose itself.

        None of them is, unless all other Filter plugins let the pod on the node without them.
        """
        pod, attempt = request.pod, self._attempt(request)
        nominated = self._nominated.beside(pod, self._handle.snapshot)
        leaving = self._evictions.is_on_its_way
        proposed = ProposedPreemption(request.plugin, node_name, victims, leaving)
        status = await fits_without(self._framework, attempt, nominated, proposed)
        if not status.ok:
            return PostFilterResult(_would_not_fit(request.plugin, node_name, status))
        return await self._nominate(request.plugin, pod, Candidate(node_name, tuple(victims), 0))

    async def _left_by_extenders(
        self, request: PreemptionRequest, candidates: list[Candidate]
    ) -> list[Candidate]:
        """The candidates that extenders leave, with the victims that they choose. Raises: PluginError."""
        extenders = self._framework.extenders
        if not extenders:
            return candidates
        victims = {one.node_name: Victims(one.victims, one.pdb_violations) for one in candidates}
        left = await run_extender_preemption(extenders, self._attempt(request), victims)
        return [Candidate(name, one.pods, one.pdb_violations) for name, one in left.items()]

    async def _nominate(self, plugin: str, pod: Pod, chosen: Candidate) -> PostFilterResult:
        """Start the evictions, or make them at once; the node is the pod's if none of them failed."""
        status = await self._evictions.evict_for(plugin, alone(pod), chosen)
        if not status.ok:
            return PostFilterResult(status)
        found = Status(Code.SUCCESS, (_found(chosen),)) if self._says_what_it_found else SUCCESS
        return PostFilterResult(found, NominatingInfo(NominatingMode.OVERRIDE, chosen.node_name))


def _found(chosen: Candidate) -> str:
    victims = f"preempting {len(chosen.victims)} victims"
    return f"preemption: found a potential placement for pod on node {chosen.node_name}, {victims}"


def _would_not_fit(plugin: str, node_name: str, status: Status) -> Status:
    text = f"plugin {plugin} would evict pods for node {node_name}, where the pod would not fit without them"
    return unschedulable(f"{text}: {status.message}")


def _none_found(candidates: Candidates) -> PostFilterResult:
    errors = list(dict.fromkeys(candidates.errors))
    if errors:
        return PostFilterResult(failed(errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"))
    text = str(FitError(candidates.diagnosis, len(candidates.diagnosis.node_names)))
    return PostFilterResult(unschedulable(text), CLEAR_NOMINATION)
