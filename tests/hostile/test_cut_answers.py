"""A plugin that dies in the middle of an answer, after each of its bytes and at each extension point.

What it may do at most: have the attempt fail, which is counted as the plugin's. Nothing waits for the rest of
the answer, and the next attempt is answered as soon as the plugin is there again.
"""

import asyncio
import tempfile
from contextlib import asynccontextmanager, suppress
from inspect import isawaitable
from pathlib import Path

import numpy as np
import pytest

from berth.config.catalogue import ExtensionPoint
from berth.config.out_of_tree.sidecars import FailurePolicy
from berth.framework.status import Code
from berth.out_of_tree.connections import connection
from berth.out_of_tree.errors import SidecarError
from berth_plugin_proto import common_pb2, identity_pb2, scheduling_pb2
from tests.suite import PATIENCE_SECONDS
from tests.unit.out_of_tree.scripted import SUCCESS, Harness, Scripted, cycle, passing, running, until
from tests.unit.out_of_tree.test_every_point import Evicting, turned_down

SOCKET, SECOND = "p.sock", "p.sock.ttrpc"
POINTS = (
    identity_pb2.EXTENSION_POINT_PRE_ENQUEUE,
    identity_pb2.EXTENSION_POINT_FILTER,
    identity_pb2.EXTENSION_POINT_SCORE,
    identity_pb2.EXTENSION_POINT_POST_FILTER,
    identity_pb2.EXTENSION_POINT_RESERVE,
    identity_pb2.EXTENSION_POINT_PERMIT,
    identity_pb2.EXTENSION_POINT_PRE_BIND,
    identity_pb2.EXTENSION_POINT_BIND,
)
NO_ROOM = common_pb2.Status(code=common_pb2.CODE_UNSCHEDULABLE, reasons=["no"])
LAST_BYTES = 40
"""Where a cut may come too late to be one: what the transport sends behind an answer, as acknowledgements."""


class CutWire:
    """Stands between the host and one socket of a plugin, and cuts all connections after so many bytes."""

    def __init__(self):
        self.left = None
        """How many bytes may still pass from the plugin; None for any number."""
        self.passed = 0
        self._writers = set()

    @asynccontextmanager
    async def between(self, front, back):
        """Serve the front socket, and speak to the one at the back."""
        pumps = set()

        async def take(reader, writer):
            try:
                behind = await asyncio.open_unix_connection(back)
            except OSError:
                writer.transport.abort()
                return
            self._writers |= {writer, behind[1]}
            for pump in (self._pump(reader, behind[1]), self._pump(behind[0], writer, counts=True)):
                pumps.add(asyncio.create_task(pump))

        server = await asyncio.start_unix_server(take, front)
        front.chmod(0o600)
        try:
            yield
        finally:
            server.close()
            self.cut()
            await asyncio.gather(*pumps, return_exceptions=True)

    async def _pump(self, reader, writer, *, counts=False):
        with suppress(ConnectionError):
            while data := await reader.read(65_536):
                passing_on = data[: self.left] if counts else data
                writer.write(passing_on)
                if counts:
                    self._count(len(passing_on))
        writer.transport.abort()

    def _count(self, size):
        self.passed += size
        if self.left is not None:
            self.left -= size
            if not self.left:
                asyncio.get_running_loop().call_soon(self.cut)

    def cut_after(self, size):
        """Let so many more bytes pass, at least one."""
        self.left = size

    def heal(self):
        """Let everything pass."""
        self.left = None

    def cut(self):
        """End all connections."""
        for writer in self._writers:
            # What was written is sent; nothing comes after it.
            writer.close()
        self._writers.clear()


async def _asked(harness, point, pod):
    """What the plugin says at the point: the code of a status, the codes of nodes."""
    plugin, state = harness.plugin, cycle()
    ask = {
        "PreEnqueue": lambda: plugin.pre_enqueue(pod),
        "FilterScore": lambda: plugin.filter(state, pod, harness.snapshot),
        "PostFilter": lambda: plugin.post_filter(state, pod, turned_down(harness)),
        "Reserve": lambda: plugin.reserve(state, pod, "n0"),
        "Permit": lambda: plugin.permit(state, pod, "n0"),
        "PreBind": lambda: plugin.pre_bind(state, pod, "n0"),
        "Bind": lambda: plugin.bind(state, pod, "n0"),
    }
    answer = ask[point]()
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            found = await answer if isawaitable(answer) else answer
    except SidecarError:
        return Code.ERROR
    found = getattr(found, "status", found)
    return found.tolist() if isinstance(found, np.ndarray) else found.code


RIGHT = {
    "PreEnqueue": Code.SUCCESS,
    "FilterScore": [0, 0, 0],
    "PostFilter": Code.UNSCHEDULABLE,
    "Reserve": Code.SUCCESS,
    "Permit": Code.SUCCESS,
    "PreBind": Code.SUCCESS,
    "Bind": Code.SUCCESS,
}


def plugin_of(transport):
    """A plugin that serves all points."""
    more = {"ttrpc_socket": SECOND} if transport == "ttrpc" else {}
    plugin = Scripted(*POINTS, **more)
    for point in RIGHT:
        status = NO_ROOM if point == "PostFilter" else SUCCESS
        plugin.replies[point] = (
            _passes if point == "FilterScore" else getattr(scheduling_pb2, f"{point}Response")(status=status)
        )
    return plugin


async def _passes(request, _context):
    return passing(request)


@asynccontextmanager
async def cut(transport):
    """A host before a plugin whose connections can be cut."""
    wire, plain = CutWire(), CutWire()
    first, second = (plain, wire) if transport == "ttrpc" else (wire, plain)
    fails = dict.fromkeys(ExtensionPoint, FailurePolicy.FAIL)
    with tempfile.TemporaryDirectory(prefix="berth-") as name:
        folder = Path(name)
        behind = folder / "behind"
        behind.mkdir()
        async with (
            plugin_of(transport).served(behind / SOCKET),
            first.between(folder / SOCKET, behind / SOCKET),
            second.between(folder / SECOND, behind / SECOND),
            running(Harness(folder / SOCKET, policy=fails)) as harness,
        ):
            harness.handle.preemption = Evicting()
            harness.allow()
            await harness.up()
            yield harness, wire


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    monkeypatch.setattr(connection, "FIRST_BACKOFF_SECONDS", 0.001)
    monkeypatch.setattr(connection, "LONGEST_BACKOFF_SECONDS", 0.01)


async def size_of(harness, wire, point):
    """How many bytes an answer has: the least of some, since pings of gRPC may come between."""
    await _asked(harness, point, harness.pod("first"))
    sizes = []
    for i in range(3):
        before = wire.passed
        assert RIGHT[point] == await _asked(harness, point, harness.pod(f"measured-{i}"))
        sizes.append(wire.passed - before)
    return min(sizes)


async def cut_once(harness, wire, point, size):
    """The answer when it is cut after so many bytes, and how many failures in a row are counted then."""
    starts = harness.connection.starts
    wire.cut_after(size)
    found = await _asked(harness, point, harness.pod(f"cut-{size}"))
    failures = harness.connection.breaker._failures
    wire.cut()
    await until(lambda: not harness.connection.ready or harness.connection.starts > starts)
    wire.heal()
    await harness.up()
    return found, failures


@pytest.mark.parametrize("point", RIGHT)
@pytest.mark.parametrize("transport", ["ttrpc", "grpc"])
async def test_a_plugin_that_dies_in_an_answer(transport, point):
    """Over ttrpc after each byte; over gRPC after each of Filter's, and some of those of the other points."""
    async with cut(transport) as (harness, wire):
        size = await size_of(harness, wire, point)
        every = transport == "ttrpc" or point == "FilterScore"
        for after in range(1, size) if every else (1, 9, size // 2):
            found, failures = await cut_once(harness, wire, point, after)
            assert (Code.ERROR, 1) == (found, failures) or (
                after >= size - LAST_BYTES and transport == "grpc" and found == RIGHT[point]
            ), f"after {after} of {size} bytes"

            assert RIGHT[point] == await _asked(harness, point, harness.pod(f"next-{after}"))
            assert 0 == harness.connection.breaker._failures
