"""The plugin itself: its extension points, wired to claims, filtering and binding."""

from collections.abc import Hashable, Sequence

from msgspec.structs import replace

from berth.config.plugin_args import DynamicResourcesArgs
from berth.framework.attempts.cycle_state import CycleState
from berth.framework.attempts.diagnosis import Diagnosis
from berth.framework.attempts.pacing import paced
from berth.framework.cluster_event import ClusterEventWithHint
from berth.framework.handle import Handle
from berth.framework.interface import (
    NO_ROW_FORM,
    CacheKey,
    Depends,
    EnqueueExtensions,
    FilterPlugin,
    GroupReleasePlugin,
    MaybeAwaitable,
    NormalizedBy,
    NormalizeScorePlugin,
    PostFilterPlugin,
    PostFilterResult,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterResult,
    PreFlightResult,
    ProposalExtensions,
    ReasonCodes,
    ReservePlugin,
    RowForm,
    Scores,
    VersionedKey,
)
from berth.framework.ports.claim_writing import ClaimWriteError
from berth.framework.score import default_normalize
from berth.framework.status import SKIP, SUCCESS, PluginError, Status, failed, unresolvable, unschedulable
from berth.objects.devices.resource_claims import ResourceClaim
from berth.objects.label_selector import InvalidSelectorError
from berth.objects.pods.pod import Pod
from berth.objects.pods.pod_features import PodFeature
from berth.objects.steps import Steps
from berth.plugins.device_classes import DeviceClassNames
from berth.plugins.dynamic_resources.allocation import allocation
from berth.plugins.dynamic_resources.answers import KnownAnswers
from berth.plugins.dynamic_resources.asking import ClaimAsk, ClassMissingError, claim_ask
from berth.plugins.dynamic_resources.binding import ClaimBinder, Held
from berth.plugins.dynamic_resources.binding_conditions import DeviceBindingError, given_up
from berth.plugins.dynamic_resources.capacity import CapacityRules
from berth.plugins.dynamic_resources.claims import (
    ClaimUsers,
    PodClaims,
    UnresolvedClaimError,
    pod_consumer,
    reserved_for_alone,
)
from berth.plugins.dynamic_resources.extended_resources import (
    MadeClaims,
    backed_by_devices,
    extended_resources,
)
from berth.plugins.dynamic_resources.filtering import Allocated, DeviceQuery, preference_of
from berth.plugins.dynamic_resources.hints import DeviceHints
from berth.plugins.dynamic_resources.inventory import Inventory
from berth.plugins.dynamic_resources.no_preferences import no_preference, no_preferences, nothing
from berth.plugins.dynamic_resources.pod_devices import NO_DEVICES, PodDevices
from berth.plugins.dynamic_resources.releasing import ClaimReleaser
from berth.plugins.dynamic_resources.searching import NodeAllocation, SearchTerms
from berth.plugins.dynamic_resources.supply import Features, Supply
from berth.plugins.dynamic_resources.usage import DeviceUsage
from berth.plugins.in_tree import InTreePlugin, all_pass
from berth.plugins.pod_group_lookup import in_trial
from berth.snapshot.node_matching import check_term
from berth.snapshot.snapshot import Snapshot

NOTHING_NEW = "no new claims to deallocate"


class DynamicResources(
    InTreePlugin,
    PreEnqueuePlugin,
    ProposalExtensions,
    FilterPlugin,
    PostFilterPlugin,
    GroupReleasePlugin,
    NormalizeScorePlugin,
    ReservePlugin,
    PreBindPlugin,
    EnqueueExtensions,
):
    """Allocate devices to the claims of pods; pods without claims pass untouched."""

    concerns = frozenset({PodFeature.DEVICES})
    depends = Depends.NODE  # of the pods that can be cached, none has to do with devices

    def __init__(self, args: DynamicResourcesArgs, handle: Handle) -> None:
        super().__init__(args, handle)
        enabled = handle.feature_enabled
        reported = enabled("DRADeviceBindingConditions") and enabled("DRAResourceClaimDeviceStatus")
        self._features = Features(
            taints=enabled("DRADeviceTaints"),
            shared_counters=enabled("DRAPartitionableDevices"),
            consumable_capacity=enabled("DRAConsumableCapacity"),
            binding_conditions=reported,
            list_attributes=enabled("DRAListTypeAttributes"),
            derived_attributes=enabled("DRADerivedAttributes"),
            compatibility_groups=enabled("DRADeviceCompatibilityGroups"),
            capacity=_capacity_rules(handle),
            rules=handle.rules,
        )
        self._extended = enabled("DRAExtendedResource")
        self._alternatives = enabled("DRAPrioritizedList")
        seconds = args.filter_timeout.seconds if args.filter_timeout else 0.0
        self._terms = SearchTerms(handle.clock, seconds)
        self._binding_seconds = args.binding_timeout.seconds if args.binding_timeout else 0.0
        listers = handle.listers
        self._claims = listers.claim_tracker
        shared = enabled("DRAWorkloadResourceClaims")
        self._pod_claims = PodClaims(self._claims, listers.pod_groups if shared else None)
        self._names = DeviceClassNames(listers.device_classes)
        self._made = MadeClaims(listers.resource_claims)
        usage = DeviceUsage(
            self._claims, self._features.capacity, grouped=self._features.compatibility_groups
        )
        self._supply = Supply(Inventory(()), usage, self._features)
        self._known = KnownAnswers()
        self._hints = DeviceHints(self._pod_claims)
        self._binder = ClaimBinder(handle, stamped=reported, timeout_seconds=self._binding_seconds)
        self._releaser = ClaimReleaser(handle, self._binder)

    def events_to_register(self) -> list[ClusterEventWithHint]:
        """Nodes that come or change, claims, classes, slices, and claims made for the pod."""
        return self._hints.registrations()

    def sign_pod(self, pod: Pod) -> Hashable:
        """Whether the pod has claims: nothing else of it is cached, as `cache_key` says."""
        return bool(pod.spec.resource_claims)

    def cache_key(self, state: CycleState, pod: Pod, nodes: Snapshot) -> CacheKey | None:
        """None for pods with claims, or with requests that devices stand behind: no two of them are alike."""
        del state
        if pod.spec.resource_claims or self._backed(pod):
            return None
        return VersionedKey((), self._version, nodes)

    def _version(self, nodes: Snapshot) -> Hashable:
        """Of device classes."""
        del nodes
        return self.handle.listers.device_classes.generation

    def _backed(self, pod: Pod) -> bool:
        return self._extended and self._names.any and backed_by_devices(pod, self._names)

    def pre_enqueue(self, pod: Pod) -> Status:
        """Wait until all claims are there."""
        try:
            self._pod_claims.of(pod)
        except UnresolvedClaimError as error:
            return unresolvable(str(error))
        return SUCCESS

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Snapshot) -> MaybeAwaitable[PreFilterResult]:
        """Look at the claims, and at all devices if some claim has none yet.

        PostFilter knows of claims only where all of this went well (upstream keeps them last of all).
        """
        del nodes
        if not pod.spec.resource_claims and not self._backed(pod):
            return PreFilterResult(SKIP)
        state.write(PodDevices, NO_DEVICES)
        try:
            devices = self._devices(pod)
        except UnresolvedClaimError as error:
            return PreFilterResult(unresolvable(str(error)))
        if devices.empty:
            return PreFilterResult(SKIP)
        return paced(state.meter, self.name, self._looked_at(state, pod, devices))

    def _looked_at(self, state: CycleState, pod: Pod, devices: PodDevices) -> Steps[PreFilterResult]:
        try:
            devices.question = yield from self._question(pod, devices)
        except ClassMissingError as error:
            return PreFilterResult(unresolvable(str(error)))
        except (PluginError, InvalidSelectorError) as error:
            return PreFilterResult(failed(error))
        state.write(PodDevices, devices)
        return PreFilterResult()

    def _devices(self, pod: Pod) -> PodDevices:
        claims = {claim.uid: self._as_shared(claim, pod) for claim in self._pod_claims.of(pod)}
        extended = None
        if self._backed(pod):
            extended = extended_resources(pod, self._names, self._made)
        return PodDevices(list(claims.values()), self._pod_claims.users(pod), extended)

    def _as_shared(self, claim: ResourceClaim, pod: Pod) -> ResourceClaim:
        """The claim, with the allocation that is about to be written for another pod of the pod's group."""
        if claim.allocation is not None:
            return claim
        return self._claims.in_flight_for(claim.uid, pod) or claim

    def _question(self, pod: Pod, devices: PodDevices) -> Steps[DeviceQuery]:
        """What is to be asked of nodes, in steps.

        Raises: ClassMissingError, PluginError, InvalidSelectorError.
        """
        allocated: list[Allocated] = []
        asks: list[ClaimAsk] = []
        for index, claim in enumerate(devices.claims):
            if claim.allocation is not None:
                allocated.append(self._allocated(index, claim))
            elif self._claims.in_flight(claim.uid) is not None:
                text = f"resource claim {claim.key} is in the process of being allocated"
                raise ClassMissingError(text)
            else:
                asks.append(claim_ask(claim, self.handle.listers.device_classes.get))
            yield
        supply = self._refreshed() if asks or devices.extended is not None else None
        return DeviceQuery(
            pod,
            allocated,
            asks,
            devices.extended,
            supply,
            self._known,
            self._terms,
        )

    def _allocated(self, index: int, claim: ResourceClaim) -> Allocated:
        assert claim.allocation is not None, "asked of allocated claims only"
        selector = claim.allocation.node_selector
        for term in selector.node_selector_terms if selector else ():
            check_term(term)
        over = self._features.binding_conditions and given_up(
            claim, self._binder.ages.of(claim), self._binding_seconds
        )
        return Allocated(index, selector, over, preference_of(claim))

    def _refreshed(self) -> Supply:
        self._supply.refresh(self.handle.listers.slice_tracker)
        return self._supply

    def filter(self, state: CycleState, pod: Pod, nodes: Snapshot) -> MaybeAwaitable[ReasonCodes]:
        """A code for each reason of this cycle; see `DeviceQuery`."""
        del pod
        question = state.read(PodDevices).question
        if question is None:
            return all_pass(len(nodes))
        if question.searches:
            return question.codes_found(nodes, state.meter)
        return paced(state.meter, self.name, question.codes(nodes))

    def filter_status(self, state: CycleState, code: int) -> Status:
        """The reason that the question gave that number."""
        question = state.read(PodDevices).question
        assert question is not None, "only a question gives codes"
        return question.statuses[code - 1].from_plugin(self.name)

    def follow_release(self, state: CycleState, pod: Pod, gone: Sequence[Pod]) -> None:
        """Search among the devices of claims, too, that are reserved for these pods alone.

        Cost: O(claims + devices in use).
        """
        del pod
        devices: PodDevices = state.get(PodDevices, NO_DEVICES)
        if devices.question is None or not devices.question.searches:
            return
        freed = list(reserved_for_alone(self._claims, {each.uid for each in gone}))
        if freed:
            supply = Supply(self._supply.inventory, self._supply.usage.without(freed), self._features)
            state.write(PodDevices, replace(devices, question=devices.question.with_supply(supply)))

    async def post_filter(self, state: CycleState, pod: Pod, diagnosis: Diagnosis) -> PostFilterResult:
        """Give up devices that keep the pod from other nodes."""
        devices: PodDevices | None = state.get(PodDevices)
        if devices is None and self.name not in state.skip_filter:
            return PostFilterResult(failed("not found"))
        if devices is None or devices.empty:
            return PostFilterResult(unschedulable(NOTHING_NEW))
        try:
            return PostFilterResult(await self._releaser.make_room(devices, pod, diagnosis))
        except ClaimWriteError as error:
            return PostFilterResult(failed(error))

    async def release(self, state: CycleState, pod: Pod, diagnosis: Diagnosis) -> str:
        """Give up devices that keep a pod of a group from other nodes."""
        return await self._releaser.give_up(state.get(PodDevices, NO_DEVICES), pod, diagnosis)

    def score(self, state: CycleState, pod: Pod, nodes: Snapshot) -> Scores:
        """More for alternatives that are named first."""
        del pod
        devices: PodDevices = state.get(PodDevices, NO_DEVICES)
        question = devices.question
        if question is None or not self._alternatives:
            return nothing(len(nodes))
        return question.scores(nodes)

    def score_by_row(self, state: CycleState, pod: Pod, nodes: Snapshot) -> RowForm[Scores]:
        """The same for rows; there is no such form of preferences."""
        del pod, nodes
        return NO_ROW_FORM if self._prefers(state) else RowForm(no_preference, no_preferences)

    def _prefers(self, state: CycleState) -> bool:
        devices: PodDevices = state.get(PodDevices, NO_DEVICES)
        return devices.question is not None and self._alternatives

    def normalized_by(self, state: CycleState) -> NormalizedBy:
        """Nothing where there is nothing to prefer: all scores are 0."""
        return NormalizedBy.ALL if self._prefers(state) else NormalizedBy.NOTHING

    def normalize_score(self, state: CycleState, pod: Pod, scores: Scores) -> Scores:
        """The best becomes 100."""
        del state, pod
        return default_normalize(scores)

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """Hold the devices that were found for the node."""
        devices: PodDevices = state.get(PodDevices, NO_DEVICES)
        if devices.empty or devices.question is None:
            return SUCCESS
        outcome = devices.question.found(self.handle.snapshot, node_name)
        if outcome is None:
            return failed("claim allocation not found for node")
        shared = self._shared(devices, pod)
        if shared is None:
            return failed("claim allocation of another pod of the group not found")
        devices.held = self._hold(devices, outcome, pod, node_name)
        devices.held.take_over(shared)
        return SUCCESS

    def _shared(self, devices: PodDevices, pod: Pod) -> dict[str, ResourceClaim] | None:
        """By UID, the claims that others of the group have in flight; None where one is in flight no more."""
        found: dict[str, ResourceClaim] = {}
        for claim in devices.claims:
            stored = self._claims.by_key(claim.key)
            if claim.allocation is None or (stored is not None and stored.allocation is not None):
                continue
            shared = self._claims.share(claim.uid, pod)
            if shared is None:
                for uid in found:
                    self._claims.end(uid, pod)
                return None
            found[claim.uid] = shared
        return found

    def _hold(self, devices: PodDevices, outcome: NodeAllocation, pod: Pod, node_name: str) -> Held:
        chosen = {
            claim.uid: claim.allocated_as(
                allocation(claim, picks, node_name, self._features, self.handle.random)
            )
            for claim, picks in zip(outcome.claims, outcome.solution, strict=True)
        }
        for claim in chosen.values():
            self._claims.begin(claim, pod)
        claims = [chosen.get(claim.uid, claim) for claim in devices.claims]
        if outcome.mappings:
            claims.append(chosen[outcome.claims[-1].uid])
        return Held(claims, devices.users or ClaimUsers(pod_consumer(pod)), set(chosen), outcome.mappings)

    async def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Let go of devices, and of claims that were written already."""
        del node_name
        devices: PodDevices | None = state.get(PodDevices)
        if devices is not None and devices.held is not None:
            releaser = self._releaser
            idle = releaser.gives_group_claims_back and not in_trial(state) and releaser.group_is_idle(pod)
            await self._binder.take_back(devices.held, pod, with_group=idle)

    def pre_bind_pre_flight(self, state: CycleState, pod: Pod, node_name: str) -> PreFlightResult:
        """There is work exactly for pods with claims."""
        del pod, node_name
        if state.get(PodDevices, NO_DEVICES).empty:
            return PreFlightResult(SKIP)
        return PreFlightResult(allow_parallel=True)

    async def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """Write the claims, and wait for drivers that have to prepare devices first."""
        devices: PodDevices = state.get(PodDevices, NO_DEVICES)
        held = devices.held
        if held is None:
            return SUCCESS
        try:
            await self._binder.write(held, pod)
            if self._features.binding_conditions:
                await self._binder.wait(held, pod, node_name)
        except (ClaimWriteError, DeviceBindingError, PluginError) as error:
            return failed(error)
        return SUCCESS


def _capacity_rules(handle: Handle) -> CapacityRules:
    rules = handle.rules
    return CapacityRules(
        qualified_names=rules.capacity_names_are_qualified,
        checked=rules.capacity_requests_are_checked,
        steps_keep_their_form=rules.steps_keep_their_form,
        fractional=handle.feature_enabled("DRAFractionalCapacityRange"),
    )
