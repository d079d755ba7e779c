"""Explains pods: finds one, says where it stands, tries it on every node, and looks for what would help.

Nothing is held, written or requeued. Between two trials the scheduling loop has its turn.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from itertools import count

import msgspec

from berth.cache.cache import Cache
from berth.cycle.budgets import CycleBudgets
from berth.explain.attempt_log import AttemptLog, AttemptSummary
from berth.explain.causes import cause_and_remedy
from berth.explain.grouping import nodes_of
from berth.explain.lacking_claims import lacking
from berth.explain.loop_turn import LoopTurn
from berth.explain.more_priority import MorePriority
from berth.explain.pod_states import PodStates
from berth.explain.proposals import ProposalSearch, Proposed, by_row
from berth.explain.schema import Explanation, NodeVerdicts, PastAttempt, PodState, StateKind, rfc3339
from berth.explain.trying import PodTrial, Trying, Verdict, in_other_processes, unplaced
from berth.framework.attempts.cycle_budget import CycleMeter, OverBudgetError
from berth.framework.mirrors.listers import Listers
from berth.framework.mirrors.store import Store
from berth.framework.runtime import Framework
from berth.objects.pods.pod import Pod
from berth.preemption.evaluator import Evaluator
from berth.snapshot.snapshot import Snapshot

MAX_MESSAGE = 4096
NODES_IN_A_STEP = 64

Watched = Callable[[str, str], Pod | None]
"""(namespace, name) -> the pod as the watch last brought it, whichever scheduler it names."""


class UnknownPodError(LookupError):
    """The scheduler knows no pod of that name; says where it looked."""


class ExplainOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What an explanation is to have besides the ordinary."""

    all_reasons: bool = False
    """Every plugin that turns a node down, and not only the first."""
    proposals: bool = True
    """What would make the pod fit."""
    wide: bool = False
    """More of the nodes' names."""


ORDINARY = ExplainOptions()
NOTHING = Proposed([])


class Explainer(msgspec.Struct, frozen=True, kw_only=True):
    """Answers between two turns of the scheduling loop (`turn` is the loop's, for one question).

    `unassigned` are the pods on no node that are ours, `watched` finds any other; `snapshot` is the loop's.
    """

    states: PodStates
    trying: Trying
    cache: Cache
    snapshot: Snapshot
    unassigned: Store[Pod]
    watched: Watched
    frameworks: Mapping[str, Framework]
    evaluators: Callable[[str], Evaluator | None]
    """Preemption by profile."""
    budgets: CycleBudgets
    attempts: AttemptLog
    listers: Listers
    turn: LoopTurn
    release: str = ""
    """Of Kubernetes, whose kube-scheduler is followed."""

    async def explain(self, namespace: str, name: str, wanted: ExplainOptions = ORDINARY) -> Explanation:
        """What is known of the pod. Raises: UnknownPodError."""
        async with self.turn:
            pod = self._find(namespace, name)
            if pod is None:
                return self._gone(f"{namespace}/{name}")
            state = self.states.of(pod)
            framework = self.frameworks.get(pod.spec.scheduler_name)
            found = None if framework is None else await self._tried(framework, pod, wanted)
        proposed = NOTHING
        if framework is not None and found is not None and wanted.proposals and not pod.node_name:
            proposed = await self.proposed(framework, pod, found)
        return self._explanation(pod, state, found, proposed, wanted)

    def _explanation(
        self,
        pod: Pod,
        state: PodState,
        found: "EngineFindings | None",
        proposed: Proposed,
        wanted: ExplainOptions,
    ) -> Explanation:
        nodes = None if found is None else found.shown(pod, all_reasons=wanted.all_reasons, wide=wanted.wide)
        past = [past_attempt(attempt) for attempt in self.attempts.of(pod.uid)]
        last_message = past[-1].message if past else ""
        lacks = lacking(pod, self.listers)
        cause, remedy = cause_and_remedy(pod, state, nodes, proposed.proposals, last_message, lacks=lacks)
        return Explanation(
            pod=pod.key,
            uid=pod.uid,
            profile=pod.spec.scheduler_name,
            release=self.release,
            cause=cause,
            remedy=remedy,
            state=state,
            attempts=past,
            nodes=nodes,
            proposals=proposed.proposals,
            proposals_cut_short=proposed.cut_short,
        )

    async def proposed(self, framework: Framework, pod: Pod, found: "EngineFindings") -> Proposed:
        """What would make the pod fit; the loop's lock is taken for one trial at a time."""
        tried, every = found.tried, found.every
        if tried is None or tried.broken or every is None or tried.fits.any():
            return NOTHING
        evaluator = self.evaluators(framework.profile_name)
        pod, priority = unplaced(pod), None
        if evaluator is not None:
            priority = MorePriority(self.trying, framework, evaluator, pod, self.snapshot)
        search = ProposalSearch(
            trying=self.trying,
            framework=framework,
            pod=pod,
            nodes=found.nodes,
            meter=found.meter,
            turn=self.turn,
            against=by_row(list(tried.against), every, in_other_processes(framework)),
            listers=self.listers,
            priority=priority,
        )
        return await search.run()

    def _find(self, namespace: str, name: str) -> Pod | None:
        """The pod; one on its way to a node as the cache assumes it, although the watch has it on none."""
        return (
            self.cache.find_pod(namespace, name)
            or self.unassigned.get(name, namespace)
            or self.watched(namespace, name)
        )

    def _gone(self, key: str) -> Explanation:
        tried = self.attempts.named(key)
        if tried is None:
            raise UnknownPodError(
                f"no pod {key} is known: there is none in the cluster, or it has finished, and none was "
                "tried lately; check the namespace (-n) and the name"
            )
        state = PodState(kind=StateKind.GONE)
        cause = "The pod is gone: it was deleted or has finished since it was tried."
        return Explanation(
            pod=key,
            uid=tried.uid,
            profile=tried.profile,
            cause=cause,
            state=state,
            attempts=[past_attempt(attempt) for attempt in tried.attempts],
        )

    async def _tried(self, framework: Framework, pod: Pod, wanted: ExplainOptions) -> "EngineFindings":
        # Sidecars are asked about the nodes of this one; it is to have them all.
        self.cache.update_snapshot(self.snapshot)
        with interrupted(self.turn, framework):
            nodes = await self.fresh(without=pod.uid)
        meter = self.meter(pod.namespace, len(nodes))
        try:
            return await meter.timed(self.on_all(framework, pod, nodes, meter, wanted))
        except OverBudgetError as error:
            return EngineFindings(nodes, meter, None, None, str(error))

    def meter(self, namespace: str, nodes: int) -> CycleMeter:
        """The meter of a question about so many nodes, which breathes by the turn."""
        meter = self.budgets.look(namespace, nodes)
        meter.breathe = self.turn.breathe
        return meter

    async def fresh(self, without: str = "") -> Snapshot:
        """A snapshot of one's own, as the cache is now, the pod of that UID left out."""
        steps = self.cache.fresh_snapshot_in_steps(without=without)
        try:
            for number in count(1):
                next(steps)
                if number % NODES_IN_A_STEP == 0:
                    await self.turn.breathe()
        except StopIteration as end:
            nodes: Snapshot = end.value
        return nodes

    async def on_all(
        self, framework: Framework, pod: Pod, nodes: Snapshot, meter: CycleMeter, wanted: ExplainOptions
    ) -> "EngineFindings":
        """The pod tried on these nodes, a snapshot of one's own. Raises: OverBudgetError."""
        with interrupted(self.turn, framework):
            tried = await self.trying.tried(framework, pod, nodes, meter)
            every = None
            if not tried.broken and not tried.fits.all() and (wanted.all_reasons or wanted.proposals):
                every = await self.trying.by_plugin(framework, pod, nodes, meter)
        return EngineFindings(nodes, meter, tried, every)


def interrupted(turn: LoopTurn, framework: Framework) -> AbstractContextManager[None]:
    """Within this context pods that wait go first, unless others than this process are asked as well.

    What these know follows the loop's objects: their answers would be about other nodes by then.
    """
    remote = framework.extenders or in_other_processes(framework)
    return nullcontext() if remote else turn.interruptible()


class EngineFindings(msgspec.Struct, frozen=True):
    """What the engine found; `tried` is None where it cost too much, and `message` says so."""

    nodes: Snapshot
    meter: CycleMeter
    tried: PodTrial | None
    every: list[dict[int, Verdict]] | None
    message: str = ""

    def shown(self, pod: Pod, *, all_reasons: bool, wide: bool) -> NodeVerdicts:
        """The same in the form of the answer."""
        if self.tried is None:
            return NodeVerdicts(total=len(self.nodes), feasible=0, message=self.message)
        return nodes_of(self.tried, self.every if all_reasons else None, pod.node_name, wide=wide)


def past_attempt(attempt: AttemptSummary) -> PastAttempt:
    """An attempt in the form of the answer."""
    return PastAttempt(
        attempt=attempt.attempt,
        result=attempt.result,
        started_at=rfc3339(attempt.started_at),
        node=attempt.node,
        score=attempt.score,
        message=attempt.message[:MAX_MESSAGE],
        rejected_by=list(attempt.rejected_by),
        ignored=list(attempt.ignored),
        feasible_nodes=attempt.feasible_nodes,
        evaluated_nodes=attempt.evaluated_nodes,
        not_evaluated=attempt.not_evaluated,
        queued_milliseconds=round(attempt.queued_milliseconds, 3),
        cycle_milliseconds=round(attempt.cycle_milliseconds, 3),
        total_milliseconds=round(attempt.total_milliseconds, 3),
        trace_id=attempt.trace_id,
    )
