"""All scheduling calls to a plugin over one stream.

A message on a stream that stands costs a quarter of a call of its own (docs/decisions/0004-one-stream.md). To
whoever asks, a conversation looks like the generated stub: a method for each call, gRPC's own errors.

Source: proto/berth/plugin/v1/scheduling.proto Converse.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any

import grpc
import grpc.aio

from berth.out_of_tree._generated import scheduling_pb2, scheduling_pb2_grpc
from berth.out_of_tree.traceparent import Metadata

REASON_KEY = "berth-reason"
TRACEPARENT = "traceparent"

_CODES = {code.value[0]: code for code in grpc.StatusCode}

Call = Callable[..., Awaitable[Any]]


class Conversation:
    """A scheduling service behind one stream; `run` reads the answers."""

    def __init__(self, stub: "scheduling_pb2_grpc.SchedulingServiceAsyncStub") -> None:
        self._stream = stub.Converse()
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._numbers = count(1)
        self._writing = asyncio.Lock()
        self._sending: set[asyncio.Task[None]] = set()

    def __getattr__(self, name: str) -> Call:
        """The call of that name, such as `FilterScore`."""
        field = re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()

        async def call(request: Any, *, timeout: float, metadata: Metadata = ()) -> Any:  # noqa: ASYNC109 - as a stub
            return await self._ask(field, request, timeout, metadata)

        setattr(self, name, call)
        return call

    async def run(self) -> None:
        """Hand answers to whoever waits for them, until the stream breaks.

        Raises: grpc.aio.AioRpcError.
        """
        broken = _ended()
        try:
            while (answer := await self._stream.read()) is not grpc.aio.EOF:
                self._deliver(answer)
        except grpc.aio.AioRpcError as error:
            broken = error
            raise
        except asyncio.CancelledError:
            # A write that is given up cancels the stream, and that its reader, who is to tell.
            if (task := asyncio.current_task()) is None or task.cancelling():
                raise
        finally:
            for waiting in self._waiting.values():
                if not waiting.done():
                    waiting.set_exception(broken)
        raise broken

    async def _ask(self, field: str, request: Any, seconds: float, metadata: Metadata) -> Any:
        number = next(self._numbers)
        message = scheduling_pb2.ConverseRequest(id=number, traceparent=dict(metadata).get(TRACEPARENT))
        message.timeout.FromNanoseconds(int(seconds * 1e9))
        getattr(message, field).CopyFrom(request)
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            self._send(message, answer)
            async with asyncio.timeout(seconds):
                response = await answer
        except TimeoutError:
            raise _error(grpc.StatusCode.DEADLINE_EXCEEDED, "no answer in time") from None
        finally:
            del self._waiting[number]
        if response.HasField("error"):
            raise _refusal(response.error)
        return getattr(response, field) if response.HasField(field) else None

    def _send(self, message: Any, answer: "asyncio.Future[Any]") -> None:
        """Write it, even if nobody waits any longer: a write that is given up cancels the stream."""
        sending = asyncio.get_running_loop().create_task(self._write(message, answer))
        self._sending.add(sending)
        sending.add_done_callback(self._sending.discard)

    async def _write(self, message: Any, answer: "asyncio.Future[Any]") -> None:
        try:
            async with self._writing:
                await self._stream.write(message)
        except (asyncio.InvalidStateError, asyncio.CancelledError, grpc.aio.AioRpcError):
            if not answer.done():
                answer.set_exception(_ended())

    def _deliver(self, answer: Any) -> None:
        """Hand it over; an answer that nobody waits for any longer came too late."""
        if answer is None:
            raise _error(grpc.StatusCode.INTERNAL, "sent a message that can't be read")
        waiting = self._waiting.get(answer.id)
        if waiting is not None and not waiting.done():
            waiting.set_result(answer)


def _ended() -> grpc.aio.AioRpcError:
    return _error(grpc.StatusCode.UNAVAILABLE, "the stream of calls ended")


def _refusal(error: scheduling_pb2.CallError) -> grpc.aio.AioRpcError:
    trailing = ((REASON_KEY, error.reason),) if error.reason else ()
    return _error(_CODES.get(error.code, grpc.StatusCode.UNKNOWN), error.message, trailing)


def _error(code: grpc.StatusCode, text: str, trailing: Metadata = ()) -> grpc.aio.AioRpcError:
    return grpc.aio.AioRpcError(code, grpc.aio.Metadata(), grpc.aio.Metadata(*trailing), text)
