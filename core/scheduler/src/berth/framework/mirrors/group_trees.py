"""Trees of groups: pod groups below CompositePodGroups, and these below others, up to one root.

    CompositePodGroup (root) +- CompositePodGroup +- PodGroup -- pods
                             |                    +- PodGroup -- pods
                             +- PodGroup -- pods

A pod waits until all groups above it are there. Without the gate CompositePodGroup parents are passed over:
each pod group is its own root.

Source: pkg/scheduler/backend/queue/workload_forest.go (Kubernetes v1.37); KEP-6012.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final, TypeAlias

from berth.framework.mirrors.store import Store
from berth.objects.pod_groups import CompositePodGroup, PodGroup
from berth.snapshot.pod_group_states import AnyKey, GroupKey, PodGroupStates, TreeKey

MAX_DEPTH: Final = 4
"""Of a tree, the pod groups included. Source: scheduling.k8s.io/v1alpha3 WorkloadMaxTreeDepth."""
TREES_GATE: Final = "CompositePodGroup"
PODGROUP: Final = "podgroup"
COMPOSITE: Final = "compositepodgroup"
_FIRST: Final = datetime.min.replace(tzinfo=UTC)
_ALL: Final = (1 << MAX_DEPTH + 1) - 2
"""Complete by one level, and by any more."""


AnyGroup: TypeAlias = PodGroup | CompositePodGroup


def key_of(group: AnyGroup) -> AnyKey:
    """The group's key."""
    kind = GroupKey if isinstance(group, PodGroup) else TreeKey
    return kind(group.namespace, group.name)


def kind_of(key: AnyKey) -> str:
    """The group's kind, as metrics and events name it."""
    return COMPOSITE if isinstance(key, TreeKey) else PODGROUP


def named(key: AnyKey) -> str:
    """The group as `podgroup/namespace/name`, or `compositepodgroup/namespace/name`."""
    return f"{kind_of(key)}/{key}"


class GroupTrees:
    """The groups as the watches have shown them; `follows` says whether parents count.

    A walk down by `children` ends at MAX_DEPTH, whatever users wrote: deeper groups, and those of a circle,
    have no parent.

    Cost: `path`, `is_complete` and a change O(MAX_DEPTH); `children` and `leaves` O(groups below, sorted).
    """

    __slots__ = (
        "_above",
        "_below",
        "_complete",
        "_complete_below",
        "_composites",
        "_groups",
        "_states",
        "follows",
    )

    def __init__(self, groups: Store[PodGroup], composites: Store[CompositePodGroup]) -> None:
        self._groups = groups
        self._composites = composites
        self._above: dict[AnyKey, TreeKey] = {}
        self._below: dict[TreeKey, dict[AnyKey, None]] = {}
        self._complete: dict[AnyKey, int] = {}
        """Bit h: it is complete by what is at most h levels deep, itself included. Without 0."""
        self._complete_below: dict[TreeKey, list[int]] = {}
        """How many groups right below have bit h."""
        self._states = PodGroupStates()
        self.follows = False
        groups.followers.append(lambda key: self._changed(_parted(key)))
        composites.followers.append(lambda key: self._changed(TreeKey(*_parted(key))))

    def count(self, states: PodGroupStates) -> None:
        """Follow how many pods are known of each group, for `is_complete`."""
        self._states = states
        states.followers.append(self._recount)
        for group in self._groups:
            self._recount(key_of(group))

    def is_complete(self, key: AnyKey) -> bool:
        """Whether enough pods are known of a group, and of a tree enough groups that are complete in turn.

        One without a root is not.
        """
        depth = len(self.path(key))
        return bool(depth) and bool(self._complete.get(key, 0) >> MAX_DEPTH + 1 - depth & 1)

    def get(self, key: AnyKey) -> AnyGroup | None:
        """The group of that key, None where there is none."""
        if isinstance(key, TreeKey):
            return self._composites.get(key.name, key.namespace)
        return self._groups.get(key.name, key.namespace)

    def path(self, key: AnyKey) -> tuple[AnyGroup, ...]:
        """The group and those above it, the root last; none where one is missing, or the tree is no tree."""
        found: list[AnyGroup] = []
        at: AnyKey | None = key
        while at is not None:
            group = self.get(at)
            if group is None or len(found) == MAX_DEPTH:
                return ()
            found.append(group)
            at = self._parent(group)
        return tuple(found)

    def root(self, key: AnyKey) -> AnyGroup | None:
        """The root of the group's tree, None where that is not known."""
        path = self.path(key)
        return path[-1] if path else None

    def root_key(self, key: AnyKey) -> AnyKey | None:
        """The same, its key."""
        root = self.root(key)
        return None if root is None else key_of(root)

    def lacks(self, key: AnyKey) -> str:
        """What the tree lacks above that group, in words for users; "" where it has a root."""
        at: AnyKey | None = key
        for _ in range(MAX_DEPTH):
            if at is None:
                return ""
            group = self.get(at)
            if group is None:
                kind = "composite pod group" if isinstance(at, TreeKey) else "pod group"
                return f"waiting for {kind} {at} to be created"
            at = self._parent(group)
        deep = f"pod group {key} has more than {MAX_DEPTH - 1} groups above it, or is below itself"
        return "" if at is None else deep

    def children(self, key: TreeKey) -> list[AnyGroup]:
        """The groups right below that have a root, those created first first, and then by name."""
        found = [path[0] for path in map(self.path, self._below.get(key, ())) if path]
        return sorted(found, key=lambda one: (one.metadata.creation_timestamp or _FIRST, one.name))

    def every(self, key: AnyKey) -> Iterator[AnyGroup]:
        """The group and all below it that are there, each before those below it."""
        group = self.get(key)
        if group is not None:
            yield group
            for child in self.children(key) if isinstance(key, TreeKey) else ():
                yield from self.every(key_of(child))

    def leaves(self, key: AnyKey) -> Iterator[GroupKey]:
        """The pod groups below, also where the group itself is gone; a pod group is its own."""
        yield from self._leaves(key, MAX_DEPTH)

    def _leaves(self, key: AnyKey, depth: int) -> Iterator[GroupKey]:
        if isinstance(key, GroupKey):
            yield key
        elif depth > 1:
            for child in self._below.get(key, ()):
                yield from self._leaves(child, depth - 1)

    def _parent(self, group: AnyGroup) -> TreeKey | None:
        name = group.spec.parent_composite_pod_group_name if self.follows else ""
        return TreeKey(group.namespace, name) if name else None

    def _changed(self, key: AnyKey) -> None:
        before = self._above.get(key)
        group = self.get(key)
        name = "" if group is None else group.spec.parent_composite_pod_group_name
        parent = TreeKey(key.namespace, name) if name else None
        if parent != before:
            complete = self._complete.get(key, 0)
            if before is not None:
                del self._above[key], self._below[before][key]
                if not self._below[before]:
                    del self._below[before]
                self._count_below(before, complete, -1)
            if parent is not None:
                self._above[key] = parent
                self._below.setdefault(parent, {})[key] = None
                self._count_below(parent, complete, 1)
            for changed in (before, parent):
                if changed is not None:
                    self._recount(changed)
        self._recount(key)

    def _recount(self, key: AnyKey) -> None:
        """Take over whether that group is complete, and so those above it.

        What changed of a group at h levels changes the one above it at h + 1: circles come to an end, too.
        """
        at: AnyKey | None = key
        while at is not None:
            before, now = self._complete.get(at, 0), self._levels(at)
            if now == before:
                return
            if now:
                self._complete[at] = now
            else:
                del self._complete[at]
            at = self._above.get(at)
            if at is not None:
                self._count_below(at, before, -1)
                self._count_below(at, now, 1)

    def _levels(self, key: AnyKey) -> int:
        group = self.get(key)
        if group is None:
            return 0
        if isinstance(key, GroupKey):
            return _ALL if len(self._states.known(key).pods) >= group.needed else 0
        below = self._complete_below.get(key, ())
        return sum(1 << h + 1 for h, count in enumerate(below) if h < MAX_DEPTH and count >= group.needed)

    def _count_below(self, key: TreeKey, complete: int, sign: int) -> None:
        """Count a group right below in or out."""
        if complete:
            counts = self._complete_below.setdefault(key, [0] * (MAX_DEPTH + 1))
            for h in range(1, MAX_DEPTH + 1):
                counts[h] += sign * (complete >> h & 1)
            if not any(counts):
                del self._complete_below[key]


def _parted(key: str) -> GroupKey:
    namespace, _, name = key.partition("/")
    return GroupKey(namespace, name)
