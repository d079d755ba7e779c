"""The plugin itself: its extension points, wired to constraints, filtering, scoring and hints."""

from collections.abc import Hashable

from berth.config.plugin_args import PodTopologySpreadArgs
from berth.framework.attempts.cycle_state import CycleState
from berth.framework.attempts.pacing import paced
from berth.framework.cluster_event import ClusterEventWithHint
from berth.framework.handle import Handle
from berth.framework.interface import (
    CacheKey,
    EnqueueExtensions,
    FilterPlugin,
    MaybeAwaitable,
    NormalizeScorePlugin,
    PreFilterResult,
    PreScorePlugin,
    Reason,
    ReasonCodes,
    Scores,
    VersionedKey,
)
from berth.framework.status import SKIP, SUCCESS, Code, Status, failed
from berth.objects.label_selector import InvalidSelectorError
from berth.objects.pods.pod import Pod
from berth.objects.steps import Steps
from berth.plugins.counted_pods import CountsPods
from berth.plugins.in_tree import InTreePlugin
from berth.plugins.pod_topology_spread.constraints import (
    Action,
    Defaults,
    Inclusion,
    topology_keys,
)
from berth.plugins.pod_topology_spread.filtering import SpreadTallies
from berth.plugins.pod_topology_spread.hints import SpreadHints
from berth.plugins.pod_topology_spread.scoring import SoftSpread, normalized
from berth.plugins.required_affinity import RequiredAffinity
from berth.plugins.tolerance import Tolerance
from berth.snapshot.columns.growing import Mask
from berth.snapshot.pod_info import class_of
from berth.snapshot.snapshot import Snapshot


class PodTopologySpread(
    InTreePlugin,
    CountsPods,
    FilterPlugin,
    PreScorePlugin,
    NormalizeScorePlugin,
    EnqueueExtensions,
):
    """Turn down nodes in domains that have too many pods already; prefer domains with few."""

    counted = SpreadTallies
    reasons = (
        Reason(
            "node(s) didn't match pod topology spread constraints (missing required label)",
            Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
        ),
        Reason("node(s) didn't match pod topology spread constraints"),
    )

    def __init__(self, args: PodTopologySpreadArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._defaults = Defaults(args, handle)
        self._tolerance = Tolerance(handle)
        self._hints = SpreadHints(lambda pod: self._defaults.effective(pod, Action.HARD))

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Snapshot) -> MaybeAwaitable[PreFilterResult]:
        """Count pods by domain; without hard constraints there is nothing to filter."""
        return paced(state.meter, self.name, self._counted(state, pod, nodes))

    def _counted(self, state: CycleState, pod: Pod, nodes: Snapshot) -> Steps[PreFilterResult]:
        try:
            constraints = yield from self._defaults.in_steps(pod, Action.HARD)
        except InvalidSelectorError as error:
            return PreFilterResult(failed(f"get constraints from pod: {error}"))
        if not constraints:
            return PreFilterResult(SKIP)
        spread = SpreadTallies(pod, constraints, self._inclusion(pod, topology_keys(constraints)))
        yield from spread.count(nodes)
        state.write(SpreadTallies, spread)
        return PreFilterResult()

    def filter(self, state: CycleState, pod: Pod, nodes: Snapshot) -> ReasonCodes:
        """Answer 1 where a label is missing, 2 where the pod would skew its domain too far."""
        del pod
        return state.read(SpreadTallies).codes(nodes)

    def pre_score(
        self, state: CycleState, pod: Pod, nodes: Snapshot, feasible: Mask
    ) -> MaybeAwaitable[Status]:
        """Count pods by domain of the feasible nodes; without soft constraints there is nothing to score."""
        return paced(state.meter, self.name, self._added_up(state, pod, nodes, feasible))

    def _added_up(self, state: CycleState, pod: Pod, nodes: Snapshot, feasible: Mask) -> Steps[Status]:
        try:
            constraints = yield from self._defaults.in_steps(pod, Action.SOFT)
        except InvalidSelectorError as error:
            return failed(f"get constraints from pod: {error}")
        if not constraints or not len(nodes):
            return SKIP
        # Only the built-in defaults put up with nodes that lack a label: not every cluster has zones.
        require_all = bool(pod.spec.topology_spread_constraints) or self._defaults.listed
        needed = topology_keys(constraints) if require_all else frozenset()
        spread = SoftSpread(self._inclusion(pod, needed), nodes, feasible)
        yield from spread.add_all(constraints)
        state.write(SoftSpread, spread)
        return SUCCESS

    def score(self, state: CycleState, pod: Pod, nodes: Snapshot) -> Scores:
        """How many pods each node's domains have, weighed by the number of domains; fewer is better."""
        del pod, nodes
        return state.read(SoftSpread).scores()

    def normalize_score(self, state: CycleState, pod: Pod, scores: Scores) -> Scores:
        """Turn the counts around."""
        del pod
        return normalized(scores, state.read(SoftSpread).ignored)

    def sign_pod(self, pod: Pod) -> Hashable | None:
        """Who counts for its constraints or its siblings' services and owners, and which nodes count."""
        try:
            own = self._own(pod)
        except InvalidSelectorError:
            return None
        return (
            pod.template.derived(class_of),
            own,
            pod.metadata.owner_references,
            RequiredAffinity.of(pod),
            pod.spec.tolerations,
        )

    def cache_key(self, state: CycleState, pod: Pod, nodes: Snapshot) -> CacheKey | None:
        """Nothing for pods without any constraint."""
        del state
        return VersionedKey((), self._version, nodes) if self._defaults.none_for(pod) else None

    def _version(self, nodes: Snapshot) -> Hashable:
        """Of services and controllers."""
        del nodes
        return self._defaults.generation

    def _own(self, pod: Pod) -> Hashable:
        if not pod.spec.topology_spread_constraints:
            return ()
        return self._defaults.effective(pod, Action.HARD), self._defaults.effective(pod, Action.SOFT)

    def events_to_register(self) -> list[ClusterEventWithHint]:
        """Pods and nodes that come, go, or change what is counted."""
        return self._hints.registrations()

    def _inclusion(self, pod: Pod, keys: frozenset[str]) -> Inclusion:
        everything = self.handle.rules.empty_selectors_match_all
        return Inclusion(pod, RequiredAffinity.of(pod), self._tolerance, keys, everything)
