"""Asking a plugin: the head of a call, its deadline, and the second try that a failed precondition allows.

An answer counts once it was read and found right: what the protocol does not allow is a failure as any other.

Source: docs/protocol.md "Scheduling calls".
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import grpc
import grpc.aio

from berth.framework.clock import SYSTEM_CLOCK
from berth.framework.cycle_record import CycleRecord
from berth.framework.cycle_state import CycleState
from berth.objects.pod import Pod
from berth.out_of_tree._generated import common_pb2
from berth.out_of_tree.connection import Connection
from berth.out_of_tree.errors import (
    CallFailedError,
    LateError,
    NotConnectedError,
    OutOfTimeError,
    PluginFailedError,
    ProtocolError,
    SidecarError,
)
from berth.out_of_tree.plugin_metrics import PluginMetrics
from berth.out_of_tree.raw_objects import RawObjects
from berth.out_of_tree.state_feed import StateFeed
from berth.out_of_tree.time_budget import seconds_left
from berth.out_of_tree.traceparent import CallSpan, Metadata

REASON_KEY = "berth-reason"

R = TypeVar("R")
_OUTCOMES: Mapping[type[SidecarError], str] = {
    LateError: "late",
    CallFailedError: "failed",
    PluginFailedError: "error",
    ProtocolError: "garbled",
}


@dataclass(frozen=True, slots=True)
class CallContext:
    """What calls need of the host, one for all plugins.

    `patched` is told of labels and annotations to be written to a pod, and gives a way to take that back;
    `landed` reads from the API server whether a pod is on that node.
    """

    pods: RawObjects[Pod]
    sampled: Callable[[bytes], bool]
    metrics: PluginMetrics
    patched: Callable[[Pod, Mapping[str, Any]], Callable[[], None]]
    landed: Callable[[Pod, str], Awaitable[bool]] | None


@dataclass(frozen=True, slots=True, eq=False)
class Caller:
    """Calls one plugin, in one version of it, in the name of one profile."""

    connection: Connection
    feed: StateFeed
    profile: str
    around: CallContext

    @property
    def plugin(self) -> str:
        """The plugin's name."""
        return self.connection.spec.name

    def head(self, state: CycleState, pod: Pod, *, with_state: bool = True) -> common_pb2.Call:
        """The head of a request: which pod and attempt, against which state."""
        if with_state:
            self.feed.catch_up()
        record = state.get(CycleRecord)
        ref = common_pb2.PodRef(
            uid=pod.uid,
            namespace=pod.namespace,
            name=pod.name,
            attempt=record.attempt if record else 0,
            object=self.around.pods.get(pod.uid) or None,
        )
        return common_pb2.Call(
            epoch=self.connection.epoch,
            generation=self.feed.generation,
            deltas=self.feed.carried(self.connection.acknowledged) if with_state else (),
            profile=self.profile,
            pod=ref,
        )

    async def ask(self, name: str, request: Any, state: CycleState, read: Callable[[Any], R]) -> R:
        """What is read out of the plugin's response to a request of its scheduling service.

        Raises: NotConnectedError, OutOfTimeError, CallFailedError, PluginFailedError, ProtocolError.
        """
        seconds = min(self.connection.seconds_for(name), seconds_left(state, name))
        if seconds <= 0:
            raise OutOfTimeError(self.plugin, f"{name} was not asked: the cycle's time is used up")
        with (
            Counted(self, name),
            CallSpan(state.get(CycleRecord), f"{self.plugin} {name}", self.around.sampled) as metadata,
        ):
            return read(await self._in_time(name, request, metadata, seconds))

    async def ask_queueing(self, name: str, request: Any, read: Callable[[Any], R]) -> R:
        """What is read out of the response to a request of its queueing service; no pod waits for it.

        Raises: NotConnectedError, CallFailedError, ProtocolError.
        """
        seconds = self.connection.seconds_for(name)
        with Counted(self, name):
            try:
                async with asyncio.timeout(seconds) as budget:
                    response = await self._once(name, request, (), budget, self.connection.queueing)
            except TimeoutError:
                raise LateError(self.plugin, f"{name} was not answered in time") from None
            except grpc.aio.AioRpcError as error:
                raise self._failure(name, error) from error
            return read(response)

    def check_generation(self, request: Any, generation: int) -> None:
        """Take note of the generation that a response is about.

        Raises: ProtocolError where it cannot be about that one.
        """
        if generation < request.call.generation:
            text = f"answered for generation {generation}, was asked for {request.call.generation}"
            raise ProtocolError(self.plugin, text)
        self.connection.holds(generation)

    async def _in_time(self, name: str, request: Any, metadata: Metadata, seconds: float) -> Any:
        try:
            async with asyncio.timeout(seconds) as budget:
                return await self._twice(name, request, metadata, budget)
        except TimeoutError:
            self.connection.late()
            raise LateError(self.plugin, f"{name} was not answered in time") from None
        except asyncio.CancelledError:
            # A channel that is closed cancels its calls, and those whoever waits; our own end differs.
            if (task := asyncio.current_task()) is None or task.cancelling():
                raise
            raise CallFailedError(self.plugin, f"{name} was cut off with the connection") from None

    async def _twice(self, name: str, request: Any, metadata: Metadata, budget: asyncio.Timeout) -> Any:
        """Ask, mend what the plugin says is amiss, ask again."""
        try:
            return await self._once(name, request, metadata, budget, self.connection.scheduling)
        except grpc.aio.AioRpcError as error:
            if not await self._mended(_reason(error)):
                raise self._failure(name, error) from error
        self._renew(request.call)
        try:
            return await self._once(name, request, metadata, budget, self.connection.scheduling)
        except grpc.aio.AioRpcError as error:
            raise self._failure(name, error) from error

    async def _once(
        self, name: str, request: Any, metadata: Metadata, budget: asyncio.Timeout, stub: Any
    ) -> Any:
        if stub is None:
            why = self.connection.last_error or "waiting for it"
            raise NotConnectedError(self.plugin, f"not connected: {why}")
        left = (budget.when() or 0.0) - asyncio.get_running_loop().time()
        try:
            response = await getattr(stub, name)(request, timeout=left, metadata=metadata)
        except grpc.aio.UsageError as error:
            raise NotConnectedError(self.plugin, f"not connected: {error}") from error
        self.connection.in_time()
        if response is None:
            raise ProtocolError(self.plugin, f"the reply to {name} can't be read")
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
        if data := self.around.pods.get(call.pod.uid):
            call.pod.object = data

    def _failure(self, name: str, error: grpc.aio.AioRpcError) -> SidecarError:
        if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
            self.connection.late()
            return LateError(self.plugin, f"{name} was not answered in time")
        if error.code() is not grpc.StatusCode.UNAVAILABLE:
            self.connection.in_time()
        return CallFailedError(self.plugin, f"{name} failed: {error.code().name}: {error.details()}")


class Counted:
    """Counts a call, and lets the circuit know of it.

    Raises: NotConnectedError at its beginning where the circuit is open.
    """

    __slots__ = ("_caller", "_name", "_started")

    def __init__(self, caller: Caller, name: str) -> None:
        self._caller = caller
        self._name = name

    def __enter__(self) -> None:
        connection = self._caller.connection
        if not connection.breaker.admits():
            self._caller.around.metrics.called(self._caller.plugin, self._name, "refused", 0.0)
            raise NotConnectedError(self._caller.plugin, f"not called: {connection.last_failure}")
        self._started = SYSTEM_CLOCK.monotonic()

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        connection = self._caller.connection
        outcome = "ok" if error is None else "gave up"
        if isinstance(error, SidecarError):
            outcome = _OUTCOMES.get(type(error), "refused")
        if outcome in ("ok", "error"):
            connection.breaker.succeeded()
        elif outcome in ("refused", "gave up"):
            connection.breaker.gave_up()
        else:
            assert isinstance(error, SidecarError)
            connection.failed(error)
        seconds = SYSTEM_CLOCK.monotonic() - self._started
        self._caller.around.metrics.called(self._caller.plugin, self._name, outcome, seconds)


def _reason(error: grpc.aio.AioRpcError) -> str:
    if error.code() is not grpc.StatusCode.FAILED_PRECONDITION:
        return ""
    return next((str(value) for key, value in error.trailing_metadata() or () if key == REASON_KEY), "")
