"""Pods that wait with their groups: each group with its waiting pods is one entity of the queue.

    pod of a group --no such group--> incomplete --the group comes--+
         |                                                          |
         +--the group is being tried--> pending --its attempt ends--+--> the group's entity: activeQ,
         +----------------------------------------------------------+    backoffQ, or the pool while gated

The entity is in one place; a pod that comes, goes or changes has it put back there, through its gates on the
way to activeQ and backoffQ. While a group is being tried its pods are in flight. Pods that come back from the
attempt, and pods that come meanwhile, are pending: they make up the entity that is queued when it has ended.

Called by: the scheduling queue, for pods of groups where the release queues groups.

Source: pkg/scheduler/backend/queue/scheduling_queue.go addPodGroupMember, AddAttemptedPodGroupIfNeeded,
workload_forest.go (Kubernetes v1.37).
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from berth.framework.clock import Clock
from berth.framework.cluster_event import LABEL_SCHEDULE_ATTEMPT_FAILURE
from berth.framework.mirrors.group_trees import AnyGroup, GroupTrees, key_of, named
from berth.framework.queueing.queued_pod import QueuedGroupInfo, QueuedPodInfo
from berth.framework.status import Status
from berth.objects.pods.pod import Pod
from berth.queue.errors import GroupAlreadyQueuedError
from berth.queue.moves.failed_attempts import note_failure
from berth.queue.recently_gated import RecentlyGated
from berth.queue.requeueing.requeue_strategy import RequeueStrategy
from berth.queue.sub_queues import SubQueues
from berth.snapshot.pod_group_states import AnyKey, GroupKey, TreeKey, group_of

log = logging.getLogger(__name__)

Apart = dict[GroupKey, dict[str, QueuedPodInfo]]


class QueuedGroups:
    """The groups' entities, and their pods that are in none; `trees` are those that the watch has shown.

    `notify` is called with whether something is in activeQ or backoffQ now; `pod_added` is the label of the
    event that a pod is new. Cost: at most O(pods of the group).
    """

    def __init__(
        self,
        sub_queues: SubQueues,
        trees: GroupTrees,
        clock: Clock,
        notify: Callable[[bool], None],
        *,
        pod_added: str,
        recently: RecentlyGated,
    ) -> None:
        self._recently = recently
        self._pod_added = pod_added
        self._notify = notify
        self._sub_queues = sub_queues
        self._trees = trees
        self._clock = clock
        self._incomplete: Apart = {}
        self._pending: Apart = {}
        self._tried: set[AnyKey] = set()
        """The groups that are being tried: roots of trees, and pod groups without parents."""

    @property
    def follows_trees(self) -> bool:
        """Whether pod groups wait with the trees that they are in."""
        return self._trees.follows

    def counts(self) -> tuple[int, int]:
        """How many pods wait for their group to be seen, and how many for an attempt at it to end."""
        incomplete, pending = self._incomplete.copy(), self._pending.copy()
        return sum(map(len, incomplete.values())), sum(map(len, pending.values()))

    def apart(self) -> Iterator[QueuedPodInfo]:
        """The records of the pods that are in no entity."""
        for of_group in (*self._incomplete.values(), *self._pending.values()):
            yield from of_group.values()

    def lacks(self, record: QueuedPodInfo) -> str:
        """What a pod waits for that is in no entity, as its group was not seen; "" for any other pod."""
        key = group_of(record.pod)
        if key is None or record.key not in self._incomplete.get(key, ()):
            return ""
        return self._trees.lacks(key)

    def without_group(self) -> list[QueuedPodInfo]:
        """The records of pods that wait for their group; each says so."""
        records = (record for of_group in self._incomplete.values() for record in of_group.values())
        return [record for record in records if self.is_incomplete(record)]

    def is_incomplete(self, record: QueuedPodInfo) -> bool:
        """Whether the pod waits for its group; then its record says for what."""
        key = group_of(record.pod)
        if key is None or self._incomplete.get(key, {}).get(record.key) is not record:
            return False
        record.gating_message = self.lacks(record)
        return True

    # Pods come and go.

    def add(self, record: QueuedPodInfo) -> None:
        """Let a pod wait with its group."""
        self._notify(self._added(record))

    def _added(self, record: QueuedPodInfo) -> bool:
        key = _group_of(record)
        self._sub_queues.grouped[record.key] = record
        group = self._trees.root(key)
        if group is None:
            self._incomplete.setdefault(key, {})[record.key] = record
            self._recently.note(record)
            return False
        entity = self._entity(key_of(group))
        if entity is not None:
            return self._with_others(entity, partial(entity.put, record))
        if key_of(group) in self._tried:
            self._pending.setdefault(key, {})[record.key] = record
            return False
        entity = QueuedGroupInfo.of(group, record, self._clock.monotonic())
        if not (record.unschedulable_count or record.consecutive_errors_count):
            return self._sub_queues.move_to_active(entity, self._pod_added)
        # A pod that failed once its group was through: it backs off, whatever would break again.
        entity.unschedulable_count = record.unschedulable_count
        entity.consecutive_errors_count = record.consecutive_errors_count
        entity.held_until = record.held_until
        return self._requeue(entity)

    def remove(self, pod: Pod) -> QueuedPodInfo | None:
        """Take a pod out; its record, None where it does not wait."""
        record = self._sub_queues.grouped.pop(pod.key, None)
        if record is None:
            return None
        if record.group is None:
            self._leave(self._incomplete, record) or self._leave(self._pending, record)
        else:
            self._notify(self._with_others(record.group, partial(record.group.take, record)))
        return record

    def _with_others(self, entity: QueuedGroupInfo, change: Callable[[], None]) -> bool:
        """Put the entity back where it was with other pods; one without pods is gone."""
        place = self._sub_queues.place_of(entity)
        self._sub_queues.remove(entity.key)
        change()
        if not entity.members:
            self._recently.forget(entity.key)
            return False
        return self._sub_queues.put_back(entity, place, self._pod_added)

    @staticmethod
    def _leave(apart: Apart, record: QueuedPodInfo) -> bool:
        key = _group_of(record)
        of_group = apart.get(key, {})
        left = of_group.pop(record.key, None) is not None
        if left and not of_group:
            del apart[key]
        return left

    # The group's object comes, changes and goes.

    def group_added(self, group: AnyGroup) -> None:
        """Let the pods wait with their group, or their tree, that waited for it."""
        moved = False
        for key in list(self._trees.leaves(key_of(group))):
            for record in self._incomplete.pop(key, {}).values():
                moved |= self._added(record)
        self._notify(moved)

    def group_updated(self, group: AnyGroup) -> None:
        """Take over a new version of a group."""
        entity = self._entity(key_of(group))
        if entity is not None:
            entity.root = group
            self._sub_queues.restore(entity)

    def group_deleted(self, group: AnyGroup) -> None:
        """Let the pods below wait until there is such a group again; those of other branches go on."""
        below = set(self._trees.leaves(key_of(group)))
        records = [record for key in below for record in self._pending.pop(key, {}).values()]
        above = group.spec.parent_composite_pod_group_name if self._trees.follows else ""
        root = self._trees.root_key(TreeKey(group.namespace, above)) if above else key_of(group)
        entity = None if root is None else self._entity(root)
        if entity is not None:
            leaving = [member for member in entity.members if _group_of(member) in below]
            records += leaving
            self._notify(self._with_others(entity, partial(_take_all, entity, leaving)))
        for record in records:
            record.group = None
            self._incomplete.setdefault(_group_of(record), {})[record.key] = record
            self._recently.note(record)

    # An attempt at the group begins and ends.

    def begun(self, entity: QueuedGroupInfo) -> None:
        """The entity was popped: its pods are in flight from now on."""
        self._tried.add(entity.group_key)
        entity.place = ""
        for member in entity.members:
            member.group = None
            self._sub_queues.grouped.pop(member.key, None)

    def ended(self, entity: QueuedGroupInfo, status: Status) -> None:
        """Queue the group's pods that came back from the attempt, or came during it.

        To be called at the end of each attempt, before anything else is popped; `entity` has the pods that
        were tried. A group that succeeded without some of them is tried again at once, with the timestamp
        that it had. One that failed backs off; it waits in the pool only if it is gated. So does one that
        succeeded and had none of its pods go on, as what came after its choice of nodes turned all down.

        Raises: GroupAlreadyQueuedError.
        """
        key = entity.group_key
        if self._entity(key) is not None:
            raise GroupAlreadyQueuedError(str(key), self._sub_queues.place_of(entity))
        self._tried.discard(key)
        left, group = self._came_back(key), self._trees.get(key)
        if not left or group is None:
            return
        entity.root = group
        tried = {member.pod.uid for member in entity.members}
        back = tried & {record.pod.uid for record in left.values()}
        entity.replace_members(left.values())
        now = self._clock.monotonic()
        went_on = status.ok and not (tried and back == tried)
        if went_on:
            entity.unschedulable_count = entity.consecutive_errors_count = 0
            entity.timestamp = entity.timestamp if back else now
            entity.was_flushed_from_unschedulable = False
        else:
            note_failure(entity, now, rejected=status.ok or status.rejected)
        held = [record.held_until for record in left.values() if record.held_until is not None]
        entity.held_until = max(held, default=None)
        self._notify(
            self._requeue(entity, RequeueStrategy.IMMEDIATELY if went_on else RequeueStrategy.AFTER_BACKOFF)
        )

    def _requeue(
        self, entity: QueuedGroupInfo, strategy: RequeueStrategy = RequeueStrategy.AFTER_BACKOFF
    ) -> bool:
        entity.rests, entity.backoff_expiration = strategy is RequeueStrategy.AFTER_BACKOFF, None
        return self._sub_queues.requeue(entity, strategy, LABEL_SCHEDULE_ATTEMPT_FAILURE)

    def _came_back(self, key: AnyKey) -> dict[str, QueuedPodInfo]:
        """The pending pods below a group, by key: they pend no more."""
        below = (self._pending.pop(leaf, {}) for leaf in list(self._trees.leaves(key)))
        return {key: record for records in below for key, record in records.items()}

    def _entity(self, key: AnyKey) -> QueuedGroupInfo | None:
        found = self._sub_queues.get(named(key))
        return found if isinstance(found, QueuedGroupInfo) else None


def _group_of(record: QueuedPodInfo) -> GroupKey:
    key = group_of(record.pod)
    assert key is not None, "only pods of groups come here"
    return key


def _take_all(entity: QueuedGroupInfo, members: Iterable[QueuedPodInfo]) -> None:
    for member in members:
        entity.take(member)
