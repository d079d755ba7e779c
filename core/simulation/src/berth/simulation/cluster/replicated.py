"""The pods of a Deployment, StatefulSet or ReplicaSet, made and replaced as the controllers do.

    revision --same template----> more or fewer pods
             --another template-> new pods, up to `surge` too many --have nodes--> old ones leave, as long as
                                  no more than `unavailable` are missing

A pod that has a node is available at once. Pods that end, or have to leave for others, are not made anew.

Source: pkg/controller/deployment/rolling.go and recreate.go (Kubernetes v1.36).
Called by: workloads.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from berth.objects.pods.pod import Pod
from berth.simulation.reading.revisions import Replacing, Revision


class ReplicatedPods(Protocol):
    """Makes an owner's pods and takes them away."""

    def make(self, like: Pod, duration: float | None) -> Pod:
        """A pod like that one, under a name of its own, which runs so many seconds."""

    def remove(self, pod: Pod) -> None:
        """Take the pod away; one that is gone is no matter."""


@dataclass(slots=True, eq=False)
class _Set:
    """Pods that are not told apart, by key, oldest first: where templates are replaced, those of one."""

    revision: Revision
    waiting: dict[str, Pod] = field(default_factory=dict)
    available: dict[str, Pod] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.waiting) + len(self.available)

    def last(self) -> Pod:
        """Take out the pod that goes first: one without a node before others, and the youngest of them."""
        _, pod = (self.waiting or self.available).popitem()
        return pod


class Replicated:
    """One owner, with a set of pods for each template that any is of, the newest template at last."""

    def __init__(self, pods: ReplicatedPods) -> None:
        self._pods = pods
        self._sets: list[_Set] = []

    def apply(self, revision: Revision) -> None:
        """Make, replace and remove pods as this revision of their owner demands."""
        if revision.template is None:
            for each in self._sets:
                self._shrink(each, len(each))
            self._sets.clear()
            return
        if revision.rollout.replacing is Replacing.NEVER:
            self._sets = [_together(revision, self._sets)]
        else:
            same = [each for each in self._sets if each.revision.template == revision.template]
            newest = _together(revision, same)
            self._sets = [*(each for each in self._sets if each not in same), newest]
        self._go_on()

    def bound(self, pod: Pod) -> None:
        """A pod of the owner got a node."""
        for each in self._sets:
            if each.waiting.pop(pod.key, None) is not None:
                each.available[pod.key] = pod
                self._go_on()
                return

    def _go_on(self) -> None:
        newest = self._sets[-1]
        if newest.revision.rollout.replacing is Replacing.ALL_AT_ONCE:
            for each in self._sets[:-1]:
                self._shrink(each, len(each))
        self._forget_empty()
        while self._scaled() or self._old_scaled_down():
            self._forget_empty()

    def _forget_empty(self) -> None:
        self._sets = [*(each for each in self._sets[:-1] if len(each)), self._sets[-1]]

    def _scaled(self) -> bool:
        """Bring the newest set nearer to its number of pods; whether anything was done."""
        newest, wanted = self._sets[-1], self._sets[-1].revision.replicas
        if len(newest) > wanted:
            self._shrink(newest, len(newest) - wanted)
            return True
        surge, _ = self._fenceposts()
        there = sum(map(len, self._sets))
        count = min(wanted - len(newest), wanted + surge - there)
        for place in range(there, there + count):
            self._grow(newest, place)
        return count > 0

    def _old_scaled_down(self) -> bool:
        """Let pods of older templates leave, as far as that may be; whether any did."""
        newest, older = self._sets[-1], self._sets[:-1]
        least = newest.revision.replicas - self._fenceposts()[1]
        may_leave = sum(map(len, self._sets)) - least - len(newest.waiting)
        if not older or may_leave <= 0:
            return False
        # Those without a node go first: that makes no more of them missing.
        left = self._taken(older, may_leave, lambda each: len(each.waiting))
        spare = sum(len(each.available) for each in self._sets) - least
        return left + self._taken(older, spare, len) > 0

    def _taken(self, sets: Sequence[_Set], most: int, of: Callable[[_Set], int]) -> int:
        """Take so many pods from these sets at most, the oldest set first; how many were taken."""
        taken = 0
        for each in sets:
            count = max(0, min(of(each), most - taken))
            self._shrink(each, count)
            taken += count
        return taken

    def _fenceposts(self) -> tuple[int, int]:
        """How many pods there may be too many, and how many too few."""
        revision = self._sets[-1].revision
        surge = revision.rollout.surge.of(revision.replicas, up=True)
        unavailable = revision.rollout.unavailable.of(revision.replicas, up=False)
        # Rounded down to none of both, a rollout would never begin.
        return surge, min(unavailable if surge or unavailable else 1, revision.replicas)

    def _grow(self, one: _Set, place: int) -> None:
        revision = one.revision
        assert revision.pod is not None, "a revision with a template has a pod"
        duration = revision.durations[place % len(revision.durations)] if revision.durations else None
        pod = self._pods.make(revision.pod, duration)
        one.waiting[pod.key] = pod

    def _shrink(self, one: _Set, count: int) -> None:
        for _ in range(count):
            self._pods.remove(one.last())


def _together(revision: Revision, sets: Sequence[_Set]) -> _Set:
    """The pods of all of these sets as those of the revision."""
    made = _Set(revision)
    for each in sets:
        made.waiting |= each.waiting
        made.available |= each.available
    return made
