"""What the pods of a queued group have to have in common, and what users read where they have not.

Source: pkg/scheduler/schedule_one_podgroup.go validatePodGroup (Kubernetes v1.37, v1.38).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain

import msgspec

from berth.config.go_text import quote
from berth.framework.mirrors.group_trees import AnyGroup, key_of, named
from berth.framework.runtime import Framework
from berth.framework.status import PluginError
from berth.objects.pods.pod import Pod

PREEMPTS = "PreemptLowerPriority"


class Words(msgspec.Struct, frozen=True):
    """How a release says in what a pod differs from the first of its group, or from the group."""

    scheduler: Callable[[Pod, Pod], str]
    priority: Callable[[Pod, AnyGroup], str]
    policy: Callable[[Pod, Pod], str]
    group_policy: Callable[[Pod, AnyGroup], str]
    below_priority: Callable[[AnyGroup, AnyGroup], str] | None = None
    """Of a group below the root; None where only pods are looked at."""
    below_policy: Callable[[AnyGroup, AnyGroup], str] | None = None


def validate(
    group: AnyGroup,
    waiting: Sequence[Pod],
    placed: Sequence[Pod],
    frameworks: Mapping[str, Framework],
    words: Words,
    *,
    below: Sequence[AnyGroup] = (),
    group_has_policy: bool = False,
) -> Framework:
    """The profile of a group's pods, at least one of which waits; `below` are the groups under a tree's root.

    `group_has_policy` says whether their preemption policy has to be the group's own, else the first pod's.
    Raises: PluginError where they differ in profile, priority or preemption policy, or there is no such
        profile.
    """
    for text in chain(
        _groups_that_differ(group, below, words, group_has_policy=group_has_policy),
        _differences(group, waiting, placed, words, group_has_policy=group_has_policy),
    ):
        raise PluginError(text)
    name = waiting[0].spec.scheduler_name
    if name not in frameworks:
        raise PluginError(f"profile not found for scheduler name {quote(name)}")
    return frameworks[name]


def _groups_that_differ(
    root: AnyGroup, below: Sequence[AnyGroup], words: Words, *, group_has_policy: bool
) -> Iterator[str]:
    for group in below:
        if words.below_priority is not None and (group.spec.priority or 0) != (root.spec.priority or 0):
            yield words.below_priority(group, root)
        if words.below_policy is not None and group_has_policy and policy_of(group) != policy_of(root):
            yield words.below_policy(group, root)


def _differences(
    group: AnyGroup, waiting: Sequence[Pod], placed: Sequence[Pod], words: Words, *, group_has_policy: bool
) -> Iterator[str]:
    first = waiting[0]
    for pod in chain(waiting, placed):
        if pod.spec.scheduler_name != first.spec.scheduler_name:
            yield words.scheduler(pod, first)
        if pod.priority != (group.spec.priority or 0):
            yield words.priority(pod, group)
        if policy_of(pod) != policy_of(group if group_has_policy else first):
            yield words.group_policy(pod, group) if group_has_policy else words.policy(pod, first)


def policy_of(preemptor: Pod | AnyGroup) -> str:
    """Whether the pod or group preempts, in the API's words."""
    return preemptor.spec.preemption_policy or PREEMPTS


OF_A_GROUP = Words(
    scheduler=lambda pod, first: (
        "all pods in a single pod group should have the same .spec.schedulerName set, "
        f"got: {quote(pod.spec.scheduler_name)} and {quote(first.spec.scheduler_name)}"
    ),
    priority=lambda pod, group: (
        "all pods in a single pod group should have the same priority as the pod group's priority, "
        f"got {pod.priority} and {group.spec.priority or 0}"
    ),
    policy=lambda pod, first: (
        "all pods in a single pod group should have the same preemption policy, "
        f"got {policy_of(pod)} and {policy_of(first)}"
    ),
    group_policy=lambda pod, group: (
        "all pods in a single pod group should have the same preemption policy as the pod group's preemption "
        f"policy, got {policy_of(pod)} and {policy_of(group)}"
    ),
)
OF_A_HIERARCHY = Words(
    scheduler=lambda pod, first: (
        "all pods in a pod group hierarchy should have the same .spec.schedulerName set, "
        f"got: {_profile_of(pod)} and {_profile_of(first)}"
    ),
    priority=lambda pod, group: (
        "all pods in a pod group hierarchy should have the same priority as the root pod group's priority, "
        f'got {pod.priority} ("{pod.name}") and {group.spec.priority or 0} ("{named(key_of(group))}")'
    ),
    policy=lambda pod, first: (
        "all pods in a pod group hierarchy should have the same preemption policy, "
        f'got {policy_of(pod)} ("{pod.name}") and {policy_of(first)} ("{first.name}")'
    ),
    group_policy=lambda pod, group: (
        "all pods in a pod group hierarchy should have the same preemption policy as the root pod group's "
        f'preemption policy, got {policy_of(pod)} ("{pod.name}") '
        f'and {policy_of(group)} ("{named(key_of(group))}")'
    ),
    below_priority=lambda group, root: (
        "all pod groups in a hierarchy should have the same priority as the root pod group's priority, "
        f'got {group.spec.priority or 0} ("{named(key_of(group))}") '
        f'and {root.spec.priority or 0} ("{named(key_of(root))}")'
    ),
    below_policy=lambda group, root: (
        "all pod groups in a hierarchy should have the same preemption policy as the root pod group's "
        f'preemption policy, got {policy_of(group)} ("{named(key_of(group))}") '
        f'and {policy_of(root)} ("{named(key_of(root))}")'
    ),
)


def _profile_of(pod: Pod) -> str:
    return f'{quote(pod.spec.scheduler_name)} ("{pod.name}")'
