"""Plugin processes that answer too much, or what they should not."""

import asyncio
import json
import shutil
import socket
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

from berth.client.resources import PODS
from berth.demo.processes import Child
from berth.sandbox.free_port import free_port
from tests.hostile.arena import pod
from tests.hostile.playing import Case
from tests.suite import PATIENCE_SECONDS

REPOSITORY = Path(__file__).parents[3]
PROFILES = """\
profiles:
- schedulerName: default-scheduler
- schedulerName: hostile
  plugins:
    multiPoint:
      enabled: [{name: hostile}]
"""


class Sidecar:
    """A plugin process that does one deed, and the list that names it."""

    def __init__(self, deed, folder, *, tcp=False):
        # A private folder with a short path: a unix socket's may have about 100 characters.
        self._sockets = Path(tempfile.mkdtemp(prefix="h-"))
        self._socket = self._sockets / "plugin.sock"
        self._deed, self._folder, self._process = deed, Path(folder), None
        self._relay, self._over = None, (own_address(), free_port()) if tcp else None
        self._address = f"unix:{self._socket}"
        self.list = self._folder / "plugins.yaml"
        listed = {"apiVersion": "berth.dev/v1alpha1", "kind": "PluginList"}
        address = "{}:{}".format(*self._over) if self._over else self._address
        plugins = [{"name": "hostile", "address": address}]
        self.list.write_text(json.dumps({**listed, "plugins": plugins}))

    async def start(self):
        """Start it, and wait until it listens."""
        command = [sys.executable, "-m", "tests.hostile.sidecar", self._deed, self._address]
        environment = {"PYTHONPATH": str(REPOSITORY)}
        self._process = await Child.start("plugin", command, self._folder / "plugin.log", environment)
        await self._process.wait_for(self._socket, PATIENCE_SECONDS)
        if self._over is not None:
            self._relay = await asyncio.start_server(self._carry, *self._over)

    async def _carry(self, reader, writer):
        """Pass a connection over TCP, which the SDK does not serve without TLS, on to the socket."""
        theirs, ours = await asyncio.open_unix_connection(str(self._socket))
        await asyncio.gather(copied(reader, ours), copied(theirs, writer))

    async def stop(self):
        """End it; it can be started again."""
        await self._process.stop()

    async def remove(self):
        """End it for good."""
        if self._relay is not None:
            self._relay.close()
        await self.stop()
        shutil.rmtree(self._sockets, ignore_errors=True)


async def copied(reader, writer):
    """Write what is read, to its end."""
    with suppress(OSError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
        writer.close()


def own_address():
    """This machine's address as others see it; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))
        return probe.getsockname()[0]


def with_plugin(deed, *, tcp=False, configuration=PROFILES):
    """A plugin that does the deed, in a profile of its own unless the configuration says otherwise."""

    async def prepare(folder):
        sidecar = Sidecar(deed, folder, tcp=tcp)
        await sidecar.start()
        return configuration, (f"--plugins={sidecar.list}",), sidecar.remove

    return prepare


async def ask_the_plugin(arena):
    """Pods of the plugin's profile, and how the first looks after a while."""
    owned = {"pod-template-hash": "abc", "app": "mine"}
    for number in range(5):
        await arena.write(pod(f"asked-{number}", labels=owned, schedulerName="hostile"))
    await asyncio.sleep(10)
    data = await arena.api.get(PODS, "default", "asked-0")
    found = json.loads(data)
    kept = "pod-template-hash" in found["metadata"]["labels"]
    placed = "placed" if found["spec"].get("nodeName") else "not placed"
    arena.notes["pod"] = f"{placed}, {len(data):,} bytes, pod-template-hash {'kept' if kept else 'removed'}"


CASES = (
    Case(
        "M2", "plugin", "listens on TCP without TLS", ask_the_plugin, prepare=with_plugin("nothing", tcp=True)
    ),
    Case("M4", "plugin", "a reason of 3 MB", ask_the_plugin, prepare=with_plugin("long-reason")),
    Case("M4b", "plugin", "errors of Configure of 3 MB", ask_the_plugin, prepare=with_plugin("long-errors")),
    Case("M4c", "plugin", "500 kinds to watch, one a path", ask_the_plugin, prepare=with_plugin("odd-kinds")),
    Case(
        "M5", "plugin", "a patch that removes pod-template-hash", ask_the_plugin, prepare=with_plugin("patch")
    ),
    Case(
        "G1",
        "plugin",
        "asks for all pods again every millisecond",
        ask_the_plugin,
        prepare=with_plugin("requeue"),
    ),
)
