"""What each release's kube-scheduler decides otherwise than the one before it, as named values.

A part takes the values that concern it from the rules that it is given when it is made. A value is named by
what it does, never by a release; which release has which value is in `RULES` alone.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import msgspec

from berth.config.releases.release import DEFAULT, Release


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """The rules of one release."""

    release: Release
    pod_group_condition: str
    """The type of the condition that says what came of a PodGroup (kubernetes/kubernetes#139743)."""
    composite_group_condition: str = ""
    """The same of a CompositePodGroup; empty where it gets none (#140670)."""
    resizes_count_by_pod: bool = False
    """Whether a pod that is being resized counts with the largest of three sums over its containers: what it
    asks for, was allotted and has; else with the sum of each container's largest (#140047)."""
    preemption_says_what_it_found: bool = False
    """Whether the message of a pod that preempts names the node and counts the victims (#140180)."""
    configures_all_without_names: bool = False
    """Whether a claim's configuration that names all requests is allocated with none named (KEP-4815)."""
    image_volumes_count_as_containers: bool = False
    """Whether the most that ImageLocality counts grows with each image volume, as with each container; else
    volumes reach a higher score than containers of the same images (#138951)."""
    distinct_attributes_of_all: bool = False
    """Whether a distinctAttribute holds for all devices of one request; else a device has to differ from the
    one before it, and from those of other requests (#140600)."""
    capacity_requests_are_checked: bool = False
    """Whether a capacity request that is negative, or beyond what its range can count, is an error of the
    claim, and a negative amount of a slice keeps its device away (#140442, #140666); else both count as they
    are."""
    steps_keep_their_form: bool = False
    """Whether an amount that was rounded up to a step is written in the form of the step, binary or decimal;
    else always in the binary one (#140161)."""
    gated_pods_are_nominated: bool = False
    """Whether the node that a pod is nominated to is kept for it while it is gated; else from when it may be
    tried (#139057)."""
    shared_claim_metric: bool = False
    """Whether claims that are created count in dynamic_resource_allocation_resourceclaim_creates_total, which
    other components have, too; else in scheduler_resourceclaim_creates_total (#138542)."""
    workload_metrics: bool = False
    """Whether placements, and preemption by groups and of groups, are counted; and a group's victims apart
    from those of pods (KEP-5732, KEP-5710)."""
    placements_count_by_type: bool = False
    """Whether the counts of placements name the type of the group that was placed (KEP-6012)."""
    informer_metrics: bool = False
    """Whether the mirrors of kinds of objects are shown by client-go's metrics of informers (#140511)."""
    selector_errors_name_the_device: bool = False
    """Whether the error of a selector names the device that it failed on, and what to write for a missing key
    (#136709)."""
    empty_selectors_match_all: bool = False
    """Whether the empty selector of a spread constraint or a disruption budget matches all pods of its
    namespace, also those without labels; else none (#141340, #141785)."""
    queues_groups: bool = False
    """Whether a pod group waits, is gated, is popped and backs off as one, and enough of its pods have to
    find nodes; else its pods wait one by one, and at Permit for each other (KEP-4671, #139520)."""
    groups_keep_the_nodes_found: bool = False
    """Whether a group that preempts is tried once, without all potential victims, with topology constraints,
    too, and its pods are nominated to the nodes that they found, beside which victims are spared; else it is
    tried anew beside each victim, and nominated nowhere (#139674, #139980, #140590)."""
    idle_groups_give_claims_back: bool = False
    """Whether a group without any pod on a node keeps none of the claims that it shares: they are freed as
    its last pod loses its node, and their devices where they keep its pods from other nodes; else a pod that
    fits nowhere has one claim an attempt reserved for the group no more (KEP-5729)."""
    pod_events_are_split: bool = False
    """Whether events of pods without a node are called UnscheduledPod, and TargetPod where they are the
    waiting pod's own; else UnschedulablePod (#135905)."""
    pods_evict_whole_groups: bool = False
    """Whether a group that is disrupted as a whole goes as a whole for a single pod, too; else its pods go
    one by one (#137981)."""
    rejected_groups_name_plugins: bool = False
    """Whether a pod whose group was turned down is rejected by the plugins that turned the group down, in
    their words alone; else by none, with `pod group is unschedulable` before them (#141253)."""
    tries_nominated_placements_first: bool = False
    """Whether of a group's placements the only one with a node that one of its pods is nominated to is tried
    first, and taken where the group fits; else all are tried, and the best is taken (#139472)."""
    names_pods_that_differ: bool = False
    """Whether the error of a group whose pods differ, in priority or otherwise, names them (#141930)."""
    unstarted_pods_are_the_youngest: bool = False
    """Whether a victim that has not started is less important than all that have; else it counts as started
    now (#140999)."""
    trees_are_more_important: bool = False
    """Whether a tree of groups that is evicted as a whole is more important than a pod group of its priority;
    else the one of more pods (#140999)."""
    smaller_uids_are_more_important: bool = False
    """Whether the smaller UID is more important of victims that are equal otherwise; else their order is left
    open (#140999)."""
    capacity_names_are_qualified: bool = False
    """Whether a capacity has one name with the driver as its domain and without, in requests, slices and
    allocations; else the names have to be written alike (#142202)."""
    extenders_may_name_all_victims: bool = False
    """Whether a node that would do without evictions, but for an extender that turns it down, is a candidate
    for which extenders that preempt name victims; else it is an error of that node (#135486)."""
    shared_devices_stay_shared: bool = False
    """Whether a device that claims share is withheld from exclusive use though its slice says meanwhile that
    it cannot be shared (#140798)."""


_OF_1_36: Final = Rules(release=(1, 36), pod_group_condition="PodGroupScheduled")
_OF_1_37: Final = msgspec.structs.replace(
    _OF_1_36,
    release=(1, 37),
    pod_group_condition="PodGroupInitiallyScheduled",
    resizes_count_by_pod=True,
    preemption_says_what_it_found=True,
    configures_all_without_names=True,
    image_volumes_count_as_containers=True,
    distinct_attributes_of_all=True,
    capacity_requests_are_checked=True,
    steps_keep_their_form=True,
    gated_pods_are_nominated=True,
    shared_claim_metric=True,
    workload_metrics=True,
    informer_metrics=True,
    selector_errors_name_the_device=True,
    queues_groups=True,
    groups_keep_the_nodes_found=True,
    idle_groups_give_claims_back=True,
    pod_events_are_split=True,
    pods_evict_whole_groups=True,
)
_OF_1_38: Final = msgspec.structs.replace(
    _OF_1_37,
    release=(1, 38),
    composite_group_condition="CompositePodGroupInitiallyScheduled",
    empty_selectors_match_all=True,
    unstarted_pods_are_the_youngest=True,
    trees_are_more_important=True,
    smaller_uids_are_more_important=True,
    capacity_names_are_qualified=True,
    shared_devices_stay_shared=True,
    extenders_may_name_all_victims=True,
    placements_count_by_type=True,
    rejected_groups_name_plugins=True,
    names_pods_that_differ=True,
    tries_nominated_placements_first=True,
)

RULES: Final[Mapping[Release, Rules]] = MappingProxyType(
    {rules.release: rules for rules in (_OF_1_36, _OF_1_37, _OF_1_38)}
)
DEFAULT_RULES: Final = RULES[DEFAULT]
