"""Floods of HTTP/2 frames against a plugin of the Python SDK, which grpcio answers; by hand, frame by frame.

`python -m tests.hostile.http2_floods --frames 30000` says of each flood what it costs the plugin's process,
and how long another client's call takes meanwhile.
"""

import argparse
import asyncio
import os
import struct
import sys
import tempfile
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import grpc

from berth.framework.clock import SYSTEM_CLOCK
from berth_plugin_proto import identity_pb2, identity_pb2_grpc
from berth_sdk import Plugin, serve
from tests.hostile.arena import cpu_seconds
from tests.sockets import served
from tests.suite import PATIENCE_SECONDS

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
HEADERS, RST_STREAM, SETTINGS, PING, WINDOW_UPDATE, CONTINUATION = 1, 3, 4, 6, 8, 9
END_HEADERS = 4


def frame(kind, flags, stream, payload=b""):
    """A frame as it travels. Source: RFC 9113, section 4.1."""
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def header(name, value):
    """A header that is not indexed. Source: RFC 7541, section 6.2.2."""
    return b"\x00" + bytes([len(name)]) + name + bytes([len(value)]) + value


CALL = b"\x83\x86" + b"".join(
    header(name, value)
    for name, value in (
        (b":path", b"/berth.plugin.v1.IdentityService/Handshake"),
        (b":authority", b"x"),
        (b"content-type", b"application/grpc"),
        (b"te", b"trailers"),
    )
)


def _reset(number):
    stream = 2 * number + 1
    return frame(HEADERS, END_HEADERS, stream, CALL) + frame(RST_STREAM, 0, stream, struct.pack(">I", 8))


def _continuation(number):
    more = frame(CONTINUATION, 0, 1, header(b"x", b"y" * 100))
    return more if number else frame(HEADERS, 0, 1, CALL)


def _empty_data(number):
    return frame(0, 0, 1) if number else frame(HEADERS, END_HEADERS, 1, CALL)


FLOODS = {
    "rapid reset": _reset,
    "pings": lambda _: frame(PING, 0, 0, b"12345678"),
    "settings": lambda _: frame(SETTINGS, 0, 0, struct.pack(">HI", 3, 100)),
    "continuation": _continuation,
    "empty data": _empty_data,
    "window updates": lambda _: frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", 1)),
}
"""The frames with a number, by flood."""


class Passing(Plugin):
    """A plugin with nothing to say."""

    name = "passing"

    def filter(self, pod, node):
        """Every node passes."""


@asynccontextmanager
async def plugin_process(socket):
    """The plugin on that socket; gives its process."""
    command = [sys.executable, "-m", "tests.hostile.http2_floods", "--serve", f"unix:{socket}"]
    process = await asyncio.create_subprocess_exec(*command)
    try:
        await served(socket, process)
        yield process
    finally:
        process.terminate()
        await process.wait()


@dataclass
class Cost:
    """What a flood came to: `cancelled` of another client's calls were given up by grpcio's server.

    Units: CPU seconds and MiB of the plugin's process, seconds of the longest call.
    """

    cpu: float
    grown: float
    longest: float
    cancelled: int
    sent: int
    ended: bool


async def flooded(name, socket, process, frames, patience=0.0):
    """What so many frames of a flood cost; another client's calls are answered all the while.

    The plugin is given `patience` seconds to end the connection.
    """
    async with grpc.aio.insecure_channel(f"unix:{socket}") as channel:
        stub = identity_pb2_grpc.IdentityServiceStub(channel)
        assert await _is_answered(stub)
        cpu, memory = _used(process.pid)
        flooding = asyncio.create_task(_flood(name, socket, frames, patience))
        longest, cancelled, answered = 0.0, 0, False
        while not (flooding.done() and answered):
            began = SYSTEM_CLOCK.monotonic()
            answered = await _is_answered(stub)
            cancelled += not answered
            longest = max(longest, SYSTEM_CLOCK.monotonic() - began)
        now_cpu, now_memory = _used(process.pid)
        return Cost(now_cpu - cpu, now_memory - memory, longest, cancelled, *flooding.result())


async def _is_answered(stub):
    """Ask the plugin; False where its server gave the call up, an error for any other failure."""
    request = identity_pb2.HandshakeRequest(supported_versions=[1])
    try:
        await stub.Handshake(request, timeout=PATIENCE_SECONDS)
    except grpc.aio.AioRpcError as error:
        if error.code() is not grpc.StatusCode.CANCELLED:
            raise
        return False
    return True


async def _flood(name, socket, frames, patience):
    """How many frames were taken, and whether the plugin ended the connection."""
    reader, writer = await asyncio.open_unix_connection(socket)
    ended = asyncio.create_task(_drained(reader))
    sent = 0
    writer.write(PREFACE + frame(SETTINGS, 0, 0))
    cut_off = True
    try:
        with suppress(ConnectionError):
            while sent < frames and not ended.done():
                writer.write(b"".join(FLOODS[name](sent + i) for i in range(100)))
                await writer.drain()
                sent += 100
            # An acknowledged ping comes once all before it was taken.
            writer.write(frame(PING, 0, 0, b"the last") if name != "continuation" else b"")
            await writer.drain()
            await asyncio.wait([ended], timeout=patience)
            cut_off = ended.done()
        return sent, cut_off
    finally:
        writer.transport.abort()
        await asyncio.gather(ended, return_exceptions=True)


async def _drained(reader):
    with suppress(ConnectionError):
        while await reader.read(65_536):
            pass


def _used(pid):
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return cpu_seconds(pid), pages * os.sysconf("SC_PAGE_SIZE") / 2**20


async def measured(frames):
    """A line for each flood, each against a process of its own."""
    for name in FLOODS:
        with tempfile.TemporaryDirectory(prefix="berth-") as folder:
            socket = Path(folder, "p.sock")
            async with plugin_process(socket) as process:
                cost = await flooded(name, socket, process, frames)
            print(name, cost)  # noqa: T201 - a command


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--frames", type=int, default=30_000)
    parser.add_argument("--serve")
    options = parser.parse_args()
    if options.serve:
        serve(Passing(), options.serve)
    else:
        asyncio.run(measured(options.frames))
