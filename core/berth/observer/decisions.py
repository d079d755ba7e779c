"""When the scheduler of a recorded cluster decided, and what: read off what it wrote.

    pod without a node --spec.nodeName--------------> it was put there
                       --PodScheduled is False------> it had no node
    before the binding: selected-node of a claim, a volume kept for it, a device claim reserved for the pod

A decision stands before the first event that came of it. Else its own consequences would decide it: a pod
whose volume was made for a node goes nowhere else.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from berth.objects.pod import Pod, PodCondition
from berth.objects.pod_volumes import claim_uses
from berth.objects.resource_claims import ResourceClaim
from berth.objects.storage import SELECTED_NODE, PersistentVolume, PersistentVolumeClaim, StorageClass
from berth.observer.events import Verb
from berth.observer.reading import Happened

UNSCHEDULABLE: Final = "Unschedulable"


class Decision(NamedTuple):
    """What was decided on a pod, "" standing for no node."""

    pod: str
    uid: str
    node: str


@dataclass(slots=True)
class _Waiting:
    """A pod as it is known; `since` is the event that brought it."""

    pod: Pod
    since: int


def decisions_of(events: Iterable[Happened]) -> Mapping[int, list[Decision]]:
    """What was decided just before each event, by the event's number."""
    following = _Following()
    found: dict[int, list[Decision]] = {}
    for event in events:
        for number, decision in following.take(event):
            found.setdefault(number, []).append(decision)
    return found


class _Following:
    """The parts of a cluster in which decisions are seen."""

    def __init__(self) -> None:
        self._pods: dict[str, _Waiting] = {}
        self._classes: dict[str, StorageClass] = {}
        self._kept: dict[str, str] = {}
        """The claim that each volume is kept for."""
        self._selected: dict[str, str] = {}
        """The node that was selected for each claim."""
        self._reserved: dict[str, frozenset[str]] = {}
        """The UIDs of the pods that each device claim is reserved for."""
        self._early: dict[str, int] = {}
        """The event in which a claim or a pod got its share, by the claim's key or the pod's UID."""

    def take(self, event: Happened) -> Iterator[tuple[int, Decision]]:
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

    def _pod(self, event: Happened, pod: Pod) -> Iterator[tuple[int, Decision]]:
        known = self._pods.get(pod.key)
        if event.verb is Verb.DELETE:
            self._pods.pop(pod.key, None)
            self._early.pop(known.pod.uid if known else "", None)
        elif known is None or known.pod.uid != pod.uid:
            self._pods[pod.key] = _Waiting(pod, event.number)
        else:
            before, known.pod = known.pod, pod
            if before.node_name:
                return
            if pod.node_name:
                yield self._first(event, known), Decision(pod.key, pod.uid, pod.node_name)
            elif (verdict := _verdict(pod)) is not None and verdict != _verdict(before):
                yield event.number, Decision(pod.key, pod.uid, "")

    def _first(self, event: Happened, waiting: _Waiting) -> int:
        """The first event that came of the pod's binding; each serves one pod."""
        pod = waiting.pod
        early = [self._early.pop(key, 0) for key in (pod.uid, *(use.key for use in claim_uses(pod)))]
        return min([event.number, *(number for number in early if number > waiting.since)])

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
            now = self._reserved[claim.key] = frozenset(use.uid for use in claim.status.reserved_for)
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
