"""Plugins that come, go, hang, refuse and lie: the connection's way through all of it."""

import asyncio
import socket
import tempfile
from contextlib import nullcontext
from pathlib import Path

import grpc
import pytest

from berth.out_of_tree.connections import connection
from berth.out_of_tree.connections.conditions import ConditionType
from berth.out_of_tree.connections.connection import LATE_CALLS, Phase
from berth.out_of_tree.errors import CallFailedError, NotConnectedError, SidecarError
from berth.out_of_tree.transport.socket_access import check_socket, missing_folder
from berth_plugin_proto import identity_pb2, scheduling_pb2, state_pb2
from berth_sdk import Plugin
from berth_sdk.serving import Server
from tests.failures.reporting import reports
from tests.unit.out_of_tree.scripted import (
    SUCCESS,
    Harness,
    Scripted,
    cycle,
    hosted,
    passing,
    running,
    until,
)


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    """Dial again soon: what is tested is that it happens, not when."""
    monkeypatch.setattr(connection, "LONGEST_BACKOFF_SECONDS", 0.05)
    monkeypatch.setattr(connection, "LONGEST_BACKOFF_WHEN_LATE_SECONDS", 0.05)


@pytest.fixture
def folder():
    """A private folder with a short path."""
    with tempfile.TemporaryDirectory(prefix="berth-") as name:
        yield Path(name)


class Colours(Plugin):
    """Takes nodes by their colour, with the SDK."""

    name = "colours"

    def configure(self, arguments, profile):
        assert ({"a": 1}, "default-scheduler") == (arguments, profile)

    def filter(self, pod, node):
        return None if node.name == pod.labels.get("wants", node.name) else "another node was wanted"


def begins(plugin):
    """How each opening of the state stream began: the generation to resume from, None for a transfer."""
    begun = [request.begin for request in plugin.synced if request.HasField("begin")]
    return [begin.resume_generation if begin.HasField("resume_generation") else None for begin in begun]


async def test_configured_and_synced():
    """A plugin is greeted, configured with the profile's arguments, and given the state, then asked."""
    plugin = Scripted()
    async with hosted(plugin) as harness:
        await harness.up()
        assert Phase.READY is harness.connection.phase

    assert ["Handshake", "Configure"] == [name for name, _ in plugin.asked]
    assert b'{"a":1}' == plugin.requests("Configure")[0].arguments
    assert ["begin", "chunk", "commit"] == [request.WhichOneof("body") for request in plugin.synced]


async def test_without_plugin(folder):
    """Without its plugin a call fails at once, with the reason."""
    async with running(Harness(folder / "absent.sock")) as harness:
        await until(lambda: harness.connection.last_error)
        with pytest.raises(NotConnectedError, match=r"not connected: .*absent\.sock: No such file"):
            await harness.filter()


async def test_plugin_restarts(folder):
    """A plugin that is replaced by a new process is configured and synced anew, and asked again."""
    path = folder / "p.sock"
    async with running(Harness(path, name="colours")) as harness:
        for starts in (1, 2):
            server = Server(Colours(), f"unix:{path}")
            await server.start()
            await until(lambda starts=starts: harness.connection.starts == starts)
            wants = harness.pod(f"p{starts}", labels={"wants": "n1"})
            assert [1, 0, 1] == (await harness.filter(wants, cycle())).tolist()
            await server.stop(grace_seconds=0)
            await until(lambda: not harness.connection.ready)
            with pytest.raises(SidecarError):
                await harness.filter(wants, cycle())


async def test_resumes(folder):
    """A plugin that kept its state across a lost connection gets only what came since."""
    plugin, path = Scripted(), folder / "p.sock"
    async with running(Harness(path)) as harness:
        async with plugin.served(path):
            await harness.up()
        await until(lambda: not harness.connection.ready)
        harness.add_nodes("n3")
        async with plugin.served(path):
            await harness.up()
            await until(lambda: plugin.synced[-1].HasField("delta"))

    assert [None, 1] == begins(plugin)
    assert (1, 2, 4) == (
        plugin.synced[-1].delta.base_generation,
        plugin.synced[-1].delta.generation,
        plugin.synced[-1].delta.node_count,
    )


async def test_other_epoch(folder):
    """A plugin that holds the state of another host gets everything."""
    plugin = Scripted()
    plugin.held = state_pb2.Held(epoch="another", generation=1)
    async with plugin.served(folder / "p.sock"), running(Harness(folder / "p.sock")) as harness:
        await harness.up()

    assert [None] == begins(plugin)


@reports("state-refused", log="`state refused, sent again`, with plugin and its words")
async def test_refused_step(caplog):
    """After a Nack everything is sent again, on the same stream."""
    plugin = Scripted()
    async with hosted(plugin) as harness:
        await harness.up()
        refusal = state_pb2.Nack(generation=2, reason=state_pb2.NACK_REASON_MISMATCH, message="no")
        plugin.refusals.append(refusal)
        harness.add_nodes("n3")
        await until(lambda: len(begins(plugin)) == 2 and plugin.synced[-1].HasField("commit"))
        await until(lambda: harness.connection.acknowledged == 2)

    assert [None, None] == begins(plugin)
    assert 1 == harness.connection.starts
    assert "state refused, sent again plugin=scripted err=no" in caplog.text


async def test_acknowledges_the_future():
    """A plugin that claims to hold what was never sent is not believed."""
    plugin = Scripted()

    async def lying(requests, _context):
        yield state_pb2.SyncResponse(held=state_pb2.Held())
        async for request in requests:
            if request.HasField("commit"):
                yield state_pb2.SyncResponse(ack=state_pb2.Ack(generation=99))

    plugin.sync = lying
    async with hosted(plugin) as harness:
        await until(lambda: harness.connection.last_error)

    assert "it holds generation 99, the newest is 1" in harness.connection.last_error
    assert not harness.connection.starts


def offering(*points):
    return identity_pb2.Capabilities(extension_points=points)


@reports(
    "handshake-wrong",
    condition="`Configured` of the plugin, with everything that is wrong",
    log="`plugin not connected`, with the cause",
)
@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"name": "other"}, "the plugin calls itself 'other', the list calls it 'scripted'"),
        ({"supported_versions": [7, 8]}, "it speaks protocol versions 7, 8, this scheduler speaks 1"),
        ({"capabilities": identity_pb2.Capabilities()}, "it announces no extension points"),
        (
            {"capabilities": offering(identity_pb2.EXTENSION_POINT_FILTER_OVERLAYS)},
            "it announces FilterOverlays without Filter",
        ),
    ],
)
async def test_handshake_problems(changes, says, caplog):
    """What is wrong with a handshake is said to both sides, and the plugin is not used."""
    plugin = Scripted()
    given = {"name": "scripted", "supported_versions": [1], "capabilities": plugin.capabilities, **changes}
    plugin.replies["Handshake"] = identity_pb2.HandshakeResponse(**given)
    async with hosted(plugin) as harness:
        await until(lambda: harness.connection.last_error)

    assert f"plugin scripted: {says}" == harness.connection.last_error
    (configured,) = [each for each in harness.connection.conditions if each.kind is ConditionType.CONFIGURED]
    assert "Configured" == configured.kind.value
    assert (False, "Refused", says) == (configured.holds, configured.reason, configured.message)
    assert f"plugin not connected plugin=scripted err=plugin scripted: {says}" in caplog.text
    assert [says] == list(plugin.requests("Configure")[0].handshake_errors)


async def test_arguments_refused():
    """Errors in a profile's arguments keep the plugin out, with its own text."""
    plugin = Scripted()
    plugin.replies["Configure"] = identity_pb2.ConfigureResponse(errors=["a: must be 2"])
    async with hosted(plugin) as harness:
        await until(lambda: harness.connection.last_error)

    assert "profile default-scheduler: a: must be 2" in harness.connection.last_error


async def test_late_answer():
    """A call that runs out of time fails with a text that says so."""
    plugin = Scripted()

    async def never(_request, _context):
        await asyncio.Event().wait()

    plugin.replies["FilterScore"] = never
    async with hosted(plugin, timeout_seconds=0.02) as harness:
        await harness.up()
        with pytest.raises(CallFailedError, match="FilterScore was not answered in time"):
            await harness.filter()


async def test_hung_plugin():
    """A plugin that keeps being late is hung up on; calls fail at once until it has been greeted again."""
    plugin = Scripted()
    hangs = True

    async def slow(request, _context):
        if hangs:
            await asyncio.Event().wait()
        return passing(request)

    plugin.replies["FilterScore"] = slow
    async with hosted(plugin, timeout_seconds=0.02) as harness:
        await harness.up()
        for _ in range(LATE_CALLS):
            with pytest.raises(CallFailedError):
                await harness.filter()
        with pytest.raises(NotConnectedError, match=f"{LATE_CALLS} calls in a row were not answered"):
            await harness.filter()
        hangs = False
        harness.allow()
        await until(lambda: harness.connection.starts == 2)
        codes = await harness.plugin.filter(cycle(), harness.pod(), harness.snapshot)

    assert [0, 0, 0] == codes.tolist()


async def test_dies_while_asked(folder):
    """A plugin that dies during a call fails that call, and cancels no task."""
    plugin, path = Scripted(), folder / "p.sock"
    asked = asyncio.Event()

    async def never(_request, _context):
        asked.set()
        await asyncio.Event().wait()

    plugin.replies["FilterScore"] = never
    async with running(Harness(path)) as harness:
        async with plugin.served(path):
            await harness.up()
            call = asyncio.create_task(harness.filter())
            await asked.wait()
        with pytest.raises(SidecarError):
            await call

    assert not call.cancelled()


async def test_cancelled_caller():
    """A caller that gives up on a call is cancelled as usual."""
    plugin = Scripted()
    asked = asyncio.Event()

    async def never(_request, _context):
        asked.set()
        await asyncio.Event().wait()

    plugin.replies["FilterScore"] = never
    async with hosted(plugin) as harness:
        await harness.up()
        call = asyncio.create_task(harness.filter())
        await asked.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call


async def test_refuses_open_socket():
    """A socket that others may write to is not dialled."""
    plugin = Scripted()
    async with hosted(plugin, mode=0o666) as harness:
        await until(lambda: harness.connection.last_error)

    assert "others may write to " in harness.connection.last_error
    assert "(mode 0666): make it 0600" in harness.connection.last_error
    assert [] == plugin.asked


def test_no_socket(folder):
    """A file where the socket should be is named as such."""
    (folder / "p.sock").touch(mode=0o600)

    with pytest.raises(NotConnectedError, match=r"p\.sock is no socket"):
        check_socket("p", str(folder / "p.sock"))


def test_an_address_without_a_listener(folder):
    """A socket that its process left behind is refused as the system says."""
    path = folder / "p.sock"
    with socket.socket(socket.AF_UNIX) as left_behind:
        left_behind.bind(str(path))
    path.chmod(0o600)

    with pytest.raises(NotConnectedError, match="refused"):
        check_socket("p", str(path))


OURS, OTHERS = "ours", "others'"


@pytest.mark.parametrize(("ours", "trusted"), [(0, True), (1000, False)])
def test_others_socket(folder, monkeypatch, ours, trusted):
    """Only root takes the word of another user's process."""
    path = folder / "p.sock"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        path.chmod(0o600)
        owner = path.stat().st_uid
        monkeypatch.setattr("berth.out_of_tree.transport.socket_access.os.geteuid", lambda: ours)
        monkeypatch.setattr("berth.out_of_tree.transport.socket_access._served_by", lambda _: 4242)
        if trusted or owner not in {0, ours}:
            check_socket("p", str(path))
        else:
            with pytest.raises(NotConnectedError, match="is served by user 4242"):
                check_socket("p", str(path))


@pytest.mark.parametrize(
    ("how", "user", "complaint"),
    [
        pytest.param((0o600, OURS, 4242), 4242, "", id="the user that is named"),
        pytest.param((0o660, OURS, 4242), 4242, "", id="open to a group of ours"),
        pytest.param((0o660, OTHERS, 4242), 4242, "others may write to", id="open to a group of others"),
        pytest.param((0o662, OURS, 4242), 4242, "others may write to", id="open to all"),
        pytest.param((0o660, OURS, 1000), None, "others may write to", id="open to a group, no user named"),
        pytest.param((0o600, OURS, 4343), 4242, "neither ours nor root nor 4242", id="another than is named"),
    ],
)
def test_named_user(folder, monkeypatch, how, user, complaint):
    """Who is named in the plugin's entry is trusted, with a socket that a group of ours may write to."""
    path, access = folder / "p.sock", "berth.out_of_tree.transport.socket_access"
    mode, group, served_by = how
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        path.chmod(mode)
        owners = {folder.stat().st_uid for folder in (path, *path.parents)}
        monkeypatch.setattr(f"{access}.os.geteuid", lambda: max(owners) or 1000)
        monkeypatch.setattr(f"{access}.os.getegid", lambda: path.stat().st_gid + (group is OTHERS))
        monkeypatch.setattr(f"{access}.os.getgroups", list)
        monkeypatch.setattr(f"{access}._served_by", lambda _: served_by)
        with pytest.raises(NotConnectedError, match=complaint) if complaint else nullcontext():
            check_socket("p", str(path), user)


def test_missing_folder(folder):
    """A folder that is not there is named before anything starts."""
    assert "" == missing_folder(str(folder / "later.sock"))
    assert "" == missing_folder(str(folder / "made by the plugin" / "p.sock"))
    assert str(folder / "absent" / "p") == missing_folder(str(folder / "absent" / "p" / "p.sock"))


async def test_unavailable_call():
    """gRPC's own errors become a text with the status."""
    plugin = Scripted()

    async def refuse(_request, context):
        await context.abort(grpc.StatusCode.INTERNAL, "bug")

    plugin.replies["FilterScore"] = refuse
    async with hosted(plugin) as harness:
        await harness.up()
        with pytest.raises(CallFailedError, match="FilterScore failed: INTERNAL: bug"):
            await harness.filter()


async def test_pod_object_goes_along():
    """The pod travels as the API server's own bytes; one that is gone travels by its name."""
    plugin = Scripted()
    plugin.replies["Reserve"] = scheduling_pb2.ReserveResponse(status=SUCCESS)
    async with hosted(plugin) as harness:
        await harness.up()
        pod = harness.pod()
        await harness.plugin.reserve(cycle(), pod, "n0")
        await harness.plugin.reserve(cycle(), type(pod).of(pod.metadata.__class__(uid="gone")), "n0")

    known, gone = (request.call.pod for request in plugin.requests("Reserve"))
    assert harness.host.pods.get(pod.uid) == known.object
    assert not gone.HasField("object")


async def test_a_cluster_without_nodes(folder):
    """A plugin is ready where there is no node yet: it is sent first that there is none."""
    harness, server = Harness(folder / "p.sock", name="colours"), Server(Colours(), f"unix:{folder}/p.sock")
    await server.start()
    harness.step()
    working = [asyncio.create_task(work) for _, work in harness.host.work()]
    try:
        await harness.up()
        before = harness.connection.acknowledged
        harness.add_nodes("n0")
        await until(lambda: harness.connection.acknowledged > before)
    finally:
        for task in working:
            task.cancel()
        await asyncio.gather(*working, return_exceptions=True)
        await server.stop(0)

    assert 1 == before
    assert ["n0"] == harness.snapshot.names
