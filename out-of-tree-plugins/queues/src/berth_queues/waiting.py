"""Which pods wait in each queue, and what they want together.

waiting --placed--> counts as used --removed--> waiting (the attempt failed), or gone
   |
   +--tried in vain--> waits by itself: no other pod of the queue stands behind it, until it is placed
"""

from collections import defaultdict
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from berth_queues.amounts import Amounts, add
from berth_queues.device_claims import NO_DEVICES, PodDevices
from berth_queues.groups import GroupKey
from berth_queues.tree import NO_AMOUNTS

PAUSE_SECONDS, MAX_PAUSE_SECONDS = 1.0, 60.0


class Pause(NamedTuple):
    """Until when something is not tried again, and how often it was tried. Units: seconds of a clock."""

    until: float = 0.0
    times: int = 0

    def longer(self, now: float) -> "Pause":
        """Return the next one, twice as long: from PAUSE_SECONDS to MAX_PAUSE_SECONDS."""
        return Pause(now + min(MAX_PAUSE_SECONDS, PAUSE_SECONDS * 2.0**self.times), self.times + 1)


NO_PAUSE = Pause()


@dataclass(slots=True)
class WaitingPod:
    """A pod that waits; `number` grows with the time at which it came."""

    uid: str
    namespace: str
    queue: str
    profile: str
    priority: int
    number: int
    amounts: Amounts
    labels: Mapping[str, str] = field(default_factory=dict)
    group: GroupKey | None = None
    placed: bool = False
    in_vain: bool = False
    asked: PodDevices = NO_DEVICES
    """What its amounts come of."""
    since: float = 0.0
    """When it was first heard of. Units: seconds of the plugin's clock."""
    placed_at: float | None = None
    """When it came to count on its node; None while it counts on none."""
    counted: bool = False
    """Whether it is in its queue's tally."""
    refused: bool = False
    """Whether its queue had no room for it when it was last tried."""
    tried_in: int | None = None
    """The attempt that `refused` is of."""
    paused: Pause = NO_PAUSE
    """Since it was tried though its queue was entitled to it, and no plan was found."""

    @property
    def before_others(self) -> bool:
        """Return whether pods behind it count it."""
        return not (self.placed or self.in_vain)

    @property
    def awaits_room(self) -> bool:
        """Return whether it waits because its queue had no room for it."""
        return self.in_vain and self.refused and not self.placed

    @property
    def kind(self) -> Hashable:
        """Return what a queue's room for the pod depends on: equal for equal pods of a group, or of none."""
        amounts = frozenset(self.amounts.items())
        return self.namespace, self.queue, self.group, self.priority, amounts, self.asked.claims

    def same(self, other: "WaitingPod") -> bool:
        """Return whether the other is the same pod as it was."""
        mine = self.queue, self.profile, self.priority, self.amounts, self.labels, self.group
        return mine == (other.queue, other.profile, other.priority, other.amounts, other.labels, other.group)


@dataclass(slots=True)
class Line:
    """The waiting pods of one queue."""

    pods: dict[str, WaitingPod] = field(default_factory=dict)
    ahead: dict[int, dict[str, int]] = field(default_factory=dict)
    """What those that others count want, by priority."""
    wanted: dict[str, int] = field(default_factory=dict)
    """What all that are not placed want."""
    refused: dict[Hashable, dict[str, WaitingPod]] = field(default_factory=dict)
    """Those that were tried in vain because the queue had no room for them, by kind."""


class WaitingPods:
    """All pods that wait, by UID, by queue and by group."""

    def __init__(self) -> None:
        self.by_uid: dict[str, WaitingPod] = {}
        self.lines: defaultdict[str, Line] = defaultdict(Line)
        self.by_group: defaultdict[GroupKey, dict[str, WaitingPod]] = defaultdict(dict)
        self.changed: set[str] = set()
        """Queues whose pods may have other turns now, other than because of pods that were placed."""
        self._count = 0

    def put(self, pod: WaitingPod) -> bool:
        """Take in a pod, behind all others of its priority; False where it waits already as it is."""
        old = self.by_uid.get(pod.uid)
        if old is not None and old.same(pod):
            return False
        if old is not None:
            pod.since, pod.placed_at, pod.counted = old.since, old.placed_at, old.counted
        self.leave(pod.uid)
        self._count += 1
        pod.number = self._count
        line = self.lines[pod.queue]
        if pod.group is not None or any(other < pod.priority for other in line.ahead):
            self.changed.add(pod.queue)
        self.by_uid[pod.uid] = line.pods[pod.uid] = pod
        if pod.group is not None:
            self.by_group[pod.group][pod.uid] = pod
        self._count_in(pod, 1)
        return True

    def leave(self, uid: str) -> None:
        """Drop a pod that waits no more."""
        pod = self.by_uid.pop(uid, None)
        if pod is None:
            return
        if pod.before_others:
            self.changed.add(pod.queue)
        self._count_in(pod, -1)
        line = self.lines[pod.queue]
        del line.pods[uid]
        if not line.pods:
            del self.lines[pod.queue]
        if pod.group is not None:
            del self.by_group[pod.group][uid]
            if not self.by_group[pod.group]:
                del self.by_group[pod.group]

    def leave_profile(self, profile: str) -> list[str]:
        """Drop all pods that wait for that profile; return their UIDs."""
        leaving = [uid for uid, pod in self.by_uid.items() if pod.profile == profile]
        for uid in leaving:
            self.leave(uid)
        return leaving

    def placed(self, uid: str, now: float = 0.0) -> None:
        """Note that a pod counts on a node."""
        pod = self.by_uid.get(uid)
        if pod is not None and not pod.placed:
            pod.placed_at = now
            # Those behind it saw it before them already: the sum stays, unless it was tried in vain.
            if pod.in_vain:
                self.changed.add(pod.queue)
            self._note(pod, placed=True)

    def removed(self, uid: str) -> None:
        """Note that a pod counts on no node any more."""
        pod = self.by_uid.get(uid)
        if pod is not None:
            pod.placed_at = None
            self._note(pod, placed=False)

    def tried_in_vain(self, uid: str) -> None:
        """Let a pod that fits nowhere hold back none of its queue."""
        pod = self.by_uid.get(uid)
        if pod is not None and not pod.in_vain:
            self.changed.add(pod.queue)
            self._note(pod, in_vain=True)

    def tried(self, uid: str, attempt: int, *, refused: bool) -> None:
        """Note whether its queue refused a pod.

        Later calls of an attempt are about rows of a simulation.
        """
        pod = self.by_uid.get(uid)
        if pod is not None and pod.tried_in != attempt:
            pod.tried_in = attempt
            self._note(pod, refused=refused)

    def no_plan(self, uid: str, now: float, *, entitled: bool) -> None:
        """Note that no plan was found for a pod, though its queue may have been entitled to it."""
        pod = self.by_uid.get(uid)
        if pod is not None:
            pod.paused = pod.paused.longer(now) if entitled else NO_PAUSE

    def wanted(self, queue: str) -> Amounts:
        """Return what the queue's waiting pods want together."""
        return self.lines[queue].wanted if queue in self.lines else NO_AMOUNTS

    def moved(self, pod: WaitingPod, queue: str) -> None:
        """Let a pod wait in another queue."""
        number, placed, in_vain, refused = pod.number, pod.placed, pod.in_vain, pod.refused
        self.leave(pod.uid)
        pod.queue = queue
        self.put(pod)
        pod.number = number
        self._note(pod, placed=placed, in_vain=in_vain, refused=refused)

    def _note(
        self,
        pod: WaitingPod,
        *,
        placed: bool | None = None,
        in_vain: bool | None = None,
        refused: bool | None = None,
    ) -> None:
        self._count_in(pod, -1)
        pod.refused = pod.refused if refused is None else refused
        pod.placed = pod.placed if placed is None else placed
        pod.in_vain = pod.in_vain if in_vain is None else in_vain
        self._count_in(pod, 1)

    def _count_in(self, pod: WaitingPod, sign: int) -> None:
        line = self.lines[pod.queue]
        if not pod.placed:
            add(line.wanted, pod.amounts, sign)
        if pod.before_others:
            ahead = line.ahead.setdefault(pod.priority, {})
            add(ahead, pod.amounts, sign)
            if not ahead:
                del line.ahead[pod.priority]
        elif pod.awaits_room:
            alike = line.refused.setdefault(pod.kind, {})
            if sign > 0:
                alike[pod.uid] = pod
            else:
                del alike[pod.uid]
            if not alike:
                del line.refused[pod.kind]
