"""When the scheduler of a recorded cluster decided, and what: read off what it wrote.

    pod without a node --spec.nodeName--------------> it was put there
                       --PodScheduled is False------> it had no node
    before the binding: selected-node of a claim, a volume kept for it, a device claim reserved for the pod

A decision stands before the first event that came of it. Else its own consequences would decide it: a pod
whose volume was made for a node goes nowhere else.

Bindings land in another order than pods are decided in, because each is a request of its own. The queue's
order is known for pods of one priority that were not tried before: the one that came first is decided first.
So a decision stands before each binding that overtook its own.

Source: pkg/scheduler/framework/plugins/queuesort/priority_sort.go (Kubernetes v1.36).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from berth.objects.devices.resource_claims import ResourceClaim
from berth.objects.pods.pod import Pod, PodCondition
from berth.objects.pods.pod_volumes import claim_uses
from berth.objects.volumes.storage import SELECTED_NODE, PersistentVolume, PersistentVolumeClaim, StorageClass
from berth.observer.reading import Happened
from berth.recordings.cluster.events import Verb

UNSCHEDULABLE: Final = "Unschedulable"


class ObservedDecision(NamedTuple):
    """What was decided on a pod, "" standing for no node; `since` is the event that brought it."""

    pod: str
    node: str
    since: int


@dataclass(slots=True)
class _Waiting:
    """A pod as it is known; `since` is the event that brought it, `overtaken` the binding of a later one."""

    pod: Pod
    since: int
    overtaken: int | None = None


class _Line:
    """Pods of one priority that wait for their first attempt, in the order in which they came."""

    def __init__(self) -> None:
        self._waiting: dict[str, _Waiting] = {}

    def join(self, waiting: _Waiting) -> None:
        """Wait behind all others."""
        self._waiting[waiting.pod.uid] = waiting

    def leave(self, pod: Pod) -> None:
        """Wait no more, if it does."""
        self._waiting.pop(pod.uid, None)

    def overtake(self, bound: _Waiting, event: int) -> None:
        """Note the event at those that came before the pod that it binds. Cost: once for each pod."""
        overtaken = []
        for waiting in self._waiting.values():
            if waiting.since >= bound.since:
                break
            waiting.overtaken = event
            overtaken.append(waiting.pod)
        for pod in overtaken:
            self.leave(pod)


def decisions_of(events: Iterable[Happened]) -> Mapping[int, list[ObservedDecision]]:
    """What was decided just before each event, by the event's number."""
    following = _Following()
    found: dict[int, list[ObservedDecision]] = {}
    for event in events:
        for number, decision in following.take(event):
            found.setdefault(number, []).append(decision)
    for several in found.values():
        several.sort(key=lambda decision: decision.since)
    return found


class _Following:
    """The parts of a cluster in which decisions are seen."""

    def __init__(self) -> None:
        self._pods: dict[str, _Waiting] = {}
        self._lines: dict[tuple[str, int], _Line] = {}
        self._classes: dict[str, StorageClass] = {}
        self._kept: dict[str, str] = {}
        """The claim that each volume is kept for."""
        self._selected: dict[str, str] = {}
        """The node that was selected for each claim."""
        self._reserved: dict[str, frozenset[str]] = {}
        """The UIDs of the pods that each device claim is reserved for."""
        self._early: dict[str, int] = {}
        """The event in which a claim or a pod got its share, by the claim's key or the pod's UID."""

    def take(self, event: Happened) -> Iterator[tuple[int, ObservedDecision]]:
        """Yield the decisions that the event shows, each with the event that it stands before."""
        match event.obj:
            case Pod() as pod:
                yield from self._pod(event, pod)
            case StorageClass() as storage_class:
                self._classes[storage_class.name] = storage_class
            case PersistentVolumeClaim() as claim:
                self._claim(event, claim)
            case PersistentVolume() as volume:
                self._volume(event, volume)
            case ResourceClaim() as devices:
                self._devices(event, devices)

    def _pod(self, event: Happened, pod: Pod) -> Iterator[tuple[int, ObservedDecision]]:
        known = self._pods.get(pod.key)
        if known is not None and (event.verb is Verb.DELETE or known.pod.uid != pod.uid):
            del self._pods[pod.key]
            self._line(known.pod).leave(known.pod)
            self._early.pop(known.pod.uid, None)
            known = None
        if known is not None:
            before, known.pod = known.pod, pod
            if not before.node_name:
                yield from self._changed(event, known, before)
        elif event.verb is not Verb.DELETE:
            known = self._pods[pod.key] = _Waiting(pod, event.number)
            if not (pod.node_name or pod.spec.scheduling_gates or _verdict(pod)):
                self._line(pod).join(known)

    def _changed(
        self, event: Happened, known: _Waiting, before: Pod
    ) -> Iterator[tuple[int, ObservedDecision]]:
        """A pod without a node has another version."""
        pod, verdict, line = known.pod, _verdict(known.pod), self._line(before)
        if pod.node_name:
            line.overtake(known, event.number)
            yield self._first(event, known), ObservedDecision(pod.key, pod.node_name, known.since)
        elif verdict is not None and verdict != _verdict(before):
            yield known.overtaken or event.number, ObservedDecision(pod.key, "", known.since)
        if pod.node_name or verdict is not None:
            line.leave(before)
            known.overtaken = None
        elif before.spec.scheduling_gates and not pod.spec.scheduling_gates:
            known.since = event.number
            line.join(known)

    def _line(self, pod: Pod) -> _Line:
        return self._lines.setdefault((pod.spec.scheduler_name, pod.priority), _Line())

    def _first(self, event: Happened, waiting: _Waiting) -> int:
        """The first event that came of the pod's binding; each share of a claim serves one pod."""
        pod = waiting.pod
        early = [self._early.pop(key, 0) for key in (pod.uid, *(use.key for use in claim_uses(pod)))]
        shares = (number for number in early if number > waiting.since)
        return min([event.number, waiting.overtaken or event.number, *shares])

    def _claim(self, event: Happened, claim: PersistentVolumeClaim) -> None:
        before = self._selected.pop(claim.key, "")
        node = "" if event.verb is Verb.DELETE else claim.metadata.annotations.get(SELECTED_NODE, "")
        if node:
            self._selected[claim.key] = node
        if node != before:
            self._note(event, claim.key if node else "", claim.key)

    def _volume(self, event: Happened, volume: PersistentVolume) -> None:
        before = self._kept.pop(volume.key, "")
        ref, storage_class = volume.spec.claim_ref, self._classes.get(volume.storage_class)
        kept_for = ""
        if event.verb is not Verb.DELETE and ref is not None and storage_class and storage_class.waits:
            kept_for = self._kept[volume.key] = f"{ref.namespace}/{ref.name}"
        if kept_for != before:
            self._note(event, kept_for, before)

    def _note(self, event: Happened, claim: str, before: str) -> None:
        """Note that the event gives the claim its share, and takes back what the one before had."""
        self._early.pop(before, None)
        # A claim or volume that comes with it came after a decision that was not seen.
        if claim and event.verb is Verb.UPDATE:
            self._early[claim] = event.number

    def _devices(self, event: Happened, claim: ResourceClaim) -> None:
        before = self._reserved.pop(claim.key, frozenset())
        now: frozenset[str] = frozenset()
        if event.verb is not Verb.DELETE:
            users = (use.uid for use in claim.status.reserved_for if use.resource == "pods")
            now = self._reserved[claim.key] = frozenset(users)
        for uid in before - now:
            self._early.pop(uid, None)
        for uid in now - before:
            # Of several claims the first counts.
            self._early.setdefault(uid, event.number)


def _verdict(pod: Pod) -> PodCondition | None:
    """The condition that says that the pod found no node."""
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled" and condition.reason == UNSCHEDULABLE:
            return condition
    return None
