"""Asking a plugin: the head of a call, its deadline, and the second try that a failed precondition allows.

Source: docs/protocol.md "Scheduling calls".
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import grpc
import grpc.aio

from berth.framework.cycle_record import CycleRecord
from berth.framework.cycle_state import CycleState
from berth.objects.pod import Pod
from berth.out_of_tree._generated import common_pb2
from berth.out_of_tree.connection import Connection
from berth.out_of_tree.errors import CallFailedError, NotConnectedError, ProtocolError, SidecarError
from berth.out_of_tree.raw_objects import RawObjects
from berth.out_of_tree.state_feed import StateFeed
from berth.out_of_tree.traceparent import Metadata, call_span

DEFAULT_SECONDS = 1.0
LONGEST_SECONDS = 10.0
REASON_KEY = "berth-reason"


@dataclass(frozen=True, slots=True)
class Caller:
    """Calls one plugin in the name of one profile.

    `patched` is told of labels and annotations to be written to a pod, and gives a way to take that back.
    """

    connection: Connection
    feed: StateFeed
    pods: RawObjects[Pod]
    profile: str
    sampled: Callable[[bytes], bool]
    patched: Callable[[Pod, Mapping[str, Any]], Callable[[], None]]

    def head(self, state: CycleState, pod: Pod, *, with_state: bool = True) -> common_pb2.Call:
        """The head of a request: which pod and attempt, against which state."""
        record = state.get(CycleRecord)
        ref = common_pb2.PodRef(
            uid=pod.uid,
            namespace=pod.namespace,
            name=pod.name,
            attempt=record.attempt if record else 0,
            object=self.pods.get(pod.uid) or None,
        )
        return common_pb2.Call(
            epoch=self.connection.epoch,
            generation=self.feed.generation,
            deltas=self.feed.carried(self.connection.acknowledged) if with_state else (),
            profile=self.profile,
            pod=ref,
        )

    async def ask(self, name: str, request: Any, state: CycleState) -> Any:
        """The plugin's response to a request of its scheduling service.

        Raises: NotConnectedError, CallFailedError, ProtocolError.
        """
        with call_span(state.get(CycleRecord), f"{self._plugin} {name}", self.sampled) as metadata:
            try:
                async with asyncio.timeout(self.seconds) as budget:
                    return await self._twice(name, request, metadata, budget)
            except TimeoutError:
                self.connection.late()
                raise CallFailedError(self._plugin, f"{name} was not answered in time") from None
            except asyncio.CancelledError:
                # A channel that is closed cancels its calls, and those whoever waits; our own end differs.
                if (task := asyncio.current_task()) is None or task.cancelling():
                    raise
                raise CallFailedError(self._plugin, f"{name} was cut off with the connection") from None

    def check_generation(self, request: Any, generation: int) -> None:
        """Take note of the generation that a response is about.

        Raises: ProtocolError where it cannot be about that one.
        """
        if generation < request.call.generation:
            text = f"answered for generation {generation}, was asked for {request.call.generation}"
            raise ProtocolError(self._plugin, text)
        self.connection.holds(generation)

    async def _twice(self, name: str, request: Any, metadata: Metadata, budget: asyncio.Timeout) -> Any:
        """Ask, mend what the plugin says is amiss, ask again."""
        try:
            return await self._once(name, request, metadata, budget)
        except grpc.aio.AioRpcError as error:
            if not await self._mended(_reason(error)):
                raise self._failure(name, error) from error
        self._renew(request.call)
        try:
            return await self._once(name, request, metadata, budget)
        except grpc.aio.AioRpcError as error:
            raise self._failure(name, error) from error

    async def _once(self, name: str, request: Any, metadata: Metadata, budget: asyncio.Timeout) -> Any:
        stub = self.connection.scheduling
        if stub is None:
            why = self.connection.last_error or "waiting for it"
            raise NotConnectedError(self._plugin, f"not connected: {why}")
        left = (budget.when() or 0.0) - asyncio.get_running_loop().time()
        try:
            response = await getattr(stub, name)(request, timeout=left, metadata=metadata)
        except grpc.aio.UsageError as error:
            raise NotConnectedError(self._plugin, f"not connected: {error}") from error
        self.connection.in_time()
        if response is None:
            raise ProtocolError(self._plugin, f"the reply to {name} can't be read")
        return response

    async def _mended(self, reason: str) -> bool:
        """Whether a second try makes sense, after what that failed precondition asks for."""
        match reason:
            case "NOT_CONFIGURED":
                await self.connection.configured_again(self.profile)
            case "NOT_SYNCED":
                await self.connection.synced_again()
            case "GENERATION_GONE" | "POD_UNKNOWN":
                pass
            case _:
                return False
        return True

    def _renew(self, call: common_pb2.Call) -> None:
        """Ask about the newest generation, with the pod's newest object."""
        call.generation = self.feed.generation
        del call.deltas[:]
        call.deltas.extend(self.feed.carried(self.connection.acknowledged))
        if data := self.pods.get(call.pod.uid):
            call.pod.object = data

    def _failure(self, name: str, error: grpc.aio.AioRpcError) -> SidecarError:
        if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
            self.connection.late()
            return CallFailedError(self._plugin, f"{name} was not answered in time")
        if error.code() is not grpc.StatusCode.UNAVAILABLE:
            self.connection.in_time()
        return CallFailedError(self._plugin, f"{name} failed: {error.code().name}: {error.details()}")

    @property
    def _plugin(self) -> str:
        return self.connection.spec.name

    @property
    def seconds(self) -> float:
        """How long a call may take: the list's word, else the plugin's wish within bounds."""
        spec, wish = self.connection.spec, self.connection.capabilities
        if spec.timeout is not None:
            return spec.timeout.seconds
        seconds: float = wish.wanted_deadline.seconds + wish.wanted_deadline.nanos / 1e9
        return min(seconds, LONGEST_SECONDS) if seconds > 0 else DEFAULT_SECONDS


def _reason(error: grpc.aio.AioRpcError) -> str:
    if error.code() is not grpc.StatusCode.FAILED_PRECONDITION:
        return ""
    return next((str(value) for key, value in error.trailing_metadata() or () if key == REASON_KEY), "")
