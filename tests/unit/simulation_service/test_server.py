"""Where the server listens, whom it lets in, and who a client is to it."""

import asyncio
import os
import socket
import stat
import tempfile

import grpc
import grpc.aio
import pytest

from berth.config.loading import load
from berth.demo.surface import Surface
from berth.framework.clock import SYSTEM_CLOCK
from berth.simulation.reading.inputs import ClusterInput
from berth.simulation.running.options import SimulationOptions
from berth.simulation_service.errors import AddressError
from berth.simulation_service.expander import Expander
from berth.simulation_service.forks import Forks
from berth.simulation_service.limits import ServiceLimits
from berth.simulation_service.queries import Queries
from berth.simulation_service.server import Tls, serve
from berth.simulation_service.service import SimulationService
from berth_simulation_proto import simulation_pb2 as pb
from berth_simulation_proto import simulation_pb2_grpc
from tests.suite import PATIENCE_SECONDS
from tests.unit.extender.test_tls import self_signed
from tests.unit.simulation_service.kit import served

LIVE = pb.CreateForkRequest(live=pb.LiveCluster())


@pytest.fixture
async def listen():
    """A function that serves an address; gives the forks of the server and the address."""
    limits, options, started = ServiceLimits(), SimulationOptions(load(None)), []
    queries, forks = Queries(limits, SYSTEM_CLOCK), Forks(limits, SYSTEM_CLOCK)

    async def at(address, tls=None):
        service = SimulationService(options, ClusterInput, forks, queries, limits)
        expander = Expander(options, ClusterInput, queries, limits)
        server, bound = await serve(address, tls, service, expander, limits)
        started.append(server)
        return bound

    yield at
    queries.close()
    for server in started:
        await server.stop(None)


@pytest.fixture
def files(tmp_path):
    """Certificates and keys of the server, of a client and of a stranger."""
    for name in ("server", "client", "stranger"):
        certificate, key = self_signed("localhost")
        (tmp_path / f"{name}.crt").write_bytes(certificate)
        (tmp_path / f"{name}.key").write_bytes(key)
    return tmp_path


def tls_of(files, *, client_ca=""):
    return Tls(str(files / "server.crt"), str(files / "server.key"), client_ca)


def channel(files, address, shown=None):
    material = [(files / "server.crt").read_bytes(), None, None]
    if shown:
        material[1:] = [(files / f"{shown}.key").read_bytes(), (files / f"{shown}.crt").read_bytes()]
    return grpc.aio.secure_channel(address, grpc.ssl_channel_credentials(*material))


async def test_a_socket_is_its_users():
    """None but the user may open the socket."""
    async with served() as at:
        mode = stat.S_IMODE((await asyncio.to_thread(os.stat, at.address.removeprefix("unix:"))).st_mode)

    assert 0o600 == mode


async def test_a_socket_that_is_served_no_more(listen):
    """A socket that a server left behind is replaced; one that is in use stays."""
    with tempfile.TemporaryDirectory(prefix="berth-") as folder:
        path = f"{folder}/s.sock"
        with socket.socket(socket.AF_UNIX) as left:
            left.bind(path)
        await listen(f"unix://{path}")

        with pytest.raises(AddressError, match="it is in use"):
            await listen(f"unix://{path}")


async def test_a_network_needs_certificates(listen):
    """Without TLS a loopback address is served and no other."""
    with pytest.raises(AddressError, match="give --tls-cert and --tls-key"):
        await listen("0.0.0.0:0")

    assert (await listen("127.0.0.1:0")).rpartition(":")[2] != "0"


async def test_certificates_that_are_not_there(listen, tmp_path):
    """A file that can't be read is named."""
    with pytest.raises(AddressError, match=r"none\.key: No such file"):
        await listen("localhost:0", Tls(str(tmp_path / "none.crt"), str(tmp_path / "none.key")))


async def test_a_client_is_known_by_its_certificate(listen, files):
    """With certificates of clients a stranger is not heard, and a fork is that of the certificate's name."""
    address = f"localhost:{Surface.free().port}"
    await listen(address, tls_of(files, client_ca=str(files / "client.crt")))
    async with channel(files, address, "client") as known:
        fork = await simulation_pb2_grpc.SimulationServiceStub(known).CreateFork(LIVE)
    async with channel(files, address, "client") as again:
        stub = simulation_pb2_grpc.SimulationServiceStub(again)
        applied = await stub.ApplyToFork(pb.ApplyToForkRequest(fork_id=fork.fork_id))
    async with channel(files, address, "stranger") as other:
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await simulation_pb2_grpc.SimulationServiceStub(other).CreateFork(LIVE, timeout=PATIENCE_SECONDS)

    assert 0 == applied.nodes
    assert grpc.StatusCode.UNAVAILABLE == refused.value.code()
