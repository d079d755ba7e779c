"""Calling a sidecar: the head of a request, its deadline, and the one retry after a failed precondition.

A call succeeds once its response was decoded and validated: a response that breaks the protocol is a failure.

Source: docs/protocol.md "Scheduling calls".
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack
from typing import Any, TypeVar

import grpc
import grpc.aio
import msgspec

from berth.framework.attempts.cycle_record import CycleRecord
from berth.framework.attempts.cycle_state import CycleState
from berth.framework.clock import SYSTEM_CLOCK
from berth.framework.hypothetical_pod import HypotheticalPod
from berth.framework.ports.plugin_metrics import PluginMetrics
from berth.framework.queueing.queued_pod import SortKey
from berth.framework.status import without_frames
from berth.objects.pods.pod import Pod
from berth.out_of_tree.cluster_state.raw_objects import RawObjects
from berth.out_of_tree.cluster_state.state_feed import StateFeed
from berth.out_of_tree.connections.connection import PluginConnection
from berth.out_of_tree.errors import (
    CallFailedError,
    CycleTimeUsedUpError,
    LateError,
    NotConnectedError,
    PluginFailedError,
    ProtocolError,
    RequestTooLargeError,
    SidecarError,
)
from berth.out_of_tree.limits import ENVELOPE_BYTES, MESSAGE_BYTES
from berth.out_of_tree.time_budget import seconds_left
from berth.out_of_tree.transport.call_attributes import rpc_outcome, rpc_request
from berth.out_of_tree.transport.rpc import RpcError, late
from berth.out_of_tree.transport.sent_call import SentCall
from berth.out_of_tree.transport.traceparent import CallSpan, Metadata
from berth_plugin_proto import common_pb2

MENDABLE = frozenset({"NOT_CONFIGURED", "NOT_SYNCED", "GENERATION_GONE", "POD_UNKNOWN"})
"""What a plugin may say of its state that a second try can do something about."""

R = TypeVar("R")
_OUTCOMES: Mapping[type[SidecarError], str] = {
    LateError: "late",
    CallFailedError: "failed",
    PluginFailedError: "error",
    ProtocolError: "garbled",
}


class CallContext(msgspec.Struct, frozen=True):
    """What calls need of the host, one for all plugins.

    `patched` gets labels and annotations to be written to a pod, and gives a way to take that back;
    `landed` reads from the API server whether a pod is on that node; `take_sort_keys` gives the queue other
    keys of pods, by UID, and answers how many it does not know.
    """

    pods: RawObjects[Pod]
    sampled: Callable[[bytes], bool]
    metrics: PluginMetrics
    patched: Callable[[Pod, Mapping[str, Any]], Callable[[], None]]
    landed: Callable[[Pod, str], Awaitable[bool]] | None
    take_sort_keys: Callable[[Mapping[str, SortKey]], int]


class Caller(msgspec.Struct, frozen=True, eq=False):
    """Calls one plugin, in one version of it, in the name of one profile."""

    connection: PluginConnection
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
        supposed: HypotheticalPod | None = state.get(HypotheticalPod)
        return common_pb2.Call(
            epoch=self.connection.epoch,
            generation=self.feed.generation,
            deltas=self.feed.carried(self.connection.acknowledged) if with_state else (),
            profile=self.profile,
            pod=self._hypothetical(supposed) if supposed else self.ref(pod, attempt_of(state)),
        )

    def _hypothetical(self, pod: HypotheticalPod) -> common_pb2.PodRef:
        """The message of a hypothetical pod: one that does not exist in the cluster."""
        data = pod.object(self.around.pods.get(pod.before.uid))
        return common_pb2.PodRef(
            uid=pod.uid, namespace=pod.before.namespace, name=pod.before.name, object=data
        )

    def ref(self, pod: Pod, attempt: int = 0) -> common_pb2.PodRef:
        """The pod in a message, with its object if that is there."""
        data = self.around.pods.get(pod.uid) or None
        return common_pb2.PodRef(
            uid=pod.uid, namespace=pod.namespace, name=pod.name, attempt=attempt, object=data
        )

    def ask(self, name: str, request: Any, state: CycleState, read: Callable[[Any], R]) -> SentCall[R]:
        """Send a request about a pod or its group; to be awaited for what is read out of the response.

        What goes wrong is raised there: NotConnectedError, CycleTimeUsedUpError, RequestTooLargeError,
        CallFailedError, PluginFailedError, ProtocolError.
        """
        seconds = min(self.connection.seconds_for(name), seconds_left(state, name))
        ends = asyncio.get_running_loop().time() + seconds
        span = CallSpan(
            state.get(CycleRecord),
            f"{self.plugin} {name}",
            self.around.sampled,
            rpc_request(self.connection.endpoint, name),
            rpc_outcome,
        )

        async def answer(response: Awaitable[Any]) -> R:
            try:
                received = await response
            except RpcError as error:
                received = await self._retried(name, request, span, ends, error)
            return read(self._received(name, received))

        with ExitStack() as scopes:
            response = self._begun(name, request, span, seconds, scopes)
            return SentCall(response, scopes.pop_all(), answer)

    def _begun(
        self, name: str, request: Any, span: CallSpan, seconds: float, scopes: ExitStack
    ) -> Awaitable[Any]:
        """Send the request, within scopes that count the call; one that can't be sent fails when awaited."""
        try:
            if seconds <= 0:
                raise CycleTimeUsedUpError(self.plugin, f"{name} was not asked: the cycle's time is used up")
            scopes.enter_context(CountedCall(self, name))
            scopes.enter_context(span)
            return self._asked(name, request, span, seconds)
        except SidecarError as error:
            refused = asyncio.get_running_loop().create_future()
            refused.set_exception(without_frames(error))
            return refused

    async def ask_queueing(self, name: str, request: Any, read: Callable[[Any], R]) -> R:
        """The decoded response of the plugin's queueing service; no scheduling cycle waits for it.

        Raises: NotConnectedError, CallFailedError, ProtocolError.
        """
        with CountedCall(self, name):
            try:
                seconds = self.connection.seconds_for(name)
                response = await self._sent(name, request, (), seconds)
                return read(self._received(name, response))
            except RpcError as error:
                raise self._failure(name, error) from error

    def check_generation(self, request: Any, generation: int) -> None:
        """Check that the response is about a generation that was sent, and record it as acknowledged.

        Raises: ProtocolError where it is about another one.
        """
        if generation < request.call.generation:
            text = f"answered for generation {generation}, was asked for {request.call.generation}"
            raise ProtocolError(self.plugin, text)
        self.connection.holds(generation)

    def _asked(self, name: str, request: Any, span: CallSpan, seconds: float) -> Awaitable[Any]:
        """Send the request; its span ends with the response.

        Raises: NotConnectedError, RequestTooLargeError.
        """
        return span.until(self._sent(name, request, span.metadata, seconds))

    async def _retried(self, name: str, request: Any, span: CallSpan, ends: float, error: RpcError) -> Any:
        """Resolve a failed precondition and repeat the request, once; any other failure is raised.

        `ends` is by the loop's clock.
        """
        if not _retryable(error):
            raise self._failure(name, error) from error
        try:
            async with asyncio.timeout_at(ends):
                await self._resolve(error.reason)
        except TimeoutError:
            raise self._failure(name, late()) from None
        except grpc.aio.AioRpcError as second:
            raise self._failure(name, RpcError.of(second)) from second
        self._renew(request.call)
        seconds = ends - asyncio.get_running_loop().time()
        try:
            return await self._asked(name, request, span, seconds)
        except RpcError as second:
            raise self._failure(name, second) from second

    def _sent(self, name: str, request: Any, metadata: Metadata, seconds: float) -> Awaitable[Any]:
        """The response to come. Raises: NotConnectedError, RequestTooLargeError."""
        if (stub := self.connection.stub(name)) is None:
            why = self.connection.last_error or "waiting for it"
            raise NotConnectedError(self.plugin, f"not connected: {why}")
        if (size := request.ByteSize()) > MESSAGE_BYTES - ENVELOPE_BYTES:
            text = (
                f"{name} was not asked: with the pod it takes {size} bytes, a message {MESSAGE_BYTES} at most"
            )
            raise RequestTooLargeError(self.plugin, text)
        response: Awaitable[Any] = getattr(stub, name)(request, timeout=seconds, metadata=metadata)
        return response

    def _received(self, name: str, response: Any) -> Any:
        """The decoded response. Raises: ProtocolError where it can't be decoded."""
        self.connection.in_time()
        if response is None:
            raise ProtocolError(self.plugin, f"the reply to {name} can't be read")
        return response

    async def _resolve(self, reason: str) -> None:
        """Resolve that failed precondition."""
        if reason == "NOT_CONFIGURED":
            await self.connection.configured_again(self.profile)
        elif reason == "NOT_SYNCED":
            await self.connection.synced_again()

    def _renew(self, call: common_pb2.Call) -> None:
        """Update the request to the newest generation and the pod's newest object."""
        call.generation = self.feed.generation
        del call.deltas[:]
        call.deltas.extend(self.feed.carried(self.connection.acknowledged))
        if data := self.around.pods.get(call.pod.uid):
            call.pod.object = data

    def _failure(self, name: str, error: RpcError) -> SidecarError:
        if error.code is grpc.StatusCode.DEADLINE_EXCEEDED:
            self.connection.late()
            return LateError(self.plugin, f"{name} was not answered in time")
        if error.code is not grpc.StatusCode.UNAVAILABLE:
            self.connection.in_time()
        return CallFailedError(self.plugin, f"{name} failed: {error}")


def attempt_of(state: CycleState) -> int:
    """The scheduling attempt that the cycle state belongs to; 0 outside of an attempt."""
    record: CycleRecord | None = state.get(CycleRecord)
    return record.attempt if record else 0


class CountedCall:
    """Counts a call, and reports its outcome to the circuit breaker.

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


def _retryable(error: RpcError) -> bool:
    """Whether the request may be repeated after this failure."""
    return error.code is grpc.StatusCode.FAILED_PRECONDITION and error.reason in MENDABLE
