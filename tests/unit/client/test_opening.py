"""Opening a connection that is given up, or cut, at any point: it ends alone, and leaves nothing behind."""

import asyncio
import ssl
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from socket import SO_LINGER, SOL_SOCKET

import pytest
import uvloop

from berth.client.connections.connection import DISCARD, Connection
from berth.client.connections.pool import ConnectionPool
from berth.client.connections.tunnel import open_connection
from berth.client.endpoint import Address, Endpoint
from berth.client.errors import NotSentError
from tests.unit.client.certificates import identity
from tests.unit.client.conftest import eventually, pass_on, raw_server, silent, tunnel

LOOPS = [asyncio.new_event_loop, uvloop.new_event_loop]
NAME = "api.example"
WAYS = ["plain", "TLS", "proxy", "TLS through a proxy"]


@pytest.fixture(scope="module")
def contexts(tmp_path_factory):
    """TLS of a server, and of a client that trusts it."""
    folder = tmp_path_factory.mktemp("tls")
    certificate, key, _ = identity(NAME)
    (folder / "server.pem").write_bytes(certificate + key)
    served = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    served.load_cert_chain(folder / "server.pem")
    trusting = ssl.create_default_context(cadata=certificate.decode())
    trusting.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return served, trusting


def address_of(url):
    scheme, _, rest = url.partition("://")
    host, _, port = rest.rpartition(":")
    return Address(scheme, host, int(port))


@asynccontextmanager
async def reached(way, contexts):
    """An endpoint that is served, reached that way."""
    served, trusting = contexts if "TLS" in way else (None, None)
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(raw_server(silent, tls=served))
        endpoint = Endpoint(
            address_of(server.url), ssl_context=trusting, server_name=NAME if trusting else None
        )
        if "proxy" in way:
            endpoint.proxy = address_of((await stack.enter_async_context(tunnel())).url)
        yield endpoint


def on(loop, body):
    """What the body returns, on a loop that has nothing to complain of."""
    complaints = []
    with asyncio.Runner(loop_factory=loop) as runner:
        runner.get_loop().set_exception_handler(lambda _, context: complaints.append(context))
        found = runner.run(body)
    assert [] == complaints
    return found


def descriptors():
    return len(list(Path("/proc/self/fd").iterdir()))


async def closed_again(before):
    """Wait until the sockets that a block opened are closed."""
    await eventually(lambda: descriptors() <= before)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("loop", LOOPS)
def test_given_up_in_each_turn_of_the_loop(loop, way, contexts):
    """The next connection opens, and no descriptor stays open."""

    async def body():
        async with reached(way, contexts) as endpoint:
            (await open_connection(endpoint)).abort()
            before = descriptors()
            given_up, turns = True, 0
            while given_up:
                opening = asyncio.create_task(open_connection(endpoint))
                for _ in range(turns):
                    await asyncio.sleep(0)
                given_up = opening.cancel()
                await asyncio.wait((opening,))
                if not opening.cancelled():
                    opening.result().abort()
                (await open_connection(endpoint)).abort()
                await closed_again(before)
                turns += 1
            return turns

    assert on(loop, body()) > 1


@pytest.mark.parametrize("loop", LOOPS)
def test_given_up_as_the_handshake_ends(loop, contexts, monkeypatch):
    """So may the connection end whose last step was taken, and no longer."""

    async def body():
        async with reached("TLS", contexts) as endpoint:
            before = descriptors()
            opening = asyncio.create_task(open_connection(endpoint))
            made = ssl.SSLObject.do_handshake

            def last_step(self):
                made(self)
                if not self.server_side:
                    opening.cancel()

            with monkeypatch.context() as during:
                during.setattr(ssl.SSLObject, "do_handshake", last_step)
                await asyncio.wait((opening,))
            cancelled = opening.cancelled()
            (await open_connection(endpoint)).abort()
            await closed_again(before)
            return cancelled

    assert on(loop, body())


@pytest.mark.parametrize("direction", ["from_outer", "from_inner"])
@pytest.mark.parametrize("loop", LOOPS)
def test_cut_at_each_byte_of_the_handshake(loop, direction, contexts):
    """Closed or reset, it is the error of that connection: nothing was sent, and later ones open."""

    async def body():
        after, opened = 0, False

        async def serve(reader, writer):
            inner = await asyncio.open_connection(endpoint.address.host, endpoint.address.port)
            await pass_on((reader, writer), inner, **{direction: after})
            if after % 2:
                writer.get_extra_info("socket").setsockopt(SOL_SOCKET, SO_LINGER, DISCARD)

        async with reached("TLS", contexts) as endpoint, raw_server(serve) as proxy:
            cut = Endpoint(address_of(proxy.url), ssl_context=endpoint.ssl_context, server_name=NAME)
            before = descriptors()
            while not opened:
                after += 1
                opened = await attempt(cut)
                if opened or not after % 16:
                    (await open_connection(endpoint)).abort()
                await closed_again(before)
        return after

    assert on(loop, body()) > 200


async def attempt(endpoint):
    """Whether the endpoint is reached, within its time."""
    pool = ConnectionPool(endpoint, 1)
    try:
        (await pool.open(asyncio.get_running_loop().time() + 60)).abort()
    except NotSentError:
        return False
    finally:
        await pool.aclose()
    return True


@pytest.mark.parametrize(
    "endpoint",
    [
        pytest.param(Endpoint(Address("http", "x" * 70, 80)), id="no name of a host"),
        pytest.param(Endpoint(Address("http", "127.0.0.1", 99999)), id="no port"),
        pytest.param(Endpoint(Address("http", "127.0.0.1\0", 80)), id="a null byte"),
    ],
)
@pytest.mark.parametrize("loop", LOOPS)
def test_errors_of_any_type(loop, endpoint):
    """What resolver and loop have types of their own for is a request that was not sent, too."""
    assert not on(loop, attempt(endpoint))


@pytest.mark.parametrize("loop", LOOPS)
def test_a_name_that_tls_refuses(loop, contexts):
    """A server name that no certificate can have ends the connection alone."""

    async def body():
        async with reached("TLS", contexts) as endpoint:
            endpoint.server_name = ".example"
            return await attempt(endpoint)

    with asyncio.Runner(loop_factory=loop) as runner:  # uvloop complains of it, too.
        assert not runner.run(body())


class Closing(asyncio.Transport):
    """A transport whose socket the loop has closed already, as it is for a turn after a cut."""

    def get_extra_info(self, _name, default=None):
        return default

    def abort(self):
        pass


async def test_given_up_in_the_turn_in_which_it_is_cut():
    """Nothing is left to reset."""
    connection = Connection()
    connection.connection_made(Closing())
    connection.give_up()

    assert connection.closed
