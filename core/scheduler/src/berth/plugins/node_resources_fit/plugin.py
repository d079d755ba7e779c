"""The plugin itself: its extension points, wired to filtering, scoring and hints."""

from collections.abc import Hashable, Mapping, Sequence

import msgspec

from berth.config.plugin_args import NodeResourcesFitArgs
from berth.framework.attempts.cycle_state import CycleState
from berth.framework.cluster_event import ClusterEventWithHint
from berth.framework.handle import Handle
from berth.framework.interface import (
    NO_ROW_FORM,
    CacheKey,
    Depends,
    EnqueueExtensions,
    FilterPlugin,
    PlacementScorePlugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    ProposedPlacement,
    ReasonCodes,
    RowForm,
    ScorePlugin,
    Scores,
    VersionedKey,
)
from berth.framework.status import SUCCESS, Code, Status
from berth.objects.devices.devices import DeviceClass
from berth.objects.pods.pod import Pod
from berth.objects.pods.pod_requests import Units, fit_requests, scored_requests
from berth.plugins.device_classes import DeviceClassNames
from berth.plugins.device_offers import DeviceOffers
from berth.plugins.in_tree import InTreePlugin
from berth.plugins.node_resources_fit.filtering import FitRequest, IgnoredResources, checked
from berth.plugins.node_resources_fit.hints import FitHints, delegated_to_devices
from berth.plugins.node_resources_fit.placements import placement_scores
from berth.plugins.node_resources_fit.scoring import scorer
from berth.snapshot.columns.growing import Ints, Mask
from berth.snapshot.pod_group_states import AnyKey
from berth.snapshot.snapshot import Snapshot


class ScoredRequest(msgspec.Struct, frozen=True):
    """What scoring takes the pod to request, and the classes behind what devices are to serve."""

    amounts: Units
    classes: Mapping[str, DeviceClass]


class NodeResourcesFit(
    InTreePlugin,
    PreFilterPlugin,
    FilterPlugin,
    PreScorePlugin,
    ScorePlugin,
    PlacementScorePlugin,
    EnqueueExtensions,
):
    """Turn down nodes with too little of anything; score by the profile's strategy."""

    depends = Depends.NODE
    reads_nodes = False

    def __init__(self, args: NodeResourcesFitArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._ignored = IgnoredResources(
            frozenset(args.ignored_resources), frozenset(args.ignored_resource_groups)
        )
        self._scorer = scorer(args.scoring_strategy)
        self._weights = tuple((r.name, r.weight) for r in args.scoring_strategy.resources)
        self._names: DeviceClassNames | None = None
        self._devices: DeviceOffers | None = None
        if handle.feature_enabled("DRAExtendedResource"):
            self._names = DeviceClassNames(handle.listers.device_classes)
            self._devices = DeviceOffers(handle.listers)

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Snapshot) -> PreFilterResult:
        """Work out the request; never skips, for every pod counts as one."""
        del nodes
        requests = fit_requests(pod)
        state.write(
            FitRequest, FitRequest(requests, self._ignored, delegated_to_devices(requests, self._names))
        )
        return PreFilterResult()

    def demanded(self, pod: Pod) -> Units:
        """What a node must have left of each resource, or `filter` turns the pod down there."""
        requests = fit_requests(pod)
        delegated = delegated_to_devices(requests, self._names)
        checks = checked(requests, self._ignored)
        return {name: amount for name, amount in checks.items() if name not in delegated}

    def filter(self, state: CycleState, pod: Pod, nodes: Snapshot) -> ReasonCodes:
        """A bit for each reason; see `FitRequest`."""
        del pod
        return state.read(FitRequest).codes(nodes)

    def filter_by_row(self, state: CycleState, pod: Pod, nodes: Snapshot) -> RowForm[ReasonCodes]:
        """The same bits for rows."""
        del pod
        request = state.read(FitRequest)
        return RowForm(request.code_of_row(nodes), request.codes_of_rows(nodes))

    def room(self, state: CycleState, pod: Pod, nodes: Snapshot, most: int) -> Ints | None:
        """As many as requests and the number of pods allow; not known where devices serve requests."""
        del pod
        return state.read(FitRequest).room(nodes, most)

    def filter_status(self, state: CycleState, code: int) -> Status:
        """All reasons at once; unresolvable where the empty node would be too small."""
        reasons, hopeless = state.read(FitRequest).reasons(code)
        verdict = Code.UNSCHEDULABLE_AND_UNRESOLVABLE if hopeless else Code.UNSCHEDULABLE
        return Status(verdict, reasons, self.name)

    def pre_score(self, state: CycleState, pod: Pod, nodes: Snapshot, feasible: Mask) -> Status:
        """Work out what scoring takes the pod to request."""
        del nodes, feasible
        amounts = scored_requests(pod)
        names = (name for name, _ in self._weights)
        classes = {} if self._devices is None else self._devices.backed(names, amounts)
        state.write(ScoredRequest, ScoredRequest(amounts, classes))
        return SUCCESS

    def score(self, state: CycleState, pod: Pod, nodes: Snapshot) -> Scores:
        """0 to 100 by the profile's strategy."""
        del pod
        request = state.read(ScoredRequest)
        if self._devices is not None and request.classes:
            devices = self._devices.amounts(request.classes, nodes)
            return self._scorer.scores_with_devices(request.amounts, nodes, devices)
        return self._scorer.scores(request.amounts, nodes)

    def score_by_row(self, state: CycleState, pod: Pod, nodes: Snapshot) -> RowForm[Scores]:
        """The same for rows; there is no such form where devices count."""
        del pod
        request, scorer = state.read(ScoredRequest), self._scorer
        if request.classes:
            return NO_ROW_FORM
        return RowForm(
            scorer.score_of_row(request.amounts, nodes), scorer.scores_of_rows(request.amounts, nodes)
        )

    def score_placements(
        self, state: CycleState, group: AnyKey, nodes: Snapshot, proposed: Sequence[ProposedPlacement]
    ) -> Scores:
        """How full each placement would be with the group's pods, whatever the strategy for single pods."""
        del state, group
        return placement_scores(nodes, proposed, self._weights)

    def sign_pod(self, pod: Pod) -> Hashable:
        """Both views of the pod's requests."""
        return frozenset(fit_requests(pod).items()), frozenset(scored_requests(pod).items())

    def cache_key(self, state: CycleState, pod: Pod, nodes: Snapshot) -> CacheKey | None:
        """Nothing else, unless devices stand behind some resource."""
        del state
        names = self._names
        if names is not None and names.any and delegated_to_devices(fit_requests(pod), names):
            return None
        return VersionedKey((), self._version, nodes)

    def _version(self, nodes: Snapshot) -> Hashable:
        """Of device classes."""
        del nodes
        return self.handle.listers.device_classes.generation

    def events_to_register(self) -> list[ClusterEventWithHint]:
        """Pods that leave or shrink, nodes that come or grow."""
        by_pod = self.handle.rules.resizes_count_by_pod
        return FitHints(self._names, resizes_count_by_pod=by_pod).registrations()
