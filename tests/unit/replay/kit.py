"""A plugin of the SDK beside the host's parts, recorded into a file, and served again to be replayed to."""

import tempfile
from contextlib import asynccontextmanager, suppress

from berth.out_of_tree.errors import SidecarError
from berth.out_of_tree.recordings.recording import Extent
from berth.replay import Options, replay
from berth_sdk import Plugin, Server
from tests.unit.out_of_tree.scripted import World, cycle, running

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
    async with serving(plugin) as address, running(World(_path(address), name=plugin.name), *nodes) as world:
        await world.up()
        yield world


def _path(address):
    return address.removeprefix("unix:")


def begun(world, **extent):
    """A recording that begins now."""
    return world.host.versions[NAME].record(Extent(**extent))


async def written(recording, path):
    """The recording's file, to its end."""
    with path.open("wb") as file:
        async for batch in recording.batches():
            file.write(batch)
    return path


async def tried(world, name, attempt=1, reserve="", **fields):
    """An attempt to schedule that pod, as far as this plugin sees of it."""
    pod, state = world.pod(name, **fields), cycle(attempt)
    with suppress(SidecarError):
        await world.filter(pod, state)
        await world.score(state, pod)
    if reserve:
        await world.plugin.reserve(state, pod, reserve)


async def a_run(path, plugin=None):
    """The recording of a run with rows that move: two teams' pods, a node that goes, nodes that come."""
    async with at_work(plugin or Teams()) as world:
        recording = begun(world)
        world.add_nodes("red", labels={"team": "red"})
        await tried(world, "a", labels={"team": "red"}, reserve="red")
        await tried(world, "b", labels={"team": "blue"})
        node = next(each for each in world.snapshot.nodes if each.name == "n0")
        world.cache.remove_node(node)
        world.add_nodes("blue", labels={"team": "blue"})
        await tried(world, "c", labels={"team": "blue"}, reserve="blue")
        recording.end(1)
        return await written(recording, path)


async def replayed(path, plugin, **options):
    """What comes of it with that plugin."""
    async with serving(plugin) as address:
        return await replay(path, Options(address, **options))
