import asyncio

import pytest

from berth.framework.attempts.cycle_state import CycleState
from berth.plugins.default_binder import DefaultBinder
from berth.scheduler.loop.background import AsyncioBackground
from berth.testing.builders import make_pod
from berth.testing.handles import RememberingWriter, make_plugin


def begun(writer, pod):
    """What the plugin is done with."""
    statuses = []
    make_plugin(DefaultBinder, writer=writer).begin_bind(CycleState(), pod, "n0", statuses.append)
    return statuses


def test_bind():
    """The pod is bound to the node by one write."""
    writer, pod = RememberingWriter(), make_pod()
    [status] = begun(writer, pod)

    assert status.ok
    assert [(pod, "n0")] == writer.bindings


def test_failure():
    """What went wrong comes back in the status."""
    failure = RuntimeError("pod is already assigned")
    [status] = begun(RememberingWriter(failure=failure), make_pod())

    assert failure is status.error


@pytest.mark.parametrize("failure", [None, RuntimeError("gone")])
async def test_waited_for(failure):
    """Where PreBind had work, the same is waited for."""
    plugin = make_plugin(DefaultBinder, writer=RememberingWriter(failure=failure))
    async with asyncio.TaskGroup() as tasks:
        plugin.handle.background = AsyncioBackground(tasks)
        status = await plugin.bind(CycleState(), make_pod(), "n0")

    assert failure is status.error
