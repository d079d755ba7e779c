"""The plugin's extension points."""

from collections.abc import Hashable

import msgspec
import numpy as np

from berth.config.plugin_args import VolumeBindingArgs
from berth.framework.attempts.cycle_state import CycleState
from berth.framework.attempts.pacing import paced
from berth.framework.cluster_event import ClusterEventWithHint
from berth.framework.handle import Handle
from berth.framework.interface import (
    EnqueueExtensions,
    FilterPlugin,
    MaybeAwaitable,
    PreBindPlugin,
    PreFilterPlugin,
    PreFilterResult,
    PreFlightResult,
    PreScorePlugin,
    Reason,
    ReasonCodes,
    ReservePlugin,
    ScorePlugin,
    Scores,
)
from berth.framework.ports.claim_metrics import VolumeStage
from berth.framework.status import SKIP, SUCCESS, Code, PluginError, Status, failed, unresolvable
from berth.objects.label_selector import InvalidSelectorError
from berth.objects.pods.pod import Pod
from berth.objects.pods.pod_features import PodFeature
from berth.objects.steps import Steps, at_once
from berth.plugins.in_tree import InTreePlugin
from berth.plugins.pod_volumes import volumes_cache_key, volumes_signature
from berth.plugins.volume_binding.binding import AssumedVolumes, VolumeBinder
from berth.plugins.volume_binding.bound_check import BindingFailedError
from berth.plugins.volume_binding.finding import (
    NO_STORAGE,
    NO_SUCH_VOLUME,
    NO_VOLUME,
    OUT_OF_REACH,
    FoundVolumes,
    NodeVolumes,
    VolumeFinder,
)
from berth.plugins.volume_binding.hints import registrations
from berth.plugins.volume_binding.pod_claims import PodVolumeClaims, RejectedClaimError, pod_claims
from berth.plugins.volume_binding.scoring import DEFAULT_SHAPE, CapacityScorer
from berth.snapshot.columns.growing import Mask
from berth.snapshot.snapshot import Snapshot

TEXTS = {
    OUT_OF_REACH: "node(s) didn't match PersistentVolume's node affinity",
    NO_VOLUME: "node(s) didn't find available persistent volumes to bind",
    NO_STORAGE: "node(s) did not have enough free storage",
    NO_SUCH_VOLUME: "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
}


class PodClaimVolumes(msgspec.Struct):
    """The pod's claims and, once asked for, what each node of the whole snapshot has for them.

    No pod on any node matters to that, so simulations share it.
    """

    claims: PodVolumeClaims
    found: FoundVolumes | None = None


class VolumeBinding(
    InTreePlugin,
    PreFilterPlugin,
    FilterPlugin,
    PreScorePlugin,
    ScorePlugin,
    ReservePlugin,
    PreBindPlugin,
    EnqueueExtensions,
):
    """Turn down nodes that the pod's volumes cannot reach; bind its claims before the pod."""

    concerns = frozenset({PodFeature.VOLUMES})
    reasons = tuple(Reason(text, Code.UNSCHEDULABLE_AND_UNRESOLVABLE) for text in TEXTS.values())

    def __init__(self, args: VolumeBindingArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        self._finder = VolumeFinder(handle.listers)
        self._binder = VolumeBinder(handle, args.bind_timeout_seconds)
        scores = handle.feature_enabled("StorageCapacityScoring")
        self._scorer = CapacityScorer(args.shape or DEFAULT_SHAPE) if scores else None

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Snapshot) -> PreFilterResult:
        """Sort the claims; one that has to be bound before any pod uses it ends the attempt."""
        del nodes
        try:
            claims = pod_claims(pod, self.handle.listers)
        except RejectedClaimError as error:
            return PreFilterResult(unresolvable(str(error)))
        except PluginError as error:
            return PreFilterResult(failed(error))
        if claims is None:
            return PreFilterResult(SKIP)
        state.write(PodClaimVolumes, PodClaimVolumes(claims))
        return PreFilterResult()

    def filter(self, state: CycleState, pod: Pod, nodes: Snapshot) -> MaybeAwaitable[ReasonCodes]:
        """Answer the sum of all that is wrong with the node, as finding.py numbers it."""
        del pod
        return paced(state.meter, self.name, self._answered(state, nodes))

    def _answered(self, state: CycleState, nodes: Snapshot) -> Steps[ReasonCodes]:
        codes: ReasonCodes = (yield from self._found(state, nodes)).problems[nodes.rows]
        return codes

    def filter_status(self, state: CycleState, code: int) -> Status:
        """All reasons that are in the sum."""
        del state
        texts = tuple(text for bit, text in TEXTS.items() if code & bit)
        return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, texts, self.name)

    def found(self, state: CycleState, nodes: Snapshot) -> FoundVolumes:
        """What every node of the whole snapshot has for the pod, worked out once in a cycle."""
        return at_once(self._found(state, nodes))

    def _found(self, state: CycleState, nodes: Snapshot) -> Steps[FoundVolumes]:
        wanted = state.read(PodClaimVolumes)
        if wanted.found is None:
            try:
                wanted.found = yield from self._finder.find(wanted.claims, nodes.whole)
            except (PluginError, InvalidSelectorError):
                self.handle.claim_metrics.volumes_failed(VolumeStage.PREDICATE)
                raise
        return wanted.found

    def volumes_on(self, state: CycleState, nodes: Snapshot, node_name: str) -> NodeVolumes | None:
        """What the pod would get on the node; None where it has no claims."""
        if state.get(PodClaimVolumes) is None:
            return None
        return self.found(state, nodes).on(nodes.whole.row_of[node_name])

    def pre_score(self, state: CycleState, pod: Pod, nodes: Snapshot, feasible: Mask) -> Status:
        """Skip unless storage capacity is scored."""
        del state, pod, nodes, feasible
        return SKIP if self._scorer is None else SUCCESS

    def score(self, state: CycleState, pod: Pod, nodes: Snapshot) -> Scores:
        """How well storage would be used; 0 for pods without claims."""
        del pod
        if self._scorer is None or state.get(PodClaimVolumes) is None:
            return np.zeros(len(nodes), dtype=np.int64)
        scores: Scores = self._scorer.scores(self.found(state, nodes))[nodes.rows]
        return scores

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> MaybeAwaitable[Status]:
        """Assume the node's volumes taken by the pod's claims."""
        del pod
        wanted = state.get(PodClaimVolumes)
        if wanted is None or not wanted.claims.delayed:
            return SUCCESS
        return paced(state.meter, self.name, self._reserved(state, wanted, node_name))

    def _reserved(self, state: CycleState, wanted: PodClaimVolumes, node_name: str) -> Steps[Status]:
        volumes = self.volumes_on(state, self.handle.snapshot, node_name)
        assert volumes is not None
        assumed = AssumedVolumes()
        # A cycle that ends between two steps gives up what was assumed until then.
        state.write(AssumedVolumes, assumed)
        try:
            yield from self._binder.assume(volumes, node_name, assumed)
        except BindingFailedError as error:
            self.handle.claim_metrics.volumes_failed(VolumeStage.ASSUME)
            return failed(error)
        finally:
            wanted.found = None
        return SUCCESS

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Give the assumptions up."""
        del pod, node_name
        assumed = state.get(AssumedVolumes)
        if assumed is not None:
            self._binder.restore(assumed)

    def pre_bind_pre_flight(self, state: CycleState, pod: Pod, node_name: str) -> PreFlightResult:
        """Skip where every claim is bound already."""
        del pod, node_name
        if state.get(AssumedVolumes) is None:
            return PreFlightResult(SKIP)
        return PreFlightResult(allow_parallel=True)

    async def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """Write volumes and claims, and wait until all claims are bound."""
        assumed = state.get(AssumedVolumes)
        if assumed is None:
            # Without NominatedNodeNameForExpectation, or before 1.34, no pre-flight has skipped such a pod.
            return SUCCESS
        try:
            await self._binder.bind(pod, node_name, assumed)
        except Exception as error:  # noqa: BLE001 - the adapter's errors are its own; the cycle reads them
            self.handle.claim_metrics.volumes_failed(VolumeStage.BIND)
            return failed(f"binding volumes: {error}")
        return SUCCESS

    def sign_pod(self, pod: Pod) -> Hashable:
        """The volumes."""
        return volumes_signature(pod)

    def cache_key(self, state: CycleState, pod: Pod, nodes: Snapshot) -> Hashable | None:
        """Nothing for pods without claims and disks."""
        del state, nodes
        return volumes_cache_key(pod)

    def events_to_register(self) -> list[ClusterEventWithHint]:
        """Everything that brings a volume, a claim or storage, or moves a node."""
        return registrations()
