"""Calls in ttrpc's frames, on a second unix socket beside gRPC's.

    data --frames--> request --author's functions--> answer --frame--> written with this turn of the loop
                                     |
                                     +--has to wait--> a task, under the call's deadline

A call that need not wait is answered where it was read: it has no task, no timer and no stream. What the host
sends is bounded: a frame has at most 4 MiB, and nothing is read while answers or calls pile up.

Source: docs/protocol.md "ttrpc beside gRPC"; github.com/containerd/ttrpc PROTOCOL.md.
"""

import asyncio
import logging
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import grpc
from google.protobuf.message import DecodeError, Message

from berth_plugin_proto import ttrpc_pb2
from berth_sdk.dispatch import TOO_LATE, UNARY, Dispatch, Failure, Unary, failure_of
from berth_sdk.sockets import prepare_socket, private, set_mode
from berth_sdk.waiting import begin

log = logging.getLogger(__name__)

PACKAGE = "berth.plugin.v1"
SUFFIX = ".ttrpc"
SYSTEM = "ttrpc"
LONGEST_PATH = 107
"""What a unix socket's address holds."""
HEADER = struct.Struct(">IIBB")
"""Length, stream id, type, flags."""
REQUEST, RESPONSE = 1, 2
MAX_BYTES = 4 << 20
UNWRITTEN_BYTES = 8 << 20
MAX_WAITING = 1024
"""Calls that wait on one connection before no more are read."""
ERROR_INFO = "type.googleapis.com/google.rpc.ErrorInfo"
METHODS: dict[str, dict[str, tuple[Unary, type[Message]]]] = {
    f"{PACKAGE}.{service}": UNARY[service]
    for service in ("SchedulingService", "PlacementService", "GroupService", "QueueingService")
}
NONE: dict[str, tuple[Unary, type[Message]]] = {}


class FrameError(ValueError):
    """What came is no frame that belongs here."""


class Frames:
    """Cuts what comes in pieces into frames; it keeps at most one that is not whole."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._wanted = HEADER.size

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield stream id and message of the frames that are whole now.

        Raises: FrameError: the next one is too long, or of a type that does not belong here.
        """
        if self._rest:
            self._rest += data
            if len(self._rest) < self._wanted:
                return
            data = bytes(self._rest)
            self._rest.clear()
        at, held = 0, len(data)
        self._wanted = HEADER.size
        while held - at >= HEADER.size:
            length, stream, kind, _ = HEADER.unpack_from(data, at)
            if length > MAX_BYTES:
                raise FrameError(f"a frame of {length} bytes, at most {MAX_BYTES} are read")
            if kind != REQUEST or not stream % 2:
                raise FrameError(f"a frame of type {kind} on stream {stream}")
            body = at + HEADER.size
            end = body + length
            if end > held:
                self._wanted = end - at
                break
            yield stream, data[body:end]
            at = end
        if at < held:
            self._rest += data[at:]


class Connection(asyncio.Protocol):
    """One host's connection."""

    def __init__(self, dispatch: Dispatch, connections: "set[Connection]") -> None:
        self._dispatch = dispatch
        self._connections = connections
        self._loop = asyncio.get_running_loop()
        self._frames = Frames()
        self._full = False
        self.waiting: set[asyncio.Task[Message]] = set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Bound what is written and not read."""
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=UNWRITTEN_BYTES)
        self._connections.add(self)

    def data_received(self, data: bytes) -> None:
        """Answer the calls that are whole."""
        try:
            for stream, message in self._frames.feed(data):
                self._take(stream, ttrpc_pb2.TtrpcRequest.FromString(message))
        except (FrameError, DecodeError) as error:
            log.warning("ttrpc connection ended err=%s", error)
            self.close()

    def pause_writing(self) -> None:
        """Read nothing either: the host does not take its answers."""
        self._full = True
        self._pace()

    def resume_writing(self) -> None:
        """Go on."""
        self._full = False
        self._pace()

    def connection_lost(self, exc: Exception | None) -> None:
        """Give up what is not awaited any longer."""
        del exc
        self._connections.discard(self)
        for task in self.waiting:
            task.cancel()

    def close(self) -> None:
        """Hang up."""
        self._transport.abort()

    def _pace(self) -> None:
        if self._full or len(self.waiting) >= MAX_WAITING:
            self._transport.pause_reading()
        elif not self._transport.is_closing():
            self._transport.resume_reading()

    def _take(self, stream: int, frame: ttrpc_pb2.TtrpcRequest) -> None:
        """Answer at once where nothing has to be waited for, as little as the deadline."""
        method = METHODS.get(frame.service, NONE).get(frame.method)
        if method is None:
            text = f"no such call: {frame.service}/{frame.method}"
            self._refuse(stream, Failure(grpc.StatusCode.UNIMPLEMENTED, "", text))
            return
        ends = self._loop.time() + frame.timeout_nano / 1e9 if frame.timeout_nano else None
        function, request = method
        metadata = [(each.key, each.value) for each in frame.metadata] if frame.metadata else ()
        try:
            asked = request.FromString(frame.payload)
            answer = begin(self._dispatch.call(frame.method, function, asked, metadata, SYSTEM))
        except DecodeError as error:
            self._refuse(stream, Failure(grpc.StatusCode.INVALID_ARGUMENT, "", str(error)))
        except Exception as error:  # noqa: BLE001 - one without a code is logged
            self._refuse(stream, _failure(frame.method, error))
        else:
            if isinstance(answer, asyncio.Task):
                self._wait(stream, frame.method, answer, ends)
            else:
                self._answer(stream, answer, ends)

    def _wait(self, stream: int, name: str, task: "asyncio.Task[Message]", ends: float | None) -> None:
        """Answer once the task has."""
        timer = None if ends is None else self._loop.call_at(ends, task.cancel)
        self.waiting.add(task)

        def answered(_: object) -> None:
            self.waiting.discard(task)
            self._pace()
            if timer is not None:
                timer.cancel()
            if self._transport.is_closing():
                return
            if task.cancelled():
                self._refuse(stream, TOO_LATE)
            elif isinstance(error := task.exception(), Exception):
                self._refuse(stream, _failure(name, error))
            else:
                self._answer(stream, task.result(), ends)

        task.add_done_callback(answered)
        self._pace()

    def _answer(self, stream: int, response: Message, ends: float | None) -> None:
        if ends is not None and self._loop.time() > ends:
            self._refuse(stream, TOO_LATE)
            return
        message = ttrpc_pb2.TtrpcResponse(payload=response.SerializeToString()).SerializeToString()
        if len(message) > MAX_BYTES:
            text = f"an answer of {len(message)} bytes, at most {MAX_BYTES} are sent"
            self._refuse(stream, Failure(grpc.StatusCode.RESOURCE_EXHAUSTED, "", text))
            return
        self._write(stream, message)

    def _refuse(self, stream: int, failure: Failure) -> None:
        status = ttrpc_pb2.TtrpcStatus(code=failure.code.value[0], message=failure.text)
        if failure.reason:
            info = ttrpc_pb2.TtrpcErrorInfo(reason=failure.reason, domain="berth")
            status.details.add(type_url=ERROR_INFO, value=info.SerializeToString())
        self._write(stream, ttrpc_pb2.TtrpcResponse(status=status).SerializeToString())

    def _write(self, stream: int, message: bytes) -> None:
        self._transport.write(HEADER.pack(len(message), stream, RESPONSE, 0) + message)


class TtrpcServer:
    """The second socket, and its connections."""

    def __init__(self, path: Path, dispatch: Dispatch) -> None:
        self.path = path
        self._dispatch = dispatch
        self._connections: set[Connection] = set()
        self._server: asyncio.Server | None = None
        self._connection = Connection

    async def start(self) -> None:
        """Listen.

        Raises: AddressError: another process does.
        """
        prepare_socket(self.path)
        loop = asyncio.get_running_loop()
        with private():
            self._server = await loop.create_unix_server(
                lambda: self._connection(self._dispatch, self._connections), str(self.path)
            )
        set_mode(self.path)

    async def stop(self, grace_seconds: float) -> None:
        """Let calls that wait end, and hang up."""
        assert self._server is not None
        self._server.close()
        if waiting := [task for each in self._connections for task in each.waiting]:
            await asyncio.wait(waiting, timeout=grace_seconds)
        for connection in list(self._connections):
            connection.close()
        self.path.unlink(missing_ok=True)


async def serve_ttrpc(dispatch: Dispatch, beside: Path) -> TtrpcServer | None:
    """Return a server on a socket beside that one; None where the path would be too long for a socket.

    Raises: AddressError: it can't be served.
    """
    path = beside.with_name(beside.name + SUFFIX)
    if len(os.fsencode(path)) > LONGEST_PATH:
        log.warning("ttrpc is not served, the path is too long path=%s", path)
        return None
    server = TtrpcServer(path, dispatch)
    await server.start()
    return server


def _failure(name: str, error: Exception) -> Failure:
    """Return what the error means; one without a code is a bug of ours, and logged."""
    try:
        return failure_of(error)
    except Exception:
        log.exception("call failed call=%s", name)
        return Failure(grpc.StatusCode.UNKNOWN, "", type(error).__name__)
