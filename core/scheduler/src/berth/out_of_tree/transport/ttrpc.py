"""Calls to a plugin in ttrpc frames on a unix socket: gRPC's messages at a lower cost.

    request --frame--> socket ... socket --frames--> future of the call

A call has no task and no coroutine of its own: it is a written frame and a future that the response, the
deadline or the end of the connection completes. The plugin's frames are untrusted: a frame has at most 4 MiB,
and one that cannot be decoded, or answers no open call, ends the connection.

Source: docs/protocol.md "ttrpc beside gRPC"; github.com/containerd/ttrpc PROTOCOL.md.
"""

import asyncio
import struct
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple, cast

import grpc
from google.protobuf.message import DecodeError, Message

from berth.config.out_of_tree.sidecars import SidecarSpec, socket_path
from berth.framework.clock import nanoseconds
from berth.out_of_tree.errors import NotConnectedError, ProtocolError
from berth.out_of_tree.limits import MESSAGE_BYTES, UNANSWERED, UNWRITTEN_BYTES
from berth.out_of_tree.transport.rpc import MESSAGES, Call, RpcError, late
from berth.out_of_tree.transport.socket_access import held_socket
from berth.out_of_tree.transport.traceparent import Metadata
from berth_plugin_proto import ttrpc_pb2

HEADER = struct.Struct(">IIBB")
"""Length, stream id, type, flags."""
REQUEST, RESPONSE = 1, 2
_ERROR_INFO = "type.googleapis.com/google.rpc.ErrorInfo"
_PACKAGE = "berth.plugin.v1"


class TtrpcFrameError(ValueError):
    """An invalid frame, or one of an unexpected type."""


class TtrpcFrames:
    """Splits received bytes into frames; it keeps at most one incomplete frame."""

    def __init__(self, kind: int) -> None:
        self._kind = kind
        self._rest = bytearray()
        self._wanted = HEADER.size

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """The stream ids and messages of the frames that are complete now.

        Raises: TtrpcFrameError where the next one is too long, or of an unexpected type.
        """
        if self._rest:
            self._rest += data
            if len(self._rest) < self._wanted:
                return
            data = bytes(self._rest)
            self._rest.clear()
        at = 0
        while (end := at + self._size(data, at)) <= len(data):
            stream = int.from_bytes(data[at + 4 : at + 8])
            yield stream, data[at + HEADER.size : end]
            at = end
        self._rest += data[at:]
        self._wanted = end - at

    def _size(self, data: bytes, at: int) -> int:
        """The length of the frame, where its head has arrived."""
        if len(data) - at < HEADER.size:
            return HEADER.size
        length, _, kind, _ = HEADER.unpack_from(data, at)
        if length > MESSAGE_BYTES:
            raise TtrpcFrameError(f"a frame of {length} bytes, at most {MESSAGE_BYTES} are read")
        if kind != self._kind:
            raise TtrpcFrameError(f"a frame of type {kind}, where {self._kind} is due")
        return HEADER.size + int(length)


class Answer(asyncio.Future[Any]):
    """The future of a sent call; `answered_ns` is the time of its response or failure."""

    answered_ns = 0

    def set_result(self, result: Any) -> None:
        """The answer is there."""
        self.answered_ns = nanoseconds()
        super().set_result(result)

    def set_exception(self, exception: type[BaseException] | BaseException, /) -> None:
        """The call failed."""
        self.answered_ns = nanoseconds()
        super().set_exception(exception)


class _Waiting(NamedTuple):
    """A call that has no response yet."""

    answer: Answer
    response: type[Message]
    timer: asyncio.TimerHandle


class TtrpcService:
    """The stub of one service: a method for each call, which returns its future."""

    def __init__(self, connection: "Ttrpc", name: str) -> None:
        self._connection = connection
        self._name = name

    def __getattr__(self, name: str) -> Call:
        """The call of that name, such as `FilterScore`."""
        response = getattr(MESSAGES[self._name], f"{name}Response")
        service = f"{_PACKAGE}.{self._name}"
        head = ttrpc_pb2.TtrpcRequest(service=service, method=name).SerializeToString()
        send = self._connection.send

        def call(request: Any, *, timeout: float, metadata: Metadata = ()) -> asyncio.Future[Any]:
            return send(head, request, response, timeout, metadata)

        setattr(self, name, call)
        return call


class Ttrpc(asyncio.Protocol):
    """The connection; `ended` says why it broke.

    A call whose caller was cancelled is dropped with its response, or at its deadline.
    """

    def __init__(self, plugin: str) -> None:
        self._plugin = plugin
        self._loop = asyncio.get_running_loop()
        self._frames = TtrpcFrames(RESPONSE)
        self._waiting: dict[int, _Waiting] = {}
        self._next = 1
        self._unanswered = 0
        self._full = False
        self._transport: asyncio.Transport | None = None
        self.ended: asyncio.Future[Exception] = self._loop.create_future()

    def service(self, name: str) -> TtrpcService:
        """The stub of that service, one of `MESSAGES`."""
        return TtrpcService(self, name)

    async def run(self) -> None:
        """Wait for the end of the connection.

        Raises: ProtocolError, NotConnectedError.
        """
        raise await asyncio.shield(self.ended)

    def send(
        self, head: bytes, request: Message, response: type[Message], seconds: float, metadata: Metadata
    ) -> asyncio.Future[Any]:
        """Write the request after the head that names the call; returns the future of the response."""
        answer = Answer(loop=self._loop)
        rest = ttrpc_pb2.TtrpcRequest(payload=request.SerializeToString(), timeout_nano=int(seconds * 1e9))
        for key, value in metadata:
            rest.metadata.add(key=key, value=value)
        # A message's fields may be encoded apart: the service and method are the same for each call.
        message = head + rest.SerializeToString()
        if problem := self._refusal():
            answer.set_exception(problem)
            return answer
        number, self._next = self._next, self._next + 2
        self._unanswered += 1
        timer = self._loop.call_later(seconds, self._expire, number)
        self._waiting[number] = _Waiting(answer, response, timer)
        assert self._transport is not None
        self._transport.write(HEADER.pack(len(message), number, REQUEST, 0) + message)
        return answer

    def _refusal(self) -> RpcError | None:
        """The reason why no request can be written now; None where it can."""
        if self.ended.done():
            return RpcError(grpc.StatusCode.UNAVAILABLE, str(self.ended.result()))
        code = grpc.StatusCode.RESOURCE_EXHAUSTED
        if self._full:
            return RpcError(code, f"{UNWRITTEN_BYTES} bytes of requests were not read yet")
        if len(self._waiting) >= UNANSWERED:
            return RpcError(code, f"{UNANSWERED} requests were not answered yet")
        return None

    def _expire(self, number: int) -> None:
        waiting = self._waiting.pop(number)
        if not waiting.answer.done():
            waiting.answer.set_exception(late())

    def _deliver(self, number: int, message: bytes) -> None:
        """Deliver a response; one after its call's deadline is dropped.

        Raises: TtrpcFrameError, DecodeError.
        """
        self._unanswered -= 1
        if self._unanswered < 0 or number >= self._next or not number % 2:
            raise TtrpcFrameError("an answer to a call that was not made")
        waiting = self._waiting.pop(number, None)
        if waiting is None:
            return
        waiting.timer.cancel()
        response = ttrpc_pb2.TtrpcResponse.FromString(message)
        if waiting.answer.done():
            return
        if response.status.code:
            waiting.answer.set_exception(_refused(response.status))
        else:
            waiting.answer.set_result(_read(waiting.response, response.payload))

    def _end(self, error: Exception) -> None:
        """Fail all open calls; the first reason counts."""
        if self.ended.done():
            return
        self.ended.set_result(error)
        broken, self._waiting = self._waiting, {}
        for waiting in broken.values():
            waiting.timer.cancel()
            if not waiting.answer.done():
                waiting.answer.set_exception(RpcError(grpc.StatusCode.UNAVAILABLE, str(error)))

    # -- asyncio's side -----

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Limit the write buffer."""
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=UNWRITTEN_BYTES)

    def data_received(self, data: bytes) -> None:
        """Deliver the responses that are complete."""
        try:
            for number, message in self._frames.feed(data):
                self._deliver(number, message)
        except (TtrpcFrameError, DecodeError) as error:
            self._end(ProtocolError(self._plugin, f"sent {error} on its ttrpc socket"))
            self.close()

    def pause_writing(self) -> None:
        """Stop writing: the plugin does not read."""
        self._full = True

    def resume_writing(self) -> None:
        """Write again."""
        self._full = False

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail all open calls."""
        why = f": {exc}" if exc else ""
        self._end(NotConnectedError(self._plugin, f"its ttrpc socket was closed{why}"))

    def close(self) -> None:
        """Close the connection without flushing; open and later calls fail."""
        self._end(NotConnectedError(self._plugin, "its ttrpc socket was hung up on"))
        if self._transport is not None:
            self._transport.abort()


@asynccontextmanager
async def open_ttrpc(spec: SidecarSpec, name: str) -> AsyncIterator[Ttrpc]:
    """Open a connection to the plugin's ttrpc socket, next to its gRPC socket, until the block ends.

    Raises: NotConnectedError where the socket is not to be trusted, or not served.
    """
    path = str(Path(socket_path(spec.address)).with_name(name))
    loop = asyncio.get_running_loop()
    with held_socket(spec.name, path, spec.user) as held:
        try:
            _, connection = await loop.create_unix_connection(lambda: Ttrpc(spec.name), held)
        except Exception as error:
            problem = getattr(error, "strerror", None) or error
            raise NotConnectedError(spec.name, f"{path}: {problem}") from error
    try:
        yield connection
    finally:
        connection.close()


def _refused(status: ttrpc_pb2.TtrpcStatus) -> RpcError:
    info = ttrpc_pb2.TtrpcErrorInfo()
    for detail in status.details:
        if detail.type_url == _ERROR_INFO:
            info.ParseFromString(detail.value)
    return RpcError.by_number(status.code, status.message, info.reason)


def _read(response: type[Message], payload: bytes) -> Message | None:
    """The message, None where the bytes can't be decoded, as in gRPC."""
    try:
        return response.FromString(payload)
    except DecodeError:
        return None
