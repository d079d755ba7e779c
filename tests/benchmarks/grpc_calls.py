"""A question and its answer over a unix socket: what gRPC and ttrpc cost by themselves, whatever is asked.

The messages are as large as those of Filter and Score on 5,000 nodes. Servers in Python (asyncio, threads)
and in Go are asked from Python: by a gRPC call of its own each time, by a message on a gRPC stream that
stands, with asyncio, or with threads whose answers are handed to the loop that the scheduler lives in, and in
ttrpc's frames. Loops are uvloop's, as the scheduler's and the plugins' are. A bare socket says what of it is
the machine.
"""

import asyncio
import multiprocessing
import queue
import resource
import socket
import subprocess
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import grpc
import grpc.aio
import uvloop

from berth.config.out_of_tree.sidecars import SidecarSpec
from berth.out_of_tree.transport.ttrpc import HEADER, REQUEST, RESPONSE, TtrpcFrames, open_ttrpc
from berth_plugin_proto import ttrpc_pb2
from berth_sdk.sockets import private
from tests.benchmarks.tables import Table, quantiles
from tests.go_toolchain import GO_SDK, build
from tests.sockets import listens

QUESTIONS = 300
WARM_UP = 50
QUESTION, ANSWER = b"q" * 4_000, bytes(10_100)
TIMEOUT_SECONDS = 30.0
CALL, STREAM = "/bench.Questions/Call", "/bench.Questions/Stream"


def run(options):
    """One table."""
    table = Table(
        f"the transport alone, {len(QUESTION):,} bytes there and {len(ANSWER):,} back, microseconds",
        ["client and server", "p10", "p50", "p99", "client CPU"],
    )
    with tempfile.TemporaryDirectory(prefix="berth-") as folder, ExitStack() as servers:
        sockets = {
            name: servers.enter_context(server(Path(folder, str(i))))
            for i, (name, server) in enumerate(SERVERS)
        }
        for (client, ask), names in CLIENTS.items():
            for name in names:
                figures = uvloop.run(ask(sockets[name], options.rounds or QUESTIONS))
                table.add(f"{client} to {name}", *figures)
    table.show()


# -- clients: each gives p10, p50, p99 and the client's CPU of a question -----


async def over_socket(path, count):
    """Blocking on both ends: no gRPC, no event loop."""
    with socket.socket(socket.AF_UNIX) as there:
        there.connect(str(path))

        async def ask():
            there.sendall(QUESTION)
            left = len(ANSWER)
            while left:
                left -= len(there.recv(1 << 16))

        return await timed(ask, count)


async def as_calls(path, count):
    """A unary call of asyncio's each time."""
    async with grpc.aio.insecure_channel(f"unix:{path}") as channel:
        call = channel.unary_unary(CALL)

        async def ask():
            await call(QUESTION, timeout=TIMEOUT_SECONDS, wait_for_ready=True)

        return await timed(ask, count)


async def over_stream(path, count):
    """A message on a stream of asyncio's, as the host does it."""
    async with grpc.aio.insecure_channel(f"unix:{path}") as channel:
        stream = channel.stream_stream(STREAM)(wait_for_ready=True)

        async def ask():
            await stream.write(QUESTION)
            await stream.read()

        return await timed(ask, count)


class AsTheyCome:
    """A message of bytes as they come, in place of protobuf."""

    def __init__(self, data):
        self._data = data

    def SerializeToString(self):  # noqa: N802 - protobuf's name
        return self._data

    FromString = bytes


async def over_frames(path, count):
    """ttrpc's frames, as the host sends and reads them."""
    head = ttrpc_pb2.TtrpcRequest(service="bench.Questions", method="Call").SerializeToString()
    async with open_ttrpc(SidecarSpec("bench", f"unix:{path}"), path.name) as connection:

        async def ask():
            await connection.send(head, AsTheyCome(QUESTION), AsTheyCome, TIMEOUT_SECONDS, ())

        return await timed(ask, count)


async def over_threads(path, count):
    """A message on a stream of gRPC's threads, its answer handed to the loop."""
    questions, answers, loop = queue.SimpleQueue(), asyncio.Queue(), asyncio.get_running_loop()
    with grpc.insecure_channel(f"unix:{path}") as channel:
        stream = channel.stream_stream(STREAM)(iter(questions.get, None), wait_for_ready=True)

        def read():
            for answer in stream:
                loop.call_soon_threadsafe(answers.put_nowait, answer)

        reading = threading.Thread(target=read)
        reading.start()

        async def ask():
            questions.put(QUESTION)
            await answers.get()

        figures = await timed(ask, count)
        questions.put(None)
        await asyncio.to_thread(reading.join)
        return figures


async def timed(ask, count):
    """Microseconds: p10, p50, p99, and the CPU of this process."""
    for _ in range(WARM_UP):
        await ask()
    before, taken = cpu_seconds(), []
    for _ in range(count):
        began = time.perf_counter()
        await ask()
        taken.append((time.perf_counter() - began) * 1e6)
    spent = (cpu_seconds() - before) / count * 1e6
    return *quantiles(taken, 0.1, 0.5, 0.99), spent


def cpu_seconds():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


# -- servers: each gives the socket that it serves -----


def serve_socket(path):
    """Answer one client after another."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen()
        while True:
            client, _ = server.accept()
            with client:
                left = len(QUESTION)
                while data := client.recv(1 << 16):
                    left -= len(data)
                    if not left:
                        client.sendall(ANSWER)
                        left = len(QUESTION)


def serve_asyncio(path):
    """Answer calls and streams in a loop."""

    async def call(_request, _context):
        return ANSWER

    async def stream(requests, context):
        async for _ in requests:
            await context.write(ANSWER)

    async def serve():
        server = grpc.aio.server()
        server.add_generic_rpc_handlers(handlers(call, stream))
        server.add_insecure_port(f"unix:{path}")
        await server.start()
        await server.wait_for_termination()

    uvloop.run(serve())


class Answers(asyncio.Protocol):
    """Answers each frame as it is read."""

    def connection_made(self, transport):
        self._transport, self._frames = transport, TtrpcFrames(REQUEST)

    def data_received(self, data):
        for stream, message in self._frames.feed(data):
            ttrpc_pb2.TtrpcRequest.FromString(message)
            answer = ttrpc_pb2.TtrpcResponse(payload=ANSWER).SerializeToString()
            self._transport.write(HEADER.pack(len(answer), stream, RESPONSE, 0) + answer)


def serve_frames(path):
    """Answer ttrpc's frames in a loop."""

    async def serve():
        with private():
            server = await asyncio.get_running_loop().create_unix_server(Answers, path)
        await server.serve_forever()

    uvloop.run(serve())


def serve_threads(path):
    """Answer calls and streams in threads."""

    def stream(requests, _context):
        for _ in requests:
            yield ANSWER

    server = grpc.server(ThreadPoolExecutor(4))
    server.add_generic_rpc_handlers(handlers(lambda _request, _context: ANSWER, stream))
    server.add_insecure_port(f"unix:{path}")
    server.start()
    server.wait_for_termination()


def handlers(call, stream):
    table = {
        "Call": grpc.unary_unary_rpc_method_handler(call),
        "Stream": grpc.stream_stream_rpc_method_handler(stream),
    }
    return (grpc.method_handlers_generic_handler("bench.Questions", table),)


def in_python(serve):
    """A server in a process of its own."""

    @contextmanager
    def served(path):
        process = multiprocessing.get_context("spawn").Process(target=serve, args=(str(path),), daemon=True)
        process.start()
        try:
            yield appeared(path)
        finally:
            process.terminate()
            process.join()

    return served


def in_go(transport):
    """The same in Go, over that transport."""

    @contextmanager
    def served(path):
        program = build("./internal/benchecho", path.with_name("benchecho"), folder=GO_SDK)
        process = subprocess.Popen([str(program), transport, str(path), str(len(ANSWER))])
        try:
            yield appeared(path)
        finally:
            process.terminate()
            process.wait()

    return served


def appeared(path):
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while not listens(path):
        if time.monotonic() > deadline:
            raise TimeoutError(path)
        time.sleep(0.02)
    return path


SERVERS = (
    ("a socket", in_python(serve_socket)),
    ("Python, asyncio", in_python(serve_asyncio)),
    ("Python, threads", in_python(serve_threads)),
    ("Go", in_go("grpc")),
    ("Python, ttrpc", in_python(serve_frames)),
    ("Go, ttrpc", in_go("ttrpc")),
)
GRPC = ("Python, asyncio", "Python, threads", "Go")
CLIENTS = {
    ("no gRPC", over_socket): ("a socket",),
    ("a call each", as_calls): GRPC[:2],
    ("one stream", over_stream): GRPC,
    ("one stream, threads and hand-off", over_threads): GRPC,
    ("frames", over_frames): ("Python, ttrpc", "Go, ttrpc"),
}
