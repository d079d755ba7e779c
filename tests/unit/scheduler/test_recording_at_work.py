"""Plugins of a scheduler at work are recorded by `berth plugin record`, and replayed to without one."""

import asyncio
import os
import stat
from contextlib import asynccontextmanager

import aiohttp
import pytest

from berth.replay import Options, read_recording, replay
from berth_sdk import Server
from tests.go_toolchain import GO_SDK, build
from tests.node_toolchain import FROM_SOURCE, NODE, NODE_SDK, install
from tests.sockets import served
from tests.unit.scheduler.colours_plugin import Colours
from tests.unit.scheduler.test_plugins_at_work import PROFILE, at_work
from tests.unit.scheduler_at_work import eventually


@asynccontextmanager
async def process(socket, *command):
    """A plugin in a process of its own; its address."""
    environment = {**os.environ, "BERTH_PLUGIN_ADDRESS": f"unix:{socket}"}
    started = await asyncio.create_subprocess_exec(
        *command, env=environment, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        await served(socket, started)
        yield f"unix:{socket}"
    finally:
        started.kill()
        await started.wait()
        socket.unlink(missing_ok=True)


async def recorded(world, name, count, *options):
    """A recording in which these many pods come, the pods, and what the command says."""
    file = world.folder / "run.recording"
    recording = asyncio.create_task(world.berth("record", name, "-o", str(file), *options))
    await eventually(lambda: recording.done() or (file.exists() and file.stat().st_size))
    pods = world.create(count)
    return file, pods, await recording


async def colours(world, file, version, colour):
    """What comes of the recording with that plugin."""
    server = Server(Colours(version, colour, world.folder / "none"), f"unix:{world.folder}/replayed.sock")
    await server.start()
    try:
        return await replay(file, Options(server.address))
    finally:
        await server.stop(0)


async def test_record_and_replay():
    """What a plugin said in a run it says again; of another version just what it changes is told."""
    async with at_work() as world:
        await world.start("v1", "red")
        await world.bound(world.create(3))
        file, pods, said = await recorded(world, "colours", 8, "--cycles", "8")
        assert {"red"} == await world.bound(pods)
        again = await world.berth("record", "colours", "-o", str(file), "--cycles", "1", code=2)
        same = await colours(world, file, "v1", "red")
        other = await colours(world, file, "v2", "blue")
        mode, warnings = stat.S_IMODE(file.stat().st_mode), read_recording(file).warnings

    assert (0o600, []) == (mode, warnings)
    assert "8 attempts ended" in said
    assert "is there already" in again
    assert [] == same.differences
    assert 8 <= same.compared
    assert {f"default/{name}" for name in pods} == {each.pod for each in other.differences}
    assert {("node", "red"), ("node", "blue")} == {
        (change.kind, change.name) for each in other.differences for change in each.changes
    }


async def hello_in_go(folder):
    """The command of the Go template."""
    return [str(await asyncio.to_thread(build, ".", folder / "hello", folder=GO_SDK / "template"))]


async def hello_in_typescript(_folder):
    """The command of the TypeScript template."""
    await asyncio.to_thread(install)
    return [str(NODE), FROM_SOURCE, str(NODE_SDK / "template/hello.ts")]


@pytest.mark.parametrize("hello", [hello_in_go, hello_in_typescript])
async def test_other_languages(tmp_path, hello):
    """A plugin in any language is recorded and replayed to: its answers are those of the run."""
    command = await hello(tmp_path)
    async with at_work(listed=False) as world:
        async with process(world.folder / "hello.sock", *command) as address:
            await world.berth("attach", "hello", "--address", address, "--profile", PROFILE)
            await world.bound(world.create(2))
            file, pods, _ = await recorded(world, "hello", 5, "--cycles", "5")
            await world.bound(pods)
        async with process(world.folder / "again.sock", *command) as address:
            outcome = await replay(file, Options(address))

    assert [] == outcome.differences
    assert 0 < outcome.compared
    assert outcome.version == outcome.recorded_version


async def test_refused():
    """What can't be recorded is said in words, with a non-zero exit."""
    async with at_work() as world:
        file = world.folder / "file"
        assert "no plugin nobody" in await world.berth("record", "nobody", "-o", str(file), code=2)
        assert "colours has never been ready" in await world.berth(
            "record", "colours", "-o", str(file), code=2
        )
        await world.start("v1", "red")
        await world.bound(world.create(1))
        address = f"{world.server}/plugins/colours/recording"
        async with aiohttp.ClientSession() as session:
            async with session.post(f"{address}?attempts=none", ssl=False) as response:
                wrong = response.status, (await response.json())["message"]
            async with session.post(f"{address}?attempts=9", ssl=False) as response:
                await response.content.readany()
                second = await world.berth("record", "colours", "-o", str(file), code=2)
        assert not file.exists()
        # Nobody reads any more, which the scheduler finds out by itself.
        while "Recorded now:      yes" in await world.berth("describe", "colours"):  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.01)

    assert (400, "attempts: must be a number from 1 on, not 'none'") == wrong
    assert "being recorded already" in second
