"""The plugin itself: its extension points, wired to terms, filtering, scoring and hints."""

from collections.abc import Hashable

from berth.config.plugin_args import InterPodAffinityArgs
from berth.framework.attempts.cycle_state import CycleState
from berth.framework.attempts.pacing import paced
from berth.framework.cluster_event import ClusterEventWithHint
from berth.framework.handle import Handle
from berth.framework.interface import (
    NO_ROW_FORM,
    CacheKey,
    EnqueueExtensions,
    FilterPlugin,
    MaybeAwaitable,
    NormalizedBy,
    NormalizeScorePlugin,
    PreFilterResult,
    PreScorePlugin,
    Reason,
    ReasonCodes,
    RowForm,
    Scores,
    VersionedKey,
)
from berth.framework.status import SKIP, SUCCESS, Code, Status, failed, unresolvable
from berth.objects.pods.pod import Pod
from berth.objects.steps import Steps
from berth.plugins.counted_pods import CountsPods
from berth.plugins.in_tree import InTreePlugin
from berth.plugins.inter_pod_affinity.filtering import Neighbours
from berth.plugins.inter_pod_affinity.hints import AffinityHints
from berth.plugins.inter_pod_affinity.scoring import Preferences, normalized
from berth.plugins.inter_pod_affinity.terms import (
    OwnTerms,
    OwnTermsReader,
    TermsAbout,
    UnparsableTermError,
    has_terms,
)
from berth.snapshot.affinity_terms import TermKind, held_terms
from berth.snapshot.columns.growing import Mask
from berth.snapshot.pod_info import class_of
from berth.snapshot.snapshot import Snapshot


class InterPodAffinity(
    InTreePlugin,
    CountsPods,
    FilterPlugin,
    PreScorePlugin,
    NormalizeScorePlugin,
    EnqueueExtensions,
):
    """Turn down nodes by required terms of both sides; prefer nodes by preferred ones."""

    counted = Neighbours
    reasons = (
        Reason("node(s) didn't match pod affinity rules", Code.UNSCHEDULABLE_AND_UNRESOLVABLE),
        Reason("node(s) didn't match pod anti-affinity rules"),
        Reason("node(s) didn't satisfy existing pods anti-affinity rules"),
    )

    def __init__(self, args: InterPodAffinityArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._hard_weight = args.hard_pod_affinity_weight
        self._ignore_others = args.ignore_preferred_terms_of_existing_pods
        self._listers = handle.listers
        self._own_terms = OwnTermsReader(handle.listers)
        self._terms_about = TermsAbout(handle.listers)
        self._hints = AffinityHints(handle, self._terms_about)

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Snapshot) -> MaybeAwaitable[PreFilterResult]:
        """Count pods by domain; where no pod objects there is nothing to filter."""
        return paced(state.meter, self.name, self._counted(state, pod, nodes))

    def _counted(self, state: CycleState, pod: Pod, nodes: Snapshot) -> Steps[PreFilterResult]:
        try:
            terms = yield from self._own_terms.read(pod)
        except UnparsableTermError as error:
            return PreFilterResult(unresolvable(str(error)))
        state.write(OwnTerms, terms)
        neighbours = Neighbours(pod, terms, self._listers.namespace_labels(pod.namespace))
        yield from neighbours.count(nodes, (yield from self._terms_about.find(pod, nodes, state.meter)))
        if neighbours.idle:
            return PreFilterResult(SKIP)
        state.write(Neighbours, neighbours)
        return PreFilterResult()

    def filter(self, state: CycleState, pod: Pod, nodes: Snapshot) -> ReasonCodes:
        """Answer 1 for affinity, 2 for the pod's anti-affinity, 3 for placed pods' anti-affinity."""
        del pod
        return state.read(Neighbours).codes(nodes)

    def filter_by_row(self, state: CycleState, pod: Pod, nodes: Snapshot) -> RowForm[ReasonCodes]:
        """Whether placed pods' anti-affinity keeps the pod away; only for pods without terms of their own."""
        if has_terms(pod):
            return NO_ROW_FORM
        neighbours = state.read(Neighbours)
        return RowForm(neighbours.unwilling_at(nodes), neighbours.unwilling_on(nodes))

    def room(self, state: CycleState, pod: Pod, nodes: Snapshot, most: int) -> int | None:
        """No limit for pods without terms of their own, whom other such pods do not concern."""
        del state, nodes
        return None if has_terms(pod) else most

    def pre_score(
        self, state: CycleState, pod: Pod, nodes: Snapshot, feasible: Mask
    ) -> MaybeAwaitable[Status]:
        """Add up the weights by domain; where no pod counts there is nothing to score."""
        del feasible
        return paced(state.meter, self.name, self._added_up(state, pod, nodes))

    def _added_up(self, state: CycleState, pod: Pod, nodes: Snapshot) -> Steps[Status]:
        try:
            terms = state.get(OwnTerms) or (yield from self._own_terms.read(pod))
        except UnparsableTermError as error:
            return failed(str(error))
        if self._ignore_others and not terms.preferred:
            return SKIP
        preferences = Preferences()
        yield from preferences.add_own(terms.preferred, nodes)
        about = yield from self._terms_about.find(pod, nodes, state.meter)
        yield from preferences.add_held(about, self._hard_weight, nodes)
        if not preferences.any:
            return SKIP
        state.write(Preferences, preferences)
        return SUCCESS

    def score(self, state: CycleState, pod: Pod, nodes: Snapshot) -> Scores:
        """The sum of weights; may be negative."""
        del pod
        return state.read(Preferences).scores(nodes)

    def score_by_row(self, state: CycleState, pod: Pod, nodes: Snapshot) -> RowForm[Scores]:
        """The sum of weights; only for pods without terms of their own."""
        if has_terms(pod):
            return NO_ROW_FORM
        preferences = state.read(Preferences)
        return RowForm(preferences.score_at(nodes), preferences.scores_on(nodes))

    def normalized_by(self, state: CycleState) -> NormalizedBy:
        """The lowest and the highest score."""
        del state
        return NormalizedBy.EXTREMES

    def normalize_score(self, state: CycleState, pod: Pod, scores: Scores) -> Scores:
        """Stretch the scores to 0 to 100."""
        del state, pod
        return normalized(scores)

    def sign_pod(self, pod: Pod) -> Hashable | None:
        """Its terms, and what other pods' terms see of it."""
        try:
            held = tuple(held_terms(pod, kind) for kind in TermKind) if has_terms(pod) else ()
        except ValueError:
            return None
        return pod.template.derived(class_of), held

    def cache_key(self, state: CycleState, pod: Pod, nodes: Snapshot) -> CacheKey | None:
        """Who holds the terms that mean the pod; None for a pod that has terms: these count any pods."""
        del state
        if has_terms(pod):
            return None
        about = self._terms_about.known(pod, nodes)
        if about is None:
            return None  # Answering works it out, so that the next pod has a key.
        version = nodes.placed.terms.version
        held_by = tuple([version(held) for weights in about.values() for held in weights])
        return VersionedKey(held_by, self._version, nodes)

    def _version(self, nodes: Snapshot) -> Hashable:
        """Of who holds terms, and of namespaces' labels."""
        return nodes.placed.terms.generation, self._listers.namespaces.generation

    def events_to_register(self) -> list[ClusterEventWithHint]:
        """Pods, nodes and namespaces that come, go or change labels."""
        return self._hints.registrations()
