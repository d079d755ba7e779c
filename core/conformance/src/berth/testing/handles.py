"""Handles for plugins under test, and fakes of what a handle leads to."""

import random
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextvars import Context
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import msgspec

from berth.config.feature_gates import FeatureGates
from berth.config.plugin_args import ARGS_TYPES
from berth.config.releases.release import DEFAULT, Release, effective
from berth.framework.handle import NO_ANNOTATIONS, Handle, OnBound, VolumeWriter
from berth.framework.interface import Plugin
from berth.framework.mirrors.group_trees import AnyGroup
from berth.framework.mirrors.listers import Listers
from berth.framework.ports.background import Promise, Timer
from berth.framework.ports.claim_writing import ClaimWriter
from berth.framework.preempting import Preemption
from berth.framework.runtime import Framework
from berth.objects.api_object import ObjectMeta
from berth.objects.pods.pod import Pod, PodCondition
from berth.objects.volumes.storage import PersistentVolume, PersistentVolumeClaim
from berth.preemption.evaluator import Evaluator
from berth.snapshot.journal import Journal
from berth.snapshot.snapshot import Snapshot

P = TypeVar("P", bound=Plugin)
T = TypeVar("T")

NO_FRAMEWORKS: Mapping[str, Framework] = {}


@dataclass(slots=True)
class ManualClock:
    """A clock that moves only when a test moves it; all time that passes is CPU. Units: seconds."""

    seconds: float = 0.0
    ahead: float = 0.0
    """By how much the wall clock was set forward, or back."""

    def wall(self) -> float:
        """The wall clock."""
        return self.seconds + self.ahead

    def monotonic(self) -> float:
        """The clock that never jumps."""
        return self.seconds

    def cpu(self) -> float:
        """The thread's CPU."""
        return self.seconds


@dataclass(slots=True)
class RememberingWriter:
    """An API writer that remembers its calls; `failure` is raised by each, or its outcome."""

    bindings: list[tuple[Pod, str]] = field(default_factory=list)
    patches: list[tuple[Pod, Any]] = field(default_factory=list)
    deleted: list[Pod] = field(default_factory=list)
    failure: Exception | None = None

    def bind(
        self, pod: Pod, node_name: str, done: OnBound, annotations: Mapping[str, str] = NO_ANNOTATIONS
    ) -> None:
        """Remember the binding."""
        del annotations
        if self.failure is None:
            self.bindings.append((pod, node_name))
        done(self.failure)

    async def patch_pod_status(
        self, pod: Pod, condition: PodCondition | None, nominated_node_name: str | None
    ) -> None:
        """Remember the patch."""
        self._fail()
        self.patches.append((pod, (condition, nominated_node_name)))

    async def patch_pod_metadata(self, pod: Pod, patch: Mapping[str, Any]) -> None:
        """Remember the patch."""
        self._fail()
        self.patches.append((pod, patch))

    async def delete_pod(self, pod: Pod) -> None:
        """Remember the pod."""
        self._fail()
        self.deleted.append(pod)

    def _fail(self) -> None:
        if self.failure is not None:
            raise self.failure


@dataclass(slots=True)
class RecordingVolumeWriter:
    """A volume writer that remembers what it was given, and gives it back as stored, one version on.

    `failure` is raised by each call.
    """

    volumes: list[PersistentVolume] = field(default_factory=list)
    claims: list[PersistentVolumeClaim] = field(default_factory=list)
    failure: Exception | None = None

    async def keep_volume(self, volume: PersistentVolume) -> PersistentVolume:
        """Remember the volume."""
        if self.failure is not None:
            raise self.failure
        self.volumes.append(volume)
        return msgspec.structs.replace(volume, metadata=next_version(volume.metadata))

    async def select_node(self, claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
        """Remember the claim."""
        if self.failure is not None:
            raise self.failure
        self.claims.append(claim)
        return msgspec.structs.replace(claim, metadata=next_version(claim.metadata))


def next_version(metadata: ObjectMeta) -> ObjectMeta:
    """The metadata after a write."""
    return msgspec.structs.replace(metadata, resource_version=str(int(metadata.resource_version or 0) + 1))


@dataclass(slots=True)
class RecordingRecorder:
    """An event recorder that remembers its events."""

    events: list[tuple[str, str, str, str, str]] = field(default_factory=list)
    related: list[Pod | AnyGroup | None] = field(default_factory=list)

    def event(
        self,
        pod: Pod,
        kind: str,
        reason: str,
        action: str,
        note: str,
        *,
        related: Pod | AnyGroup | None = None,
        controller: str = "",
    ) -> None:
        """Remember the event."""
        del controller
        self.events.append((pod.key, kind, reason, action, note))
        self.related.append(related)


@dataclass(slots=True)
class FixedNominator:
    """Nominations that a test gives, in order."""

    by_node: dict[str, list[Pod]] = field(default_factory=dict)
    _changes: Journal[str] = field(default_factory=lambda: Journal(0))

    @property
    def changes(self) -> Journal[str]:
        """A journal that has forgotten everything: tests change nominations as they like."""
        self._changes.note("")
        return self._changes

    @classmethod
    def of(cls, pods: Iterable[Pod]) -> "FixedNominator":
        """The nominations that stand in the pods' own status."""
        nominator = cls()
        for pod in pods:
            if pod.nominated_node_name:
                nominator.by_node.setdefault(pod.nominated_node_name, []).append(pod)
        return nominator

    def node_of(self, uid: str) -> str:
        """The node that the pod of that UID is nominated to, empty if to none."""
        return next((name for name, pods in self.by_node.items() if any(p.uid == uid for p in pods)), "")

    def nominated_pods_for_node(self, node_name: str) -> Iterable[Pod]:
        """The pods nominated to that node."""
        return self.by_node.get(node_name, ())

    def nodes_with_nominations(self) -> Iterable[str]:
        """The nodes that some pod is nominated to."""
        return list(self.by_node)

    def delete(self, pod: Pod) -> None:
        """Take the pod's nomination back."""
        self.by_node = {
            name: [other for other in pods if other.uid != pod.uid] for name, pods in self.by_node.items()
        }


class NoWaitingPods:
    """No pod waits for permission."""

    def get(self, uid: str) -> None:
        """Give none."""
        del uid

    def __iter__(self) -> Iterator[Any]:
        return iter(())


class NoPodsInPreBind:
    """No pod's PreBind plugins are at work."""

    def get(self, uid: str) -> None:
        """Give none."""
        del uid


class Unstarted:
    """Background work that is never started, and timers that never fire."""

    def spawn(self, work: Coroutine[Any, Any, None], name: str, context: Context | None = None) -> None:
        """Drop the work."""
        del name, context
        work.close()

    def outcome(self) -> Promise:
        """Nothing arrives here."""
        raise NotImplementedError("a test that waits for outcomes brings its own background")

    def call_later(self, seconds: float, call: Callable[[], None]) -> Timer:
        """A timer that stands still."""
        del seconds, call
        return StoppedTimer()

    async def unless(self, stop: Promise, work: Awaitable[T]) -> T | None:
        """The work; nothing stops it."""
        del stop
        return await work

    async def breathe(self) -> None:
        """No other task wants a turn."""

    async def all_of(self, work: Sequence[Awaitable[T]]) -> list[T]:
        """One after the other."""
        return [await one for one in work]


class StoppedTimer:
    """A timer that never fires."""

    def cancel(self) -> None:
        """It does not fire anyway."""


def make_handle(
    snapshot: Snapshot | None = None,
    *,
    gates: Mapping[str, bool] | None = None,
    listers: Listers | None = None,
    nominator: FixedNominator | None = None,
    writer: RememberingWriter | None = None,
    volume_writer: VolumeWriter | None = None,
    claim_writer: ClaimWriter | None = None,
    known: Callable[[Pod], Pod | None] = lambda pod: pod,
    profile_name: str = "default-scheduler",
    preemption: Preemption | None = None,
    frameworks: Mapping[str, Framework] = NO_FRAMEWORKS,
    release: Release = DEFAULT,
) -> Handle:
    """A handle on fakes, with the rules and gates of that release; preemption takes every pod as it is given.

    Unless `preemption` is given, it simulates cycles with the profile of `frameworks`, which may be filled
    later.
    """
    features = FeatureGates(dict(gates or {}), effective(release))
    handle = Handle(
        profile_name=profile_name,
        snapshot=Snapshot() if snapshot is None else snapshot,  # an empty one is falsy
        listers=listers or Listers(),
        nominator=nominator or FixedNominator(),
        waiting_pods=NoWaitingPods(),
        writer=writer or RememberingWriter(),
        recorder=RecordingRecorder(),
        clock=ManualClock(),
        random=random.Random(0),
        feature_enabled=features.enabled,
        rules=features.rules,
        activate=lambda _: None,
        background=Unstarted(),
        pods_in_pre_bind=NoPodsInPreBind(),
        volume_writer=volume_writer or RecordingVolumeWriter(),
        claim_writer=claim_writer,
        known=known,
    )
    return replace(handle, preemption=preemption or Evaluator(handle, frameworks))


def make_plugin(kind: Callable[[Any, Handle], P], args: Any = None, **handle: Any) -> P:
    """The plugin with its default arguments, or those given, and a handle made from the other keywords."""
    if args is None:
        kind_of_args = ARGS_TYPES.get(getattr(kind, "__name__", ""))
        args = kind_of_args() if kind_of_args else None
    return kind(args, make_handle(**handle))
