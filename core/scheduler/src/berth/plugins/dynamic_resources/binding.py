"""Writing a pod's claims before it is bound, and taking that back.

Source: pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go Unreserve, PreBind (Kubernetes
v1.36).
"""

from collections import deque
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial

import msgspec

from berth.framework.handle import Handle
from berth.framework.ports.background import Promise
from berth.framework.ports.claim_metrics import DeviceWait
from berth.framework.ports.claim_writing import ClaimWriter
from berth.framework.status import PluginError
from berth.objects.devices.resource_claims import ResourceClaim
from berth.objects.pods.pod import Pod
from berth.plugins.dynamic_resources.allocation_ages import AllocationAges
from berth.plugins.dynamic_resources.binding_conditions import (
    DeviceBindingError,
    DeviceTimeoutError,
    awaited_drivers,
    ready,
)
from berth.plugins.dynamic_resources.claims import ClaimUsers
from berth.plugins.dynamic_resources.extended_resources import ContainerMapping

POLL_SECONDS = 5.0


class Held(msgspec.Struct):
    """The claims of a pod that has a node: with their allocation, those in flight by UID."""

    claims: list[ResourceClaim]
    users: ClaimUsers
    in_flight: set[str] = msgspec.field(default_factory=set)
    mappings: Sequence[ContainerMapping] = ()
    made: bool = False
    """Whether the claim for extended resources, the last one, exists in the API."""

    def take_over(self, shared: Mapping[str, ResourceClaim]) -> None:
        """Count on allocations that others of the pod's group have in flight, by UID."""
        self.claims = [shared.get(claim.uid, claim) for claim in self.claims]
        self.in_flight |= shared.keys()


class ClaimBinder:
    """Writes what Reserve chose; `stamped` allocations carry the time."""

    def __init__(self, handle: Handle, *, stamped: bool, timeout_seconds: float) -> None:
        self._handle = handle
        self._tracker = handle.listers.claim_tracker
        self._turns: dict[str, deque[Promise]] = {}
        """By the UID of a claim that is being written, the writes that wait for their turn."""
        self._stamped = stamped
        self.ages = AllocationAges(handle.clock)
        """How old allocations are."""
        self._timeout_seconds = timeout_seconds

    @property
    def writer(self) -> ClaimWriter:
        """What claims are written with. Raises: PluginError where there is nothing."""
        if self._handle.claim_writer is None:
            raise PluginError("resource claims cannot be written here")
        return self._handle.claim_writer

    async def write(self, held: Held, pod: Pod) -> None:
        """Reserve each claim for the pod, or for its group, with their allocations.

        Pods that share a claim write it in turn; what the first of a group has written, the others take over.

        Raises: ClaimWriteError, and whatever the API client raises.
        """
        for index, claim in enumerate(held.claims):
            if not held.users.have(claim):
                held.claims[index] = await self._in_turn(held, claim, pod)

    async def _in_turn(self, held: Held, claim: ResourceClaim, pod: Pod) -> ResourceClaim:
        waiting = self._turns.get(claim.uid)
        turn = None
        if waiting is None:
            waiting = self._turns[claim.uid] = deque()
        else:
            turn = self._handle.background.outcome()
            waiting.append(turn)
        try:
            if turn is not None:
                await turn
            return self._written_by_others(held, claim) or await self._write_one(held, claim, pod)
        finally:
            while waiting:
                if waiting.popleft().set(None):
                    break
            else:
                self._turns.pop(claim.uid, None)

    def _written_by_others(self, held: Held, claim: ResourceClaim) -> ResourceClaim | None:
        """The claim as another pod of the group has reserved it for all of them, None where it is to be."""
        latest = self._tracker.by_key(claim.key)
        if claim.uid in held.in_flight and self._tracker.in_flight(claim.uid) is not None:
            return None
        if latest is None or latest.uid != claim.uid or latest.allocation is None:
            return None
        if not held.users.have(latest):
            return None
        held.in_flight.discard(claim.uid)
        return latest

    async def _write_one(self, held: Held, claim: ResourceClaim, pod: Pod) -> ResourceClaim:
        allocation = claim.allocation if claim.uid in held.in_flight else None
        if allocation is not None and self._tracker.in_flight(claim.uid) is None:
            # Another pod of the group has written it.
            allocation = None
        if allocation is not None and self._stamped:
            # In whole seconds, as the API server keeps it.
            moment = datetime.fromtimestamp(int(self._handle.clock.wall()), UTC)
            allocation = msgspec.structs.replace(allocation, allocation_timestamp=moment)
            self.ages.allocated(claim.uid, moment)
        target = self._as_stored(claim)
        extended = bool(held.mappings) and claim is held.claims[-1]
        if extended:
            held.claims[-1] = target = await self._create(claim, pod)
            held.made = True
        written = await self.writer.reserve(target, held.users.of(target), allocation)
        self._tracker.assume(written)
        self._tracker.written(claim.uid)
        held.in_flight.discard(claim.uid)
        if extended:
            await self._publish(written, held.mappings, pod)
        return written

    def _as_stored(self, claim: ResourceClaim) -> ResourceClaim:
        """The claim's newest version that is known: without the allocation that is to be written."""
        stored = self._tracker.by_key(claim.key)
        return claim if stored is None or stored.uid != claim.uid else stored

    async def _create(self, claim: ResourceClaim, pod: Pod) -> ResourceClaim:
        created = False
        try:
            stored = await self.writer.create(claim, f"{pod.name}-extended-resources-")
            created = True
        finally:
            self._handle.claim_metrics.claim_created(failed=not created)
        return stored

    async def _publish(self, claim: ResourceClaim, mappings: Sequence[ContainerMapping], pod: Pod) -> None:
        entries = [
            {"containerName": m.container, "resourceName": m.resource, "requestName": m.request}
            for m in mappings
        ]
        await self.writer.publish(pod, claim.name, entries)

    async def take_back(self, held: Held, pod: Pod, *, with_group: bool) -> None:
        """Let every device go, and reserve no claim for the pod any more; `with_group`: nor for its group."""
        users = held.users
        left = [one for one in (users.pod, users.group if with_group else None) if one is not None]
        in_flight = set(held.in_flight)
        for uid in in_flight:
            self._tracker.end(uid, pod)
        held.in_flight.clear()
        for claim in held.claims:
            if held.made and claim is held.claims[-1]:
                await self.writer.delete(claim)
                continue
            for consumer in left:
                if claim.uid not in in_flight and claim.reserved_for_any((consumer.uid,)):
                    self._tracker.assume(await self.writer.unreserve(claim, consumer))

    async def wait(self, held: Held, pod: Pod, node_name: str) -> None:
        """Wait until drivers report that the devices can be used.

        Raises: DeviceBindingError, PluginError where it takes too long.
        """
        drivers = {claim.key: awaited_drivers(claim) for claim in held.claims}
        waiting = [claim for claim in held.claims if drivers[claim.key]]
        if not waiting:
            return
        note = f"waiting for binding conditions for device on node {node_name}"
        self._handle.recorder.event(pod, "Normal", "BindingConditionsPending", "Scheduling", note)
        started, outcome = self._handle.clock.monotonic(), DeviceWait.ERROR
        try:
            await self._until_ready(waiting)
            outcome = DeviceWait.SUCCESS
        except DeviceBindingError:
            outcome = DeviceWait.FAILURE
            raise
        except DeviceTimeoutError:
            outcome = DeviceWait.TIMEOUT
            raise
        finally:
            seconds = self._handle.clock.monotonic() - started
            named = sorted(set().union(*drivers.values()))
            self._handle.claim_metrics.devices_awaited(self._handle.profile_name, named, outcome, seconds)

    async def _until_ready(self, waiting: Sequence[ResourceClaim]) -> None:
        deadline = self._handle.clock.monotonic() + self._timeout_seconds
        while not all(ready(self._latest(claim)) for claim in waiting):
            left = deadline - self._handle.clock.monotonic()
            if left <= 0:
                raise DeviceTimeoutError("device binding timeout")
            await self._pause(min(POLL_SECONDS, left))

    def _latest(self, claim: ResourceClaim) -> ResourceClaim:
        latest = self._tracker.by_key(claim.key)
        if latest is None or latest.uid != claim.uid or latest.allocation is None:
            raise PluginError(f"claim {claim.key} was deallocated while its devices were awaited")
        return latest

    async def _pause(self, seconds: float) -> None:
        over = self._handle.background.outcome()
        self._handle.background.call_later(seconds, partial(_deliver, over))
        await over


def _deliver(over: Promise) -> None:
    over.set(None)
