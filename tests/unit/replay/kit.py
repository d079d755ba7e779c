"""A plugin of the SDK beside the host's parts, recorded into a file, and served again to be replayed to."""

import tempfile
from contextlib import asynccontextmanager, suppress

from berth.out_of_tree.errors import SidecarError
from berth.recordings.calls.recording import Extent
from berth.replay import ReplayOptions, replay
from berth_sdk import Plugin, Server
from tests.unit.out_of_tree.scripted import Harness, cycle, running

NAME = "teams"


class Teams(Plugin):
    """Turns down the nodes of other teams, scores by the length of a node's name, reserves everything."""

    name = NAME
    version = "1"

    def configure(self, arguments, profile):
        """Take any."""

    def filter(self, pod, node):
        return None if node.labels.get("team") in (None, pod.labels.get("team")) else "another team's node"

    def score(self, pod, node):
        del pod
        return len(node.name)

    def reserve(self, pod, node):
        """Hold everything."""

    def unreserve(self, key, node_name):
        """There is nothing to give back."""


@asynccontextmanager
async def serving(plugin):
    """The plugin's address."""
    with tempfile.TemporaryDirectory(prefix="berth-") as folder:
        server = Server(plugin, f"unix:{folder}/p.sock")
        await server.start()
        try:
            yield server.address
        finally:
            await server.stop(0)


@asynccontextmanager
async def at_work(plugin, *nodes):
    """The host's parts, with the plugin ready."""
    async with (
        serving(plugin) as address,
        running(Harness(_path(address), name=plugin.name), *nodes) as harness,
    ):
        await harness.up()
        yield harness


def _path(address):
    return address.removeprefix("unix:")


def begun(harness, **extent):
    """A recording that begins now."""
    return harness.host.versions[NAME].record(Extent(**extent))


async def written(recording, path):
    """The recording's file, to its end."""
    with path.open("wb") as file:
        async for batch in recording.batches():
            file.write(batch)
    return path


async def tried(harness, name, attempt=1, reserve="", **fields):
    """An attempt to schedule that pod, as far as this plugin sees of it."""
    pod, state = harness.pod(name, **fields), cycle(attempt)
    with suppress(SidecarError):
        await harness.filter(pod, state)
        await harness.score(state, pod)
    if reserve:
        await harness.plugin.reserve(state, pod, reserve)


async def a_run(path, plugin=None):
    """The recording of a run with rows that move: two teams' pods, a node that goes, nodes that come."""
    async with at_work(plugin or Teams()) as harness:
        recording = begun(harness)
        harness.add_nodes("red", labels={"team": "red"})
        await tried(harness, "a", labels={"team": "red"}, reserve="red")
        await tried(harness, "b", labels={"team": "blue"})
        node = next(each for each in harness.snapshot.nodes if each.name == "n0")
        harness.cache.remove_node(node)
        harness.add_nodes("blue", labels={"team": "blue"})
        await tried(harness, "c", labels={"team": "blue"}, reserve="blue")
        recording.end(1)
        return await written(recording, path)


async def replayed(path, plugin, **options):
    """What comes of it with that plugin."""
    async with serving(plugin) as address:
        return await replay(path, ReplayOptions(address, **options))
