"""Plugins of a scheduler at work are recorded by `berth plugin record`, and replayed to without one."""

import asyncio
import os
import stat
from contextlib import asynccontextmanager
from functools import partial

import aiohttp
import pytest

from berth.demo.processes import program
from berth.out_of_tree.points.asking_ahead import CLASSES_AHEAD
from berth.replay import ReplayOptions, read_recording, replay
from berth_sdk import Server
from tests.go_toolchain import GO_SDK, build
from tests.node_toolchain import FROM_SOURCE, NODE, NODE_SDK, install
from tests.sockets import served
from tests.unit.gpu_share.builders import gpu_node, gpu_pod
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


async def recorded(cluster, name, count, *options):
    """A recording in which these many pods come, the pods, and what the command says."""
    return await recorded_while(cluster, name, lambda: cluster.create(count), *options)


async def recorded_while(cluster, name, work, *options):
    """A recording that begins before that work, what the work gives, and what the command says."""
    file = cluster.folder / "run.recording"
    recording = asyncio.create_task(cluster.berth("record", name, "-o", str(file), *options))
    await eventually(lambda: recording.done() or (file.exists() and file.stat().st_size))
    done = work()
    return file, done, await recording


async def colours(cluster, file, version, colour):
    """What comes of the recording with that plugin."""
    server = Server(Colours(version, colour, cluster.folder / "none"), f"unix:{cluster.folder}/replayed.sock")
    await server.start()
    try:
        return await replay(file, ReplayOptions(server.address))
    finally:
        await server.stop(0)


async def test_record_and_replay():
    """What a plugin said in a run it says again; of another version just what it changes is reported."""
    async with at_work() as cluster:
        await cluster.start("v1", "red")
        await cluster.bound(cluster.create(3))
        file, pods, said = await recorded(cluster, "colours", 8, "--cycles", "8")
        assert {"red"} == await cluster.bound(pods)
        again = await cluster.berth("record", "colours", "-o", str(file), "--cycles", "1", code=2)
        same = await colours(cluster, file, "v1", "red")
        other = await colours(cluster, file, "v2", "blue")
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
    """A plugin in any language is recorded and replayed to: its answers are those of the run.

    It mirrors no pods, so that it is asked about pods of new kinds alone.
    """
    command = await hello(tmp_path)
    async with at_work(listed=False) as cluster:
        async with process(cluster.folder / "hello.sock", *command) as address:
            await cluster.berth("attach", "hello", "--address", address, "--profile", PROFILE)
            await cluster.bound(cluster.create(2))
            create = partial(cluster.create, 5, kinds=True)
            file, pods, _ = await recorded_while(cluster, "hello", create, "--cycles", "5")
            await cluster.bound(pods)
        async with process(cluster.folder / "again.sock", *command) as address:
            outcome = await replay(file, ReplayOptions(address))

    assert [] == outcome.differences
    assert 0 < outcome.compared
    assert outcome.version == outcome.recorded_version


@pytest.mark.parametrize("policy", ["best-fit", "fgd"])
async def test_gpu_share(policy):
    """A plugin that chooses devices and holds them answers in a new process as it did in the first."""
    before = [gpu_pod(f"before-{i}", milli) for i, milli in enumerate((600, 300, 600, 1000, 250))]
    shares = [gpu_pod(f"share-{i}", 100 + 150 * i) for i in range(6)]
    others = [gpu_pod("two", count=2), gpu_pod("odd", 500, count=2), gpu_pod("another-model", models="T4")]
    async with at_work(*(gpu_node(f"n{i}", 2 + i) for i in range(4)), listed=False) as cluster:
        usual = cluster.folder / "workload.json"
        usual.write_text('[{"number": 2, "cpu": 1000, "count": 1, "milli": 300}]')
        command = (program("berth-gpu-share"), "--policy", policy, "--workload", str(usual))
        async with process(cluster.folder / "gpu-share.sock", *command) as address:
            attachment = ("gpu-share", "--address", address, "--profile", PROFILE, "--timeout", "30s")
            await cluster.berth("attach", *attachment)
            cluster.sandbox.load(before)
            await cluster.bound([each["metadata"]["name"] for each in before])
            load = partial(cluster.sandbox.load, [*shares, *others])
            file, _, _ = await recorded_while(cluster, "gpu-share", load, "--cycles", "9")
        async with process(cluster.folder / "again.sock", *command) as address:
            outcome = await replay(file, ReplayOptions(address))

    assert ([], []) == (outcome.differences, outcome.warnings)
    counts = {name: count for name, (count, _, _) in outcome.latencies().items()}
    # It is also asked ahead, and about the rows that changed since.
    assert 9 <= counts["FilterScore"] <= 2 * 9 + CLASSES_AHEAD
    assert 8 == counts["Reserve"]


async def test_refused():
    """What can't be recorded is said in words, with a non-zero exit."""
    async with at_work() as cluster:
        file = cluster.folder / "file"
        assert "no plugin missing" in await cluster.berth("record", "missing", "-o", str(file), code=2)
        assert "colours has never been ready" in await cluster.berth(
            "record", "colours", "-o", str(file), code=2
        )
        await cluster.start("v1", "red")
        await cluster.bound(cluster.create(1))
        address = f"{cluster.server}/plugins/colours/recording"
        async with aiohttp.ClientSession() as session:
            async with session.post(f"{address}?attempts=none", ssl=False) as response:
                wrong = response.status, (await response.json())["message"]
            async with session.post(f"{address}?attempts=9", ssl=False) as response:
                await response.content.readany()
                second = await cluster.berth("record", "colours", "-o", str(file), code=2)
        assert not file.exists()
        # The reader is gone, which the scheduler finds out by itself.
        while "Recorded now:      yes" in await cluster.berth("describe", "colours"):  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.01)

    assert (400, "attempts: must be a number from 1 on, not 'none'") == wrong
    assert "being recorded already" in second
