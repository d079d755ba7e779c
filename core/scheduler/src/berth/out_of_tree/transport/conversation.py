"""All scheduling calls to a plugin over one stream.

A message on an open stream costs a quarter of a unary call; calls that share a message cost even
less (docs/decisions/0004-one-stream.md). A conversation has the interface of the generated stub: a
method for each call, and RpcError.

Source: proto/berth/plugin/v1/scheduling.proto Converse.
"""

import asyncio
import logging
import re
from collections import deque
from itertools import count
from typing import Any

import grpc
import grpc.aio

from berth.out_of_tree.transport.rpc import Call, RpcError, late
from berth.out_of_tree.transport.traceparent import Metadata
from berth_plugin_proto import scheduling_pb2, scheduling_pb2_grpc

log = logging.getLogger(__name__)

TRACEPARENT = "traceparent"

MAX_TOGETHER_BYTES = 1 << 20


class Conversation:
    """A scheduling service behind one stream; `run` reads the answers.

    With `together`, calls that wait while a message is being written share the next one. No call is delayed:
    the plugin works concurrently with the scheduler.
    """

    def __init__(
        self, stub: "scheduling_pb2_grpc.SchedulingServiceAsyncStub", *, together: bool = False
    ) -> None:
        self._stream = stub.Converse()
        self._together = together
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._numbers = count(1)
        self._unanswered = 0
        self._outbox: deque[Any] = deque()
        self._writer: asyncio.Task[None] | None = None

    def __getattr__(self, name: str) -> Call:
        """The call of that name, such as `FilterScore`."""
        field = field_of(name)

        async def call(request: Any, *, timeout: float, metadata: Metadata = ()) -> Any:  # noqa: ASYNC109 - as a stub
            return await self._ask(field, request, timeout, metadata)

        setattr(self, name, call)
        return call

    async def run(self) -> None:
        """Deliver answers to their callers, until the stream breaks.

        Raises: RpcError.
        """
        broken = _ended()
        try:
            while (answer := await self._stream.read()) is not grpc.aio.EOF:
                self._deliver(answer)
        except RpcError as error:
            broken = error
        except grpc.aio.AioRpcError as error:
            broken = RpcError.of(error)
        except asyncio.CancelledError:
            # A cancelled write cancels the stream, and so its reader, which reports the reason.
            if (task := asyncio.current_task()) is None or task.cancelling():
                raise
        finally:
            for waiting in self._waiting.values():
                if not waiting.done():
                    waiting.set_exception(broken)
        raise broken

    async def _ask(self, field: str, request: Any, seconds: float, metadata: Metadata) -> Any:
        number = next(self._numbers)
        self._unanswered += 1
        message = scheduling_pb2.ConverseRequest(id=number, traceparent=dict(metadata).get(TRACEPARENT))
        message.timeout.FromNanoseconds(int(seconds * 1e9))
        getattr(message, field).CopyFrom(request)
        loop = asyncio.get_running_loop()
        answer = self._waiting[number] = loop.create_future()
        timer = loop.call_later(seconds, self._expire, number)
        try:
            self._send(message)
            response = await answer
        finally:
            timer.cancel()
            del self._waiting[number]
        if response.HasField("error"):
            error = response.error
            raise RpcError.by_number(error.code, error.message, error.reason)
        return getattr(response, field) if response.HasField(field) else None

    def _send(self, message: Any) -> None:
        """Write the call even if its caller was cancelled: a cancelled write cancels the stream."""
        self._outbox.append(message)
        if self._writer is None:
            self._writer = asyncio.get_running_loop().create_task(self._write())

    async def _write(self) -> None:
        """Write the outbox until it is empty."""
        message, broken = None, _ended()
        try:
            while self._outbox:
                message = self._next()
                await self._stream.write(message)
                message = None
        except (asyncio.InvalidStateError, asyncio.CancelledError, grpc.aio.AioRpcError):
            pass  # the stream has ended; its reader reports why
        except Exception as error:
            log.exception("calls not sent")
            broken = RpcError(grpc.StatusCode.INTERNAL, f"could not be sent: {error!r}")
        finally:
            self._writer = None
            self._lose(message, broken)

    def _lose(self, message: Any, error: RpcError) -> None:
        """Fail the calls that wait to be written or were being written."""
        lost = [*self._outbox, *([message, *message.also] if message is not None else ())]
        self._outbox.clear()
        for each in lost:
            self._break(each.id, error)

    def _next(self) -> Any:
        """The oldest call, with those after it that may share its message."""
        message = self._outbox.popleft()
        size = message.ByteSize()
        while self._together and self._outbox:
            size += self._outbox[0].ByteSize()
            if size > MAX_TOGETHER_BYTES:
                break
            message.also.append(self._outbox.popleft())
        return message

    def _expire(self, number: int) -> None:
        self._break(number, late())

    def _break(self, number: int, error: RpcError) -> None:
        waiting = self._waiting.get(number)
        if waiting is not None and not waiting.done():
            waiting.set_exception(error)

    def _deliver(self, message: Any) -> None:
        """Deliver answers; one whose caller was cancelled is dropped.

        Raises: RpcError where there are more answers than calls, which ends the stream.
        """
        if message is None:
            raise RpcError(grpc.StatusCode.INTERNAL, "sent a message that can't be read")
        self._unanswered -= 1 + len(message.also)
        if self._unanswered < 0:
            raise RpcError(grpc.StatusCode.INTERNAL, "sent answers to calls that were not made")
        for answer in (message, *message.also):
            waiting = self._waiting.get(answer.id)
            if waiting is not None and not waiting.done():
                waiting.set_result(answer)


def field_of(name: str) -> str:
    """The field of a call, such as `filter_score` for `FilterScore`."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


def _ended() -> RpcError:
    return RpcError(grpc.StatusCode.UNAVAILABLE, "the stream of calls ended")
