"""Pod groups of both kinds: which group a pod is in, and how many of its pods have to run together.

Source: scheduling.k8s.io PodGroup (KEP-4671) and scheduling.x-k8s.io PodGroup (scheduler-plugins,
coscheduling).
"""

import logging
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from berth_sdk import ObjectKey, Pod, WatchedResource

COSCHEDULING_GROUPS = WatchedResource("scheduling.x-k8s.io", "v1alpha1", "podgroups")
POD_GROUPS = WatchedResource("scheduling.k8s.io", "v1alpha2", "podgroups")
BETA_POD_GROUPS = WatchedResource("scheduling.k8s.io", "v1beta1", "podgroups")
"""Served from Kubernetes 1.37 on, in the place of v1alpha2."""
COSCHEDULING_LABEL = "scheduling.x-k8s.io/pod-group"

log = logging.getLogger(__name__)


class GroupKey(NamedTuple):
    """A group, of one of the two kinds."""

    api_group: str
    namespace: str
    name: str


def group_key(key: ObjectKey) -> GroupKey:
    """Return the group that an object is."""
    return GroupKey(key.group, key.namespace, key.name)


class _SchedulingGroup(msgspec.Struct, rename="camel", frozen=True):
    pod_group_name: str = ""


class _PodSpec(msgspec.Struct, rename="camel", frozen=True):
    scheduling_group: _SchedulingGroup | None = None
    preemption_policy: str = ""


class _PodMetadata(msgspec.Struct, rename="camel", frozen=True):
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None


class _PodFacts(msgspec.Struct, frozen=True):
    metadata: _PodMetadata = _PodMetadata()
    spec: _PodSpec = _PodSpec()


class _Gang(msgspec.Struct, rename="camel"):
    min_count: int = 1


class _Policy(msgspec.Struct):
    gang: _Gang | None = None


class _GroupSpec(msgspec.Struct, rename="camel"):
    min_member: int = 1
    scheduling_policy: _Policy = msgspec.field(default_factory=_Policy)


class _Group(msgspec.Struct):
    spec: _GroupSpec = msgspec.field(default_factory=_GroupSpec)


@dataclass(frozen=True, slots=True)
class PodFacts:
    """What the plugin reads of a pod besides what the SDK decodes."""

    group: GroupKey | None
    created: str
    is_leaving: bool
    never_preempts: bool


_facts = msgspec.json.Decoder(_PodFacts)
_groups = msgspec.json.Decoder(_Group)


def facts_of(pod: Pod) -> PodFacts:
    """Return those facts; a pod that can't be read has none of them."""
    try:
        found = _facts.decode(pod.source) if pod.source else _PodFacts()
    except msgspec.MsgspecError:
        found = _PodFacts()
    native = found.spec.scheduling_group
    group = None
    if native is not None and native.pod_group_name:
        group = GroupKey(POD_GROUPS.group, pod.namespace, native.pod_group_name)
    elif COSCHEDULING_LABEL in pod.labels:
        group = GroupKey(COSCHEDULING_GROUPS.group, pod.namespace, pod.labels[COSCHEDULING_LABEL])
    return PodFacts(
        group,
        found.metadata.creation_timestamp or "",
        found.metadata.deletion_timestamp is not None,
        found.spec.preemption_policy == "Never",
    )


@dataclass
class Groups:
    """How many pods of each group have to run together."""

    _minimum: dict[GroupKey, int] = field(default_factory=dict)

    def put(self, key: ObjectKey, source: bytes) -> bool:
        """Take over a group; whether its minimum is another."""
        try:
            spec = _groups.decode(source).spec
        except msgspec.MsgspecError as error:
            log.warning("pod group ignored group=%s err=%s", f"{key.namespace}/{key.name}", error)
            return self.remove(key)
        gang = spec.scheduling_policy.gang
        native = 1 if gang is None else gang.min_count
        minimum = spec.min_member if key.group == COSCHEDULING_GROUPS.group else native
        name = group_key(key)
        before, self._minimum[name] = self._minimum.get(name), minimum
        return before != minimum

    def remove(self, key: ObjectKey) -> bool:
        """Forget a group; whether it was known."""
        return self._minimum.pop(group_key(key), None) is not None

    def minimum(self, group: GroupKey | None) -> int:
        """Return how many of its pods have to run together, 1 for no group and for one that is not known."""
        return 1 if group is None else max(1, self._minimum.get(group, 1))

    def clear(self) -> None:
        """Forget all of them."""
        self._minimum.clear()
