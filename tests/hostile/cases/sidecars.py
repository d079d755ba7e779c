"""Plugin processes that answer too much, or what they should not."""

import asyncio
import json
import shutil
import sys
import tempfile
from pathlib import Path

from berth.client.resources import PODS
from berth.demo.processes import Child
from berth.sandbox.free_port import free_port
from tests.hostile.arena import pod
from tests.hostile.playing import Case

REPOSITORY = Path(__file__).parents[3]
PROFILES = """\
profiles:
- schedulerName: default-scheduler
- schedulerName: hostile
  plugins:
    multiPoint:
      enabled: [{name: hostile}]
"""
READY_SECONDS = 30.0


class Sidecar:
    """A plugin process that does one deed, and the list that names it."""

    def __init__(self, deed, folder, *, tcp=False):
        # A private folder with a short path: a unix socket's may have about 100 characters.
        self._sockets = Path(tempfile.mkdtemp(prefix="h-"))
        self._socket = None if tcp else self._sockets / "plugin.sock"
        self._deed, self._folder, self._process = deed, Path(folder), None
        self._address = f"127.0.0.1:{free_port()}" if tcp else f"unix:{self._socket}"
        listed = {"apiVersion": "berth.dev/v1alpha1", "kind": "PluginList"}
        self.list = self._folder / "plugins.yaml"
        plugins = [{"name": "hostile", "address": self._address}]
        self.list.write_text(json.dumps({**listed, "plugins": plugins}))

    async def start(self):
        """Start it, and wait until it listens."""
        command = [sys.executable, "-m", "tests.hostile.sidecar", self._deed, self._address]
        environment = {"PYTHONPATH": str(REPOSITORY)}
        self._process = await Child.start("plugin", command, self._folder / "plugin.log", environment)
        if self._socket is not None:
            await self._process.wait_for(self._socket, READY_SECONDS)

    async def stop(self):
        """End it; it can be started again."""
        await self._process.stop()

    async def remove(self):
        """End it for good."""
        await self.stop()
        shutil.rmtree(self._sockets, ignore_errors=True)


def with_plugin(deed, *, tcp=False):
    """A plugin that does the deed, in a profile of its own."""

    async def prepare(folder):
        sidecar = Sidecar(deed, folder, tcp=tcp)
        await sidecar.start()
        return PROFILES, (f"--plugins={sidecar.list}",), sidecar.remove

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
    Case("M2", "plugin", "listens on TCP without TLS", ask_the_plugin, prepare=with_plugin("nothing", tcp=True)),
    Case("M4", "plugin", "a reason of 3 MB", ask_the_plugin, prepare=with_plugin("long-reason")),
    Case("M4b", "plugin", "errors of Configure of 3 MB", ask_the_plugin, prepare=with_plugin("long-errors")),
    Case("M4c", "plugin", "500 kinds to watch, one a path", ask_the_plugin, prepare=with_plugin("odd-kinds")),
    Case("M5", "plugin", "a patch that removes pod-template-hash", ask_the_plugin, prepare=with_plugin("patch")),
    Case("G1", "plugin", "asks for all pods again every millisecond", ask_the_plugin, prepare=with_plugin("requeue")),
)
