"""The pods of a Deployment, StatefulSet or ReplicaSet, created and replaced as by their controllers.

    revision --same template----> more or fewer pods
             --another template-> new pods, up to `surge` too many --have nodes--> old ones leave, as long as
                                  no more than `unavailable` are missing

A bound pod is available at once. Pods that end or are preempted are not created again.

Source: pkg/controller/deployment/rolling.go and recreate.go (Kubernetes v1.36).
Called by: workloads.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from berth.objects.pods.pod import Pod
from berth.simulation.reading.revisions import Replacing, Revision


class ReplicatedPods(Protocol):
    """Creates and removes an owner's pods."""

    def make(self, like: Pod, duration: float | None) -> Pod:
        """Create a copy of the pod with a new name, which runs for that many seconds."""

    def remove(self, pod: Pod) -> None:
        """Remove the pod, if it still exists."""


@dataclass(slots=True, eq=False)
class _Set:
    """Pods of one template by key, oldest first; of all templates where these are not replaced."""

    revision: Revision
    waiting: dict[str, Pod] = field(default_factory=dict)
    available: dict[str, Pod] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.waiting) + len(self.available)

    def last(self) -> Pod:
        """Remove and return the pod to scale down first: pending before bound, then the youngest."""
        _, pod = (self.waiting or self.available).popitem()
        return pod


class Replicated:
    """One owner, with a set of pods for each template, the newest template last."""

    def __init__(self, pods: ReplicatedPods) -> None:
        self._pods = pods
        self._sets: list[_Set] = []

    def apply(self, revision: Revision) -> None:
        """Create, replace and remove pods as this revision of their owner requires."""
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
        """Handle a pod of the owner that was bound."""
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
        """Scale the newest set towards its size; returns whether anything changed."""
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
        """Remove pods of older templates within the limits; returns whether any was removed."""
        newest, older = self._sets[-1], self._sets[:-1]
        least = newest.revision.replicas - self._fenceposts()[1]
        may_leave = sum(map(len, self._sets)) - least - len(newest.waiting)
        if not older or may_leave <= 0:
            return False
        # Pending pods go first: that makes no more pods unavailable.
        left = self._taken(older, may_leave, lambda each: len(each.waiting))
        spare = sum(len(each.available) for each in self._sets) - least
        return left + self._taken(older, spare, len) > 0

    def _taken(self, sets: Sequence[_Set], most: int, of: Callable[[_Set], int]) -> int:
        """Remove at most that many pods, the oldest set first; returns the count."""
        taken = 0
        for each in sets:
            count = max(0, min(of(each), most - taken))
            self._shrink(each, count)
            taken += count
        return taken

    def _fenceposts(self) -> tuple[int, int]:
        """`maxSurge` and `maxUnavailable` as numbers of pods."""
        revision = self._sets[-1].revision
        surge = revision.rollout.surge.of(revision.replicas, up=True)
        unavailable = revision.rollout.unavailable.of(revision.replicas, up=False)
        # With both rounded to 0, a rollout would never begin.
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
    """The pods of all sets, as one set of the revision."""
    made = _Set(revision)
    for each in sets:
        made.waiting |= each.waiting
        made.available |= each.available
    return made
