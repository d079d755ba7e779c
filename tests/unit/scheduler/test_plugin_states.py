"""What `berth plugin list` and `describe` say of plugins as processes: slow, hung, and replaced."""

import asyncio
import json
import signal
import sys
from pathlib import Path

import msgspec
import pytest

from berth.out_of_tree import versions
from berth.out_of_tree.connections import connection
from berth.replay import read_recording
from tests.failures.reporting import reports
from tests.sockets import served
from tests.suite import PATIENCE_SECONDS
from tests.unit.scheduler.test_plugins_at_work import PROFILE, at_work, pod
from tests.unit.scheduler_at_work import eventually

PROGRAM = Path(__file__).with_name("states_plugin.py")
TIMEOUTS = {"late": "2s", "stuck": "300ms", "swapped": "5s"}
"""Only the plugin that stands still is asked often in vain; a busy machine is to make no other one late."""
PLUGIN_GONE = "the recording ended early: the plugin was detached or replaced"


@pytest.fixture(autouse=True)
def _without_haste(monkeypatch):
    """What is over after a while is not over while a busy machine is at it."""
    monkeypatch.setattr(connection, "SLOW_SECONDS", 3600.0)
    monkeypatch.setattr(versions, "DRAIN_SECONDS", 3600.0)


async def started(cluster, name, version="1"):
    """A plugin process, which ends with the cluster; its address."""
    socket = cluster.folder / f"{name}-{version}.sock"
    process = await asyncio.create_subprocess_exec(sys.executable, PROGRAM, socket, name, version)
    cluster.processes[f"{name}-{version}"] = process
    await served(socket, process)
    return f"unix:{socket}"


async def attached(cluster, *names):
    """Processes of these names, attached as plugins without which pods are scheduled, too."""
    entries = [
        {
            "name": name,
            "address": await started(cluster, name),
            "profiles": [PROFILE],
            "timeout": TIMEOUTS[name],
            "failurePolicy": {"filter": "Ignore", "permit": "Ignore"},
        }
        for name in names
    ]
    listed = cluster.folder / "plugins.json"
    document = {"apiVersion": "berth.dev/v1alpha1", "kind": "PluginList", "plugins": entries}
    listed.write_bytes(msgspec.json.encode(document))
    await cluster.berth("attach", "-f", str(listed))


async def states(cluster):
    """Name, version and state of each line of `berth plugin list`."""
    _, *lines = (await cluster.berth("list")).splitlines()
    return [tuple(line.split()[:3]) for line in lines]


async def in_state(cluster, *wanted):
    """The lines of plugins in one of these states."""
    return [line for line in await states(cluster) if line[2] in wanted]


async def described(cluster, name):
    """What `berth plugin describe` says, as a document."""
    return json.loads(await cluster.berth("describe", name, "-o", "json"))


async def until(claim, expected):
    """Ask until the answer is the expected one."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while await claim() != expected:  # noqa: ASYNC110 - asks over the scheduler's port, which has no event
            await asyncio.sleep(0.02)


def create(cluster, name, **labels):
    """A pod with these labels; its name."""
    cluster.sandbox.load([pod(name, **labels)])
    return name


def delete(cluster, name):
    """The pod is gone."""
    pods = cluster.sandbox.store.collection("pods")
    (entry,) = [each for each in pods.entries() if each.decode()["metadata"]["name"] == name]
    pods.delete(entry.key, entry.decode())


async def held_at_permit(cluster, name):
    """A pod whose attempt that plugin holds up; the pod's name."""

    async def attempts():
        return (await described(cluster, name))["attempts"]

    await until(attempts, 0)
    held = create(cluster, "held", waits=name)
    await until(attempts, 1)
    return held


@reports("plugin-late", answer="`berth plugin list` and `describe`: state `slow`, `hung`")
async def test_slow_hung_and_draining_plugins_are_told_apart():
    """One list shows a plugin that was late, one whose process stands still, and both versions of a third."""
    async with at_work(listed=False) as cluster:
        await attached(cluster, "late", "stuck", "swapped")
        assert [(name, "1", "ready") for name in TIMEOUTS] == await states(cluster)

        cluster.processes["stuck-1"].send_signal(signal.SIGSTOP)
        await cluster.bound(cluster.create(5))
        await until(lambda: in_state(cluster, "hung"), [("stuck", "1", "hung")])
        await cluster.bound([create(cluster, "awaited", late="late")])
        held = await held_at_permit(cluster, "swapped")
        address = await started(cluster, "swapped", "2")
        await cluster.berth("attach", "swapped", "--address", address)

        assert [
            ("late", "1", "slow"),
            ("stuck", "1", "hung"),
            ("swapped", "2", "ready"),
            ("swapped", "1", "draining"),
        ] == await states(cluster)
        assert "State:             slow" in (await cluster.berth("describe", "late")).splitlines()

        cluster.processes["stuck-1"].send_signal(signal.SIGCONT)
        delete(cluster, held)
        await until(lambda: in_state(cluster, "hung", "draining"), [])


async def test_a_recording_of_a_version_that_is_draining_is_shown_as_its_own():
    """While the old version ends its attempt it is recorded, and the new one is not; then that is over."""
    async with at_work(listed=False) as cluster:
        await attached(cluster, "swapped")
        file = cluster.folder / "run.recording"
        recording = asyncio.create_task(cluster.berth("record", "swapped", "-o", str(file)))
        await eventually(lambda: recording.done() or (file.exists() and file.stat().st_size))
        held = await held_at_permit(cluster, "swapped")
        address = await started(cluster, "swapped", "2")
        await cluster.berth("attach", "swapped", "--address", address)
        found = await described(cluster, "swapped")

        assert ("2", False) == (found["version"], found["recording"])
        assert [("1", True, 1)] == [
            (old["version"], old["recording"], old["attempts"]) for old in found["draining"]
        ]
        assert ", 1 attempts, recorded now" in await cluster.berth("describe", "swapped")

        delete(cluster, held)
        await recording
        assert [PLUGIN_GONE] == read_recording(file).warnings
        assert [] == (await described(cluster, "swapped"))["draining"]
