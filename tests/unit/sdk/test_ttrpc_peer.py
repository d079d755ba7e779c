"""Both ends of ttrpc against containerd's own library for Go, which this repository did not write."""

import asyncio
from contextlib import asynccontextmanager

import grpc
import pytest

pytest.importorskip("go", reason="there is no Go toolchain here")

from berth.config.out_of_tree.sidecars import SidecarSpec
from berth.out_of_tree.transport.rpc import RpcError
from berth.out_of_tree.transport.ttrpc import open_ttrpc
from berth_plugin_proto import common_pb2, scheduling_pb2
from berth_sdk import Plugin
from berth_sdk.testing import make_node, make_pod, running
from tests.go_toolchain import TTRPC_PEER, build
from tests.sockets import served
from tests.suite import PATIENCE_SECONDS

CALL = common_pb2.Call(epoch="e", generation=7, profile="p")
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class Red(Plugin):
    name = "red"

    def filter(self, _pod, node):
        return None if node.labels.get("colour") == "red" else "node(s) were not red"


@pytest.fixture(scope="module")
def peer(tmp_path_factory):
    """The program over containerd's library."""
    return build(".", tmp_path_factory.mktemp("peer") / "ttrpc-peer", folder=TTRPC_PEER)


@asynccontextmanager
async def scheduling_of(peer, folder):
    """The scheduling service that containerd's server serves."""
    process = await asyncio.create_subprocess_exec(peer, "serve", str(folder / "p.sock"))
    try:
        await served(folder / "p.sock", process)
        spec = SidecarSpec("peer", f"unix:{folder}/first.sock")
        async with open_ttrpc(spec, "p.sock") as connection:
            yield connection.service("SchedulingService")
    finally:
        process.terminate()
        await process.wait()


async def asked(peer, host, method, request, patience="10s"):
    """What containerd's client gets from a plugin in Python."""
    socket = host.address.removeprefix("unix:") + ".ttrpc"
    data = request.SerializeToString().hex()
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        peer, "ask", socket, method, data, patience, TRACE, stdout=pipe
    )
    out, _ = await process.communicate()
    return out.decode().strip()


async def refusal(answer):
    with pytest.raises(RpcError) as refused:
        await answer
    return refused.value


async def test_the_host_asks_a_server_of_containerds(peer, tmp_path):
    """Large messages pass, and many at once find their calls; deadlines, errors and trace context do too."""
    async with scheduling_of(peer, tmp_path) as scheduling:
        requests = [
            scheduling_pb2.UnreserveRequest(call=CALL, node_name=f"n{i}" * (1 + i % 7 * 10_000))
            for i in range(50)
        ]
        answers = await asyncio.gather(
            *(scheduling.Unreserve(each, timeout=PATIENCE_SECONDS) for each in requests)
        )
        reserve = {"timeout": 30, "metadata": (("traceparent", TRACE),)}
        refused = await refusal(scheduling.PostBind(scheduling_pb2.PostBindRequest(call=CALL), **reserve))
        traced = await refusal(scheduling.Permit(scheduling_pb2.PermitRequest(call=CALL), **reserve))
        unknown = await refusal(
            scheduling.Bind(scheduling_pb2.BindRequest(call=CALL), timeout=PATIENCE_SECONDS)
        )
        late = await refusal(scheduling.CycleDone(scheduling_pb2.CycleDoneRequest(call=CALL), timeout=0.05))
        again = await scheduling.Unreserve(requests[0], timeout=PATIENCE_SECONDS)

    assert [each.SerializeToString() for each in requests] == [each.SerializeToString() for each in answers]
    assert (grpc.StatusCode.FAILED_PRECONDITION, "NOT_SYNCED") == (refused.code, refused.reason)
    assert TRACE == traced.text
    assert grpc.StatusCode.UNIMPLEMENTED is unknown.code
    assert grpc.StatusCode.DEADLINE_EXCEEDED is late.code
    assert requests[0].SerializeToString() == again.SerializeToString()


async def test_a_client_of_containerds_asks_the_sdk(peer):
    """Answers, refusals and deadlines are what it makes of gRPC's."""
    async with running(Red(), make_node("a", labels={"colour": "red"}), make_node("b")) as host:
        request = scheduling_pb2.FilterRequest(call=host.call(make_pod("p")))
        over_grpc = (await host.scheduling.Filter(request)).SerializeToString(deterministic=True)
        answer = await asked(peer, host, "Filter", request)
        request.call.epoch = "another"
        refused = await asked(peer, host, "Filter", request)
        request.call.epoch, request.call.generation = host.epoch, 99
        late = await asked(peer, host, "Filter", request, "50ms")
        unknown = await asked(peer, host, "Guess", request)

    assert f"OK {over_grpc.hex()}" == answer
    assert "FailedPrecondition berth NOT_SYNCED" == refused
    assert "DeadlineExceeded" == late
    assert "Unimplemented" == unknown
