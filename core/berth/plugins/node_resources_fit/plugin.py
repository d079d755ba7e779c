"""The plugin itself: its extension points, wired to filtering, scoring and hints."""

from collections.abc import Hashable
from dataclasses import dataclass

from berth.config.plugin_args import NodeResourcesFitArgs
from berth.framework.cluster_event import ClusterEventWithHint
from berth.framework.cycle_state import CycleState
from berth.framework.handle import Handle
from berth.framework.interface import (
    Depends,
    EnqueueExtensions,
    FilterPlugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    ReasonCodes,
    ScorePlugin,
    Scores,
)
from berth.framework.status import SUCCESS, Code, Status
from berth.objects.pod import Pod
from berth.objects.pod_requests import NON_ZERO_DEFAULTS, Units, fit_requests, in_units, pod_requests
from berth.plugins.in_tree import InTreePlugin
from berth.plugins.node_resources_fit.filtering import Fit, IgnoredResources
from berth.plugins.node_resources_fit.hints import registrations
from berth.plugins.node_resources_fit.scoring import scorer
from berth.snapshot.columns import Mask
from berth.snapshot.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class ScoredRequest:
    """What scoring takes the pod to request."""

    amounts: Units


class NodeResourcesFit(
    InTreePlugin, PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin, EnqueueExtensions
):
    """Turn down nodes with too little of anything; score by the profile's strategy."""

    depends = Depends.NODE

    def __init__(self, args: NodeResourcesFitArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._ignored = IgnoredResources(
            frozenset(args.ignored_resources), frozenset(args.ignored_resource_groups)
        )
        self._scorer = scorer(args.scoring_strategy)

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Snapshot) -> PreFilterResult:
        """Work out the request; never skips, for every pod counts as one."""
        del nodes
        state.write(Fit, Fit(fit_requests(pod), self._ignored))
        return PreFilterResult()

    def filter(self, state: CycleState, pod: Pod, nodes: Snapshot) -> ReasonCodes:
        """A bit for each reason; see `Fit`."""
        del pod
        return state.read(Fit).codes(nodes)

    def filter_status(self, state: CycleState, code: int) -> Status:
        """All reasons at once; unresolvable where the empty node would be too small."""
        reasons, hopeless = state.read(Fit).reasons(code)
        verdict = Code.UNSCHEDULABLE_AND_UNRESOLVABLE if hopeless else Code.UNSCHEDULABLE
        return Status(verdict, reasons, self.name)

    def pre_score(self, state: CycleState, pod: Pod, nodes: Snapshot, feasible: Mask) -> Status:
        """Work out what scoring takes the pod to request."""
        del nodes, feasible
        state.write(ScoredRequest, ScoredRequest(scored_requests(pod)))
        return SUCCESS

    def score(self, state: CycleState, pod: Pod, nodes: Snapshot) -> Scores:
        """0 to 100 by the profile's strategy."""
        del pod
        return self._scorer.scores(state.read(ScoredRequest).amounts, nodes)

    def sign_pod(self, pod: Pod) -> Hashable:
        """Both views of the pod's requests."""
        return frozenset(fit_requests(pod).items()), frozenset(scored_requests(pod).items())

    def events_to_register(self) -> list[ClusterEventWithHint]:
        """Pods that leave or shrink, nodes that come or grow."""
        return registrations()


def scored_requests(pod: Pod) -> Units:
    """The pod's requests as scoring sees them: defaults filled in, without pod-level requests.

    Leaving out the pod level is upstream's behaviour, although nodes count it for placed pods.
    """
    return in_units(pod_requests(pod, pod_level=False, defaults=NON_ZERO_DEFAULTS))
