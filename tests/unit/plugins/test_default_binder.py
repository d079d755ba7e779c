from berth.framework.cycle_state import CycleState
from berth.plugins.default_binder import DefaultBinder
from berth.testing.builders import make_pod
from berth.testing.handles import RecordingWriter, make_plugin


async def test_bind():
    """The pod is bound to the node by one write."""
    writer, pod = RecordingWriter(), make_pod()
    status = await make_plugin(DefaultBinder, writer=writer).bind(CycleState(), pod, "n0")

    assert status.ok
    assert [(pod, "n0")] == writer.bindings


async def test_failure():
    """What went wrong comes back in the status."""
    failure = RuntimeError("pod is already assigned")
    plugin = make_plugin(DefaultBinder, writer=RecordingWriter(failure=failure))

    assert failure is (await plugin.bind(CycleState(), make_pod(), "n0")).error
