"""The writers of a core on a tape: each write is a numbered call, and its answer an input of its own.

The same classes stand before the real writers while a core is recorded, and alone in a replay: what a call is
made of, and how its answer comes back, is said once.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Generic, Protocol, TypeVar

from berth.framework.handle import NO_ANNOTATIONS, ApiWriter, OnBound, PodGoneError, VolumeWriter
from berth.framework.mirrors.group_trees import AnyGroup
from berth.framework.ports.claim_writing import ClaimWriteError, ClaimWriter
from berth.framework.ports.pod_group_writing import PodGroupWriter
from berth.objects.devices.resource_claims import Allocation, Consumer, ResourceClaim
from berth.objects.pod_groups import PodGroupCondition
from berth.objects.pods.pod import Pod, PodCondition
from berth.objects.volumes.storage import PersistentVolume, PersistentVolumeClaim

W = TypeVar("W")

BIND: Final = "bind"
"""The call that puts a pod on a node."""

KNOWN_ERRORS = {each.__name__: each for each in (PodGoneError, ClaimWriteError)}


def error_of(name: str, text: str) -> Exception:
    """An error that the core takes for the one that was recorded."""
    kind: type[Exception] = KNOWN_ERRORS.get(name) or type(name, (Exception,), {})
    return kind(text)


class TapedCalls(Protocol):
    """Makes calls, or has the tape answer them."""

    async def make(self, method: str, arguments: tuple[Any, ...], real: Callable[[], Awaitable[Any]]) -> Any:
        """The answer to a call. Raises: what the call raises."""

    def begin(
        self,
        method: str,
        arguments: tuple[Any, ...],
        real: Callable[[OnBound], None],
        done: OnBound,
    ) -> None:
        """Begin a call whose answer `done` gets, never before this returns."""


class _Writer(Generic[W]):
    def __init__(self, calls: TapedCalls, real: W) -> None:
        self._calls = calls
        self._real = real


class TapedPodWrites(_Writer[ApiWriter]):
    """Implements berth.framework.handle.ApiWriter."""

    def bind(
        self, pod: Pod, node_name: str, done: OnBound, annotations: Mapping[str, str] = NO_ANNOTATIONS
    ) -> None:
        """Create the binding."""
        self._calls.begin(
            BIND,
            (pod, node_name, annotations),
            lambda answered: self._real.bind(pod, node_name, answered, annotations),
            done,
        )

    async def patch_pod_status(
        self, pod: Pod, condition: PodCondition | None, nominated_node_name: str | None
    ) -> None:
        """Write a condition and a nomination."""
        arguments = (pod, condition, nominated_node_name)
        await self._calls.make("patch_pod_status", arguments, lambda: self._real.patch_pod_status(*arguments))

    async def patch_pod_metadata(self, pod: Pod, patch: Mapping[str, Any]) -> None:
        """Merge labels and annotations into the pod."""
        await self._calls.make(
            "patch_pod_metadata", (pod, patch), lambda: self._real.patch_pod_metadata(pod, patch)
        )

    async def delete_pod(self, pod: Pod) -> None:
        """Delete the pod."""
        await self._calls.make("delete_pod", (pod,), lambda: self._real.delete_pod(pod))


class Volumes(_Writer[VolumeWriter]):
    """Implements berth.framework.handle.VolumeWriter."""

    async def keep_volume(self, volume: PersistentVolume) -> PersistentVolume:
        """Write the volume's claim reference; the volume as stored."""
        stored: PersistentVolume = await self._calls.make(
            "keep_volume", (volume,), lambda: self._real.keep_volume(volume)
        )
        return stored

    async def select_node(self, claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
        """Write the claim's selected node; the claim as stored."""
        stored: PersistentVolumeClaim = await self._calls.make(
            "select_node", (claim,), lambda: self._real.select_node(claim)
        )
        return stored


class Claims(_Writer[ClaimWriter]):
    """Implements berth.framework.ports.claim_writing.ClaimWriter."""

    async def create(self, claim: ResourceClaim, generate_name: str) -> ResourceClaim:
        """Create a claim; it as stored."""
        return await self._claim(
            "create_claim", (claim, generate_name), lambda: self._real.create(claim, generate_name)
        )

    async def reserve(
        self, claim: ResourceClaim, consumer: Consumer, allocation: Allocation | None
    ) -> ResourceClaim:
        """Reserve the claim for a pod or a group; it as stored."""
        arguments = (claim, consumer, allocation)
        return await self._claim("reserve_claim", arguments, lambda: self._real.reserve(*arguments))

    async def unreserve(self, claim: ResourceClaim, consumer: Consumer) -> ResourceClaim:
        """Reserve the claim for that pod or group no more; it as stored."""
        arguments = (claim, consumer)
        return await self._claim("unreserve_claim", arguments, lambda: self._real.unreserve(*arguments))

    async def deallocate(self, claim: ResourceClaim) -> ResourceClaim:
        """Take the allocation out of the claim; it as stored."""
        return await self._claim("deallocate_claim", (claim,), lambda: self._real.deallocate(claim))

    async def delete(self, claim: ResourceClaim) -> None:
        """Delete the claim."""
        await self._calls.make("delete_claim", (claim,), lambda: self._real.delete(claim))

    async def publish(self, pod: Pod, claim_name: str, mappings: Sequence[Mapping[str, Any]]) -> None:
        """Tell in the pod's status which claim serves its extended resources."""
        arguments = (pod, claim_name, mappings)
        await self._calls.make("publish_claim", arguments, lambda: self._real.publish(*arguments))

    async def _claim(
        self, method: str, arguments: tuple[Any, ...], real: Callable[[], Awaitable[ResourceClaim]]
    ) -> ResourceClaim:
        stored: ResourceClaim = await self._calls.make(method, arguments, real)
        return stored


class PodGroups(_Writer[PodGroupWriter]):
    """Implements berth.framework.ports.pod_group_writing.PodGroupWriter."""

    async def write_condition(self, group: AnyGroup, condition: PodGroupCondition) -> None:
        """Put the condition among those of the group."""
        arguments = (group, condition)
        await self._calls.make(
            "write_group_condition", arguments, lambda: self._real.write_condition(*arguments)
        )
