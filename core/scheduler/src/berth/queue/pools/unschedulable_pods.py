"""The unschedulable pool: pods that were rejected or gated, and wait for an event that may help them.

Records are grouped by what decides about them, so that an event that no pod of a group waits for costs one
look at the group, however many pods are in it; within a group by kind, so that hints are asked once for each.

Source: pkg/scheduler/backend/queue/unschedulable_pods.go (Kubernetes v1.36).
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from berth.framework.cluster_event import ConcernedPods
from berth.framework.queueing.queued_pod import QueuedGroupInfo, QueuedPodInfo
from berth.objects.pods.pod_template import PodTemplate
from berth.queue.pools.pod_kinds import kind_of
from berth.snapshot.pod_group_states import GroupKey, group_of


class Group(NamedTuple):
    """What the records of a group have in common."""

    scheduler_name: str
    rejectors: frozenset[str]
    gating_plugin: str
    pod_group: GroupKey | None
    """The pod group of records that a PreEnqueue plugin holds back."""


Kind = tuple[PodTemplate | str, frozenset[str]]
Kinds = Mapping[Kind, Mapping[str, QueuedPodInfo]]
"""The records of a group by kind and key, none empty."""


class _Members:
    """The records of one group, by kind, and how many are of which template: None for groups of pods."""

    __slots__ = ("kinds", "templates")

    def __init__(self) -> None:
        self.kinds: dict[Kind, dict[str, QueuedPodInfo]] = {}
        self.templates: Counter[PodTemplate | None] = Counter()


class _Place(NamedTuple):
    """A record, and where in the groups it is: found again without hashing what it has in common."""

    record: QueuedPodInfo
    group: Group
    members: _Members
    kind: Kind
    alike: dict[str, QueuedPodInfo]
    template: PodTemplate | None


class UnschedulablePods:
    """Records by key, and by group and kind.

    Cost: put, get and remove O(1).
    """

    __slots__ = ("_groups", "_places")

    def __init__(self) -> None:
        self._places: dict[str, _Place] = {}
        self._groups: dict[Group, _Members] = {}

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, key: str) -> bool:
        return key in self._places

    def __iter__(self) -> Iterator[QueuedPodInfo]:
        return (place.record for place in self._places.values())

    def get(self, key: str) -> QueuedPodInfo | None:
        """The record of that key."""
        place = self._places.get(key)
        return place.record if place is not None else None

    def groups(self) -> Iterator[tuple[Group, Kinds]]:
        """Each group with its records, none of them empty."""
        return ((group, members.kinds) for group, members in self._groups.items())

    def among(self, group: Group, concerned: ConcernedPods) -> Sequence[QueuedPodInfo] | None:
        """The one record of the group that is concerned, if any; None where more than one may be.

        Cost: O(templates of the group).
        """
        members = self._groups[group]
        if any(each is None or concerned.by_template(each) for each in members.templates):
            return None
        place = self._places.get(concerned.key)
        return () if place is None or place.members is not members else (place.record,)

    def gated_count(self) -> int:
        """How many records a PreEnqueue plugin holds back."""
        # Metrics ask in another thread: only a copy made in one step keeps its size meanwhile.
        groups = self._groups.copy().items()
        gated = [members.kinds.copy() for group, members in groups if group.gating_plugin]
        return sum(len(records) for kinds in gated for records in kinds.values())

    def put(self, key: str, record: QueuedPodInfo) -> bool:
        """Insert a record, or take note that its rejectors changed; answers whether the key is new."""
        new = self.remove(key) is None
        gate = record.gating_plugin
        pod_group = group_of(record.pod) if gate else None
        group = Group(record.pod.spec.scheduler_name, frozenset(record.rejectors), gate, pod_group)
        kind = kind_of(record)
        members = self._groups.get(group)
        if members is None:
            members = self._groups[group] = _Members()
        alike = members.kinds.setdefault(kind, {})
        alike[key] = record
        template = None if isinstance(record, QueuedGroupInfo) else record.pod.template
        members.templates[template] += 1
        self._places[key] = _Place(record, group, members, kind, alike, template)
        return new

    def take(self, key: str, record: QueuedPodInfo) -> bool:
        """Take that record out; answers whether it was here."""
        place = self._places.get(key)
        return place is not None and place.record is record and self.remove(key) is not None

    def remove(self, key: str) -> QueuedPodInfo | None:
        """Take the record of that key out."""
        place = self._places.pop(key, None)
        if place is None:
            return None
        members, template = place.members, place.template
        del place.alike[key]
        members.templates[template] -= 1
        if not members.templates[template]:
            del members.templates[template]
        if not place.alike:
            del members.kinds[place.kind]
            if not members.kinds:
                del self._groups[place.group]
        return place.record
