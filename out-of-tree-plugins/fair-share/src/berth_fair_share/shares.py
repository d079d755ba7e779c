"""What each namespace has and waits for, and the share of the cluster that a waiting pod stands for.

A waiting pod's share is what its namespace would have if the pod and those before it were placed: the largest
part that this is of any one resource (dominant resource fairness, Ghodsi et al., NSDI 2011). When a pod
before it is placed nothing changes, because it counts as used then: placing pods costs no look at those that
wait. A pod that was tried in vain does not count for the others of its namespace, until it is placed.

    waiting --placed--> counts as used --removed--> waiting (the attempt failed), or gone
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

Amounts: TypeAlias = Mapping[str, int]

PPM = 1_000_000


@dataclass(slots=True)
class Waiting:
    """A pod that waits: `number` says when it came."""

    uid: str
    namespace: str
    profile: str
    priority: int
    number: int
    amounts: Amounts
    placed: bool = False
    in_vain: bool = False

    @property
    def before_others(self) -> bool:
        """Return whether pods behind it count it."""
        return not (self.placed or self.in_vain)


@dataclass(slots=True)
class _Namespace:
    used: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    waiting: dict[str, Waiting] = field(default_factory=dict)
    ahead: dict[int, defaultdict[str, int]] = field(default_factory=dict)
    """What those that others count wait for, by priority."""


class Shares:
    """The books of all namespaces."""

    def __init__(self) -> None:
        self._total: defaultdict[str, int] = defaultdict(int)
        self._nodes: dict[str, Amounts] = {}
        self._namespaces: defaultdict[str, _Namespace] = defaultdict(_Namespace)
        self._placed: dict[str, tuple[str, Amounts]] = {}
        self._waiting: dict[str, Waiting] = {}
        self._count = 0
        self.changed: set[str] = set()
        """Namespaces whose waiting pods may have other shares now, but by pods that were placed."""

    # What is there.

    def put_node(self, name: str, allocatable: Amounts) -> None:
        """Take over a node, or a change of it."""
        if self._nodes.get(name) == allocatable:
            return
        self.remove_node(name)
        self._nodes[name] = dict(allocatable)
        _add(self._total, allocatable)
        self.changed |= self._namespaces.keys()

    def remove_node(self, name: str) -> None:
        """Drop a node."""
        _add(self._total, self._nodes.pop(name, {}), -1)
        self.changed |= self._namespaces.keys()

    def place(self, uid: str, namespace: str, amounts: Amounts) -> None:
        """Count a pod on a node."""
        self._drop(uid)
        self._placed[uid] = namespace, amounts
        _add(self._namespaces[namespace].used, amounts)
        waiting = self._waiting.get(uid)
        if waiting is not None and not waiting.placed:
            # Those behind it saw it before them already: the sum stays, unless it was tried in vain.
            if waiting.in_vain:
                self.changed.add(namespace)
            self._note(waiting, placed=True)

    def remove(self, uid: str) -> None:
        """Count a pod on no node any more."""
        if (namespace := self._drop(uid)) is None:
            return
        self.changed.add(namespace)
        if waiting := self._waiting.get(uid):
            self._note(waiting, placed=False)
        self._tidy(namespace)

    def _drop(self, uid: str) -> str | None:
        namespace, amounts = self._placed.pop(uid, (None, {}))
        if namespace is not None:
            _add(self._namespaces[namespace].used, amounts, -1)
        return namespace

    def forget_cluster(self) -> None:
        """Count no node and no pod on one any more."""
        for uid in list(self._placed):
            self.remove(uid)
        for name in list(self._nodes):
            self.remove_node(name)

    # What waits.

    def wait(self, uid: str, namespace: str, profile: str, priority: int, amounts: Amounts) -> Waiting | None:
        """Take in a pod, behind all others of its priority; None where it waits already as it is."""
        old = self._waiting.get(uid)
        if old is not None and (old.priority, old.amounts, old.profile) == (priority, amounts, profile):
            return None
        self.leave(uid)
        self._count += 1
        pod = Waiting(uid, namespace, profile, priority, self._count, amounts, placed=uid in self._placed)
        here = self._namespaces[namespace]
        if any(other < priority for other in here.ahead):
            self.changed.add(namespace)
        self._waiting[uid] = here.waiting[uid] = pod
        self._count_ahead(pod, 1)
        return pod

    def leave(self, uid: str) -> None:
        """Drop a pod that waits no more."""
        pod = self._waiting.pop(uid, None)
        if pod is None:
            return
        if pod.before_others:
            self.changed.add(pod.namespace)
        self._count_ahead(pod, -1)
        del self._namespaces[pod.namespace].waiting[uid]
        self._tidy(pod.namespace)

    def leave_profile(self, profile: str) -> list[str]:
        """Drop all pods that wait for that profile; return their UIDs."""
        leaving = [uid for uid, pod in self._waiting.items() if pod.profile == profile]
        for uid in leaving:
            self.leave(uid)
        return leaving

    def tried_in_vain(self, uid: str) -> None:
        """Let a pod that fits nowhere hold back none of its namespace."""
        pod = self._waiting.get(uid)
        if pod is not None and not pod.in_vain:
            self.changed.add(pod.namespace)
            self._note(pod, in_vain=True)

    def _note(self, pod: Waiting, *, placed: bool | None = None, in_vain: bool | None = None) -> None:
        self._count_ahead(pod, -1)
        pod.placed = pod.placed if placed is None else placed
        pod.in_vain = pod.in_vain if in_vain is None else in_vain
        self._count_ahead(pod, 1)

    def _count_ahead(self, pod: Waiting, sign: int) -> None:
        if pod.before_others:
            ahead = self._namespaces[pod.namespace].ahead
            _add(ahead.setdefault(pod.priority, defaultdict(int)), pod.amounts, sign)

    def _tidy(self, namespace: str) -> None:
        """Keep nothing of a namespace that has and wants nothing."""
        here = self._namespaces[namespace]
        here.ahead = {priority: sums for priority, sums in here.ahead.items() if any(sums.values())}
        if not here.waiting and not any(here.used.values()):
            del self._namespaces[namespace]
            self.changed.discard(namespace)

    # Shares, in millionths of the cluster.

    def share_of(self, pod: Waiting) -> int:
        """Return the share of a pod that came last. Cost: O(priorities of its namespace)."""
        here = self._namespaces[pod.namespace]
        sums = defaultdict(int, here.used)
        for priority, ahead in here.ahead.items():
            if priority >= pod.priority:
                _add(sums, ahead)
        if not pod.before_others:
            _add(sums, pod.amounts)
        return self._dominant(sums)

    def shares(self, namespace: str) -> Iterator[tuple[Waiting, int]]:
        """Yield the namespace's waiting pods in their turn, each with its share. Cost: O(n log n)."""
        if namespace not in self._namespaces:
            return
        here = self._namespaces[namespace]
        sums = defaultdict(int, here.used)
        for pod in sorted(here.waiting.values(), key=lambda pod: (-pod.priority, pod.number)):
            if pod.before_others:
                _add(sums, pod.amounts)
                yield pod, self._dominant(sums)
            elif not pod.placed:
                alone = sums.copy()
                _add(alone, pod.amounts)
                yield pod, self._dominant(alone)

    def used(self) -> dict[str, int]:
        """Return what each namespace has."""
        return {name: self._dominant(here.used) for name, here in self._namespaces.items()}

    def _dominant(self, amounts: Amounts) -> int:
        """Return the largest part that this is of any resource that there is, rounded down."""
        total = self._total
        return max((n * PPM // total[name] for name, n in amounts.items() if total.get(name)), default=0)


def _add(sums: defaultdict[str, int], amounts: Amounts, sign: int = 1) -> None:
    for name, amount in amounts.items():
        sums[name] += sign * amount
