"""The unschedulable pool: pods that were rejected or gated, and wait for an event that may help them.

Records are grouped by what decides about them, so that an event nobody of a group waits for costs one
look at the group, however many pods are in it.

Source: spec/core.md 2.1, 2.7, 2.9.
"""

from collections.abc import Iterator
from typing import NamedTuple

from berth.framework.queued_pod import QueuedPodInfo
from berth.snapshot.pod_group_states import GroupKey, group_of


class Group(NamedTuple):
    """What the records of a group have in common."""

    scheduler_name: str
    rejectors: frozenset[str]
    gating_plugin: str
    pod_group: GroupKey | None
    """The pod group of records that a PreEnqueue plugin holds back."""


class UnschedulablePods:
    """Records by key, and by group.

    Cost: put, get and remove O(1).
    """

    __slots__ = ("_group_of", "_groups", "_records")

    def __init__(self) -> None:
        self._records: dict[str, QueuedPodInfo] = {}
        self._group_of: dict[str, Group] = {}
        self._groups: dict[Group, dict[str, QueuedPodInfo]] = {}

    def __len__(self) -> int:
        return len(self._records)

    def __contains__(self, key: str) -> bool:
        return key in self._records

    def __iter__(self) -> Iterator[QueuedPodInfo]:
        return iter(self._records.values())

    def get(self, key: str) -> QueuedPodInfo | None:
        """The record of that key."""
        return self._records.get(key)

    def groups(self) -> Iterator[tuple[Group, dict[str, QueuedPodInfo]]]:
        """Each group with its records, none of them empty."""
        return iter(self._groups.items())

    def gated_count(self) -> int:
        """How many records a PreEnqueue plugin holds back."""
        # Metrics ask in another thread: only a copy made in one step keeps its size meanwhile.
        return sum(len(records) for group, records in self._groups.copy().items() if group.gating_plugin)

    def put(self, key: str, record: QueuedPodInfo) -> bool:
        """Insert a record, or take note that its rejectors changed; answers whether the key is new."""
        new = self.remove(key) is None
        gate = record.gating_plugin
        pod_group = group_of(record.pod) if gate else None
        group = Group(record.pod.spec.scheduler_name, frozenset(record.rejectors), gate, pod_group)
        self._records[key] = record
        self._group_of[key] = group
        self._groups.setdefault(group, {})[key] = record
        return new

    def remove(self, key: str) -> QueuedPodInfo | None:
        """Take the record of that key out."""
        record = self._records.pop(key, None)
        if record is not None:
            group = self._group_of.pop(key)
            members = self._groups[group]
            del members[key]
            if not members:
                del self._groups[group]
        return record
