"""JointPlacement: the best nodes for all pods of a group together, by a mixed-integer program.

Berth's own; off unless a profile enables it. Source: docs/decisions/0033-joint-placement.md.
"""

import logging
from collections.abc import Hashable, Iterable, Sequence
from itertools import islice

from berth.config.plugin_args import JointPlacementArgs
from berth.framework.attempts.cycle_state import CycleState
from berth.framework.group_plans import GroupPlan, PlanningGround, PodGroupPlanPlugin, TriedPlan
from berth.framework.handle import Handle
from berth.framework.interface import PreFilterPlugin, PreFilterResult
from berth.framework.status import SKIP
from berth.objects.pods.pod import Pod
from berth.plugins.in_tree import InTreePlugin
from berth.plugins.joint_placement.candidates import focused
from berth.plugins.joint_placement.improving import PlanTrials
from berth.plugins.joint_placement.looking import seen_alone
from berth.plugins.joint_placement.model import Counts, Model, PodKind
from berth.plugins.joint_placement.proposing import as_plan, counted
from berth.plugins.joint_placement.rules import Apart, Rule, RuleReader
from berth.plugins.joint_placement.solving import SearchBounds, Solver
from berth.snapshot.snapshot import Snapshot

log = logging.getLogger(__name__)

MAX_RULES = 256
"""A group whose members require more of each other is placed one by one."""
MAX_ATTEMPTS = 256
"""No other plan is tried once pods were tried so often: a plan of 64 pods, and moves of some of them."""


class JointPlacement(InTreePlugin, PreFilterPlugin, PodGroupPlanPlugin):
    """Plan pod groups as a whole; a pod that its group's plan names a node for goes there."""

    def __init__(self, args: JointPlacementArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._args = args
        self._solver = Solver()
        self._rules = RuleReader(handle)

    @property
    def max_pods(self) -> int:
        """As configured."""
        return self._args.max_pods

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Snapshot) -> PreFilterResult:
        """Narrow the nodes to the one that the plan names."""
        del nodes
        name = _planned(state, pod)
        return PreFilterResult(SKIP) if name is None else PreFilterResult(node_names=frozenset((name,)))

    def sign_pod(self, pod: Pod) -> Hashable:
        """Nothing is read of the pod itself."""
        del pod
        return ()

    def cache_key(self, state: CycleState, pod: Pod, nodes: Snapshot) -> Hashable:
        """The node that the plan names."""
        del nodes
        return (_planned(state, pod),)

    async def plan(self, pods: Sequence[Pod], start: TriedPlan, ground: PlanningGround) -> TriedPlan | None:
        """The better of what the solver finds and the start, improved by single moves."""
        try:
            alike = self._rules.kinds(pods)
            firsts = [kind[0] for kind in alike]
            rules = list(islice(self._rules.rules(firsts, ground.nodes), MAX_RULES + 1))
        except ValueError:
            return None  # a selector that does not parse: its plugin says so, pod by pod
        if len(rules) > MAX_RULES:
            log.warning("pod group has too many rules to be planned pod=%s limit=%s", pods[0].key, MAX_RULES)
            return None
        begun = counted(alike, start.plan.node_of, ground.nodes)
        kinds = await seen_alone(alike, rules, begun, ground)
        ground.leave_out(_uids(kind.pods for kind in kinds if not kind.rows.size), _followers(kinds, rules))
        trials = PlanTrials(ground, start, MAX_ATTEMPTS)
        for among in (kinds, *focused(kinds, rules)):
            counts = self._solved(among, rules, begun, ground)
            if counts and counts != begun:
                await trials.tries(as_plan(pods, kinds, counts, rules, ground.nodes))
        await trials.improve(kinds)
        return None if trials.best is start else trials.best

    def _solved(
        self, kinds: Sequence[PodKind], rules: Sequence[Rule], start: Counts, ground: PlanningGround
    ) -> Counts | None:
        model = Model.of(kinds, rules, ground.nodes)
        bounds = SearchBounds(
            self._args.max_branches, min(self._args.time_limit.seconds, ground.seconds_left)
        )
        values = self._solver.solve(model.program, model.values(start), bounds)
        return None if values is None else model.counts(values)


def _followers(kinds: Sequence[PodKind], rules: Iterable[Rule]) -> frozenset[str]:
    """Pods that are to be near others or even with them, and may fit only once these are placed."""
    return _uids(kinds[rule.kind].pods for rule in rules if not isinstance(rule, Apart))


def _uids(pods: Iterable[Iterable[Pod]]) -> frozenset[str]:
    return frozenset(pod.uid for each in pods for pod in each)


def _planned(state: CycleState, pod: Pod) -> str | None:
    plan: GroupPlan | None = state.get(GroupPlan)
    return None if plan is None else plan.node_of.get(pod.uid)
