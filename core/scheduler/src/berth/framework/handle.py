"""What a plugin is given to meet the rest of the scheduler with.

Source: staging/src/k8s.io/kube-scheduler/framework/interface.go Handle (Kubernetes v1.36).
"""

import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from berth.config.releases.rules import DEFAULT_RULES, Rules
from berth.framework.clock import Clock
from berth.framework.mirrors.group_trees import AnyGroup
from berth.framework.mirrors.listers import Listers
from berth.framework.ports.background import Background
from berth.framework.ports.claim_metrics import ClaimMetrics
from berth.framework.ports.claim_writing import ClaimWriter
from berth.framework.preempting import Preemption
from berth.objects.pods.pod import Pod, PodCondition
from berth.objects.volumes.storage import PersistentVolume, PersistentVolumeClaim
from berth.snapshot.journal import Journal
from berth.snapshot.pod_group_states import PodGroupStates
from berth.snapshot.snapshot import Snapshot


class PodGoneError(Exception):
    """The pod to write to is not there any more; its name may belong to another."""


NO_ANNOTATIONS: Mapping[str, str] = {}

OnBound = Callable[[Exception | None], object]


class ApiWriter(Protocol):
    """Writes to the API server, as the adapters provide them.

    Raises (those that are awaited): PodGoneError where the pod is not there any more.
    """

    def bind(
        self, pod: Pod, node_name: str, done: OnBound, annotations: Mapping[str, str] = NO_ANNOTATIONS
    ) -> None:
        """Create the binding, with annotations for the pod; `done` is called once its outcome is certain.

        None stands for a binding that landed, any exception for one that did not. An answer that leaves this
        open (a cut connection, a time-out, a server error) is cleared up by reading the pod, however long
        that takes. `done` may be called before this returns.
        """

    async def patch_pod_status(
        self, pod: Pod, condition: PodCondition | None, nominated_node_name: str | None
    ) -> None:
        """Write a condition and, unless None, the nomination; nothing is sent where nothing would change."""

    async def patch_pod_metadata(self, pod: Pod, patch: Mapping[str, Any]) -> None:
        """Merge labels and annotations into the pod."""

    async def delete_pod(self, pod: Pod) -> None:
        """Delete the pod of that UID."""


class VolumeWriter(Protocol):
    """Writes volumes and claims, each only if it was not written since the version that is handed in.

    Raises: any exception means that the write is not known to have landed.
    """

    async def keep_volume(self, volume: PersistentVolume) -> PersistentVolume:
        """Write the volume's claim reference and who set it; the volume as stored."""

    async def select_node(self, claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
        """Write the node that is selected for the claim's new volume; the claim as stored."""


class EventRecorder(Protocol):
    """Records what happened for users, without waiting for it to be written."""

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
        """Record an event of that type (Normal, Warning) regarding the pod.

        `related` is what it happened for, if not the pod itself; `controller` is the profile that reports
        it, if not the pod's.
        """


class Nominator(Protocol):
    """Pods that were promised a node and are not on it yet.

    Source: pkg/scheduler/backend/queue/nominator.go (Kubernetes v1.36).
    """

    @property
    def changes(self) -> Journal[str]:
        """The nodes whose nominations, or nominated pods, changed."""

    def nominated_pods_for_node(self, node_name: str) -> Iterable[Pod]:
        """The pods nominated to that node, in the order of nomination."""

    def nodes_with_nominations(self) -> Iterable[str]:
        """The nodes that some pod is nominated to."""

    def node_of(self, uid: str) -> str:
        """The node that the pod of that UID is nominated to, empty if to none."""

    def delete(self, pod: Pod) -> None:
        """Take the pod's nomination back."""


class WaitingPod(Protocol):
    """A pod that Permit plugins keep waiting.

    Source: pkg/scheduler/framework/runtime/waiting_pods_map.go (Kubernetes v1.36).
    """

    pod: Pod

    def pending_plugins(self) -> list[str]:
        """Whom it waits for."""

    def allow(self, plugin: str) -> None:
        """That plugin waits no longer."""

    def reject(self, plugin: str, message: str) -> bool:
        """Turn the pod down; False where an outcome was already given."""

    def preempt(self, plugin: str, message: str) -> bool:
        """Turn the pod down in favour of another; False where an outcome was already given."""


class WaitingPods(Protocol):
    """All waiting pods of all profiles."""

    def get(self, uid: str) -> WaitingPod | None:
        """The waiting pod of that UID."""

    def __iter__(self) -> Iterator[WaitingPod]:
        """Each waiting pod."""


class PodInPreBind(Protocol):
    """A pod whose PreBind plugins are at work.

    Source: pkg/scheduler/framework/runtime/pods_in_prebind_map.go (Kubernetes v1.36).
    """

    def cancel(self, message: str) -> bool:
        """End its binding with that message; False where PreBind is over and the pod is being bound."""


class PodsInPreBind(Protocol):
    """All pods of all profiles whose PreBind plugins are at work."""

    def get(self, uid: str) -> PodInPreBind | None:
        """The pod of that UID, None where it is not in PreBind."""


@dataclass(slots=True, kw_only=True)
class Handle:
    """A plugin's access to the rest of the scheduler, one for each profile.

    `snapshot` is the current cycle's; `random` is seeded where the scheduler is made.
    """

    profile_name: str
    snapshot: Snapshot
    listers: Listers
    nominator: Nominator
    waiting_pods: WaitingPods
    writer: ApiWriter
    recorder: EventRecorder
    clock: Clock
    random: random.Random
    feature_enabled: Callable[[str], bool]
    activate: Callable[[Iterable[Pod]], None]
    background: Background
    pods_in_pre_bind: PodsInPreBind
    volume_writer: VolumeWriter
    known: Callable[[Pod], Pod | None]
    """The latest cached pod with this UID, None where it is gone."""
    rules: Rules = DEFAULT_RULES
    """What the release of Kubernetes that is followed decides otherwise than others."""
    preemption: Preemption | None = None
    """Making room for pods, for plugins that ask for it: it stands on a floor above them."""
    claim_writer: ClaimWriter | None = None
    """Writes to resource claims, where the scheduler allocates devices."""
    claim_metrics: ClaimMetrics = field(default_factory=ClaimMetrics)
    """Counts what happens to claimed volumes and devices."""
    pod_groups: PodGroupStates = field(default_factory=PodGroupStates)
    """Which pods each group has, as things are now; one for all profiles."""
