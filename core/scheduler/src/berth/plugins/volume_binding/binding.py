"""From a chosen node to bound claims: assume the volumes taken, write them, wait until the claims are bound.

    assume -> (restore) -> write volumes, then claims -> check every second until bound, or the time is up

Source: pkg/scheduler/framework/plugins/volumebinding/binder.go AssumePodVolumes, BindPodVolumes (Kubernetes
v1.36).
"""

import msgspec

from berth.framework.handle import Handle
from berth.objects.pods.pod import Pod
from berth.objects.steps import Steps
from berth.objects.volumes.storage import (
    BOUND_BY_CONTROLLER,
    SELECTED_NODE,
    ClaimReference,
    PersistentVolume,
    PersistentVolumeClaim,
    annotated,
)
from berth.plugins.volume_binding.bound_check import BindingFailedError, BoundCheck
from berth.plugins.volume_binding.finding import NodeVolumes

CHECK_SECONDS = 1.0


class VolumeBindingWrite(msgspec.Struct):
    """A free volume that a claim gets, as it is going to be; `written` once it is, or where it is already."""

    volume: PersistentVolume
    claim: PersistentVolumeClaim
    written: bool = False


class Provisioning(msgspec.Struct):
    """A claim that gets a new volume, with the node that was selected for it."""

    claim: PersistentVolumeClaim
    written: bool = False


class AssumedVolumes(msgspec.Struct):
    """What is assumed for one pod on one node."""

    bindings: list[VolumeBindingWrite] = msgspec.field(default_factory=list)
    provisions: list[Provisioning] = msgspec.field(default_factory=list)


class VolumeBinder:
    """Takes volumes and claims for one pod after another."""

    def __init__(self, handle: Handle, timeout_seconds: float) -> None:
        self._handle = handle
        self._timeout_seconds = timeout_seconds

    def assume(self, volumes: NodeVolumes, node_name: str, assumed: AssumedVolumes) -> Steps[None]:
        """Take the volumes in memory, in steps, so that the next pods see them taken.

        Raises: BindingFailedError where one changed since it was chosen; nothing is taken then.
        """
        listers = self._handle.listers
        for claim, volume in volumes.static:
            taken = taken_by(volume, claim)
            binding = VolumeBindingWrite(taken, claim, written=taken is volume)
            self._keep_going(assumed, taken, binding.written or listers.assumed_volumes.assume(taken))
            assumed.bindings.append(binding)
            yield
        for claim in volumes.provisions:
            metadata = annotated(claim.metadata, SELECTED_NODE, node_name)
            placed = msgspec.structs.replace(claim, metadata=metadata)
            self._keep_going(assumed, placed, listers.assumed_claims.assume(placed))
            assumed.provisions.append(Provisioning(placed))
            yield

    def _keep_going(
        self, assumed: AssumedVolumes, obj: PersistentVolume | PersistentVolumeClaim, succeeded: object
    ) -> None:
        if not succeeded:
            self.restore(assumed)
            assumed.bindings.clear()
            assumed.provisions.clear()
            raise BindingFailedError(f'"{obj.key}" changed since it was chosen')

    def restore(self, assumed: AssumedVolumes) -> None:
        """Give up what is assumed; what was written shows once the watch brings it."""
        self._handle.listers.assumed_volumes.restore(b.volume for b in assumed.bindings)
        self._handle.listers.assumed_claims.restore(p.claim for p in assumed.provisions)

    async def bind(self, pod: Pod, node_name: str, assumed: AssumedVolumes) -> None:
        """Write everything, and return once every claim is bound.

        Raises: BindingFailedError where that is not going to happen, or did not within the time;
        whatever the writer raises.
        """
        await self._write(assumed)
        check = BoundCheck(
            self._handle,
            pod,
            node_name,
            [(b.volume, b.claim) for b in assumed.bindings],
            [p.claim for p in assumed.provisions],
        )
        deadline = self._handle.clock.monotonic() + self._timeout_seconds
        while True:
            left = deadline - self._handle.clock.monotonic()
            await self._sleep(max(0.0, min(CHECK_SECONDS, left)))
            if self._handle.clock.monotonic() >= deadline:
                raise BindingFailedError("context deadline exceeded")
            if check.done():
                return

    async def _write(self, assumed: AssumedVolumes) -> None:
        writer = self._handle.volume_writer
        for binding in assumed.bindings:
            if not binding.written:
                binding.volume = await writer.keep_volume(binding.volume)
                binding.written = True
        for provision in assumed.provisions:
            provision.claim = await writer.select_node(provision.claim)
            provision.written = True

    async def _sleep(self, seconds: float) -> None:
        over = self._handle.background.outcome()

        def wake() -> None:
            over.set(None)

        timer = self._handle.background.call_later(seconds, wake)
        try:
            await over
        finally:
            timer.cancel()


def taken_by(volume: PersistentVolume, claim: PersistentVolumeClaim) -> PersistentVolume:
    """The volume as it is once the claim has it; the very same one where nothing has to change."""
    ref, metadata = volume.spec.claim_ref, volume.metadata
    if not volume.kept_for(claim) and BOUND_BY_CONTROLLER not in metadata.annotations:
        metadata = annotated(metadata, BOUND_BY_CONTROLLER, "yes")
    elif ref is not None and ref.uid == claim.uid:
        return volume
    reference = ClaimReference(
        "PersistentVolumeClaim",
        "v1",
        claim.namespace,
        claim.name,
        claim.uid,
        claim.metadata.resource_version,
    )
    spec = msgspec.structs.replace(volume.spec, claim_ref=reference)
    return msgspec.structs.replace(volume, metadata=metadata, spec=spec)
