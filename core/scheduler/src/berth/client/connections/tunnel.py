"""Opening a connection: TCP with keep-alive probes, TLS, and a way through an HTTP proxy."""

import asyncio
import socket
from contextlib import suppress

import httptools

from berth.client.connections.connection import Connection
from berth.client.endpoint import Address, Endpoint
from berth.client.errors import NotSentError

PROBE_AFTER_SECONDS = 30
PROBE_EVERY_SECONDS = 10
PROBES = 3
OK = 200
TUNNEL_HEAD_LIMIT_BYTES = 65536


async def open_connection(endpoint: Endpoint) -> Connection:
    """Connect to the endpoint, through its proxy if it has one.

    The event loop opens the socket and closes it, whenever this is cancelled: one that is closed under a
    transport is still registered with the loop when its number is the next connection's.

    Raises: NotSentError when the proxy says no; else whatever resolving, connecting or TLS ended with.
    """
    first_hop = endpoint.proxy or endpoint.address
    early = asyncio.StreamReader(limit=TUNNEL_HEAD_LIMIT_BYTES)
    link, _ = await asyncio.get_running_loop().create_connection(
        lambda: asyncio.StreamReaderProtocol(early), first_hop.host, first_hop.port
    )
    try:
        return await _begun(link, early, endpoint)
    except BaseException:
        link.abort()
        raise


async def _begun(link: asyncio.Transport, early: asyncio.StreamReader, endpoint: Endpoint) -> Connection:
    """A connection that speaks TLS to the endpoint, if it is to, over a link to the first hop."""
    _watch_for_silence(link)
    address, tls = endpoint.address, endpoint.ssl_context
    if endpoint.proxy is not None:
        await _tunnel(link, early, address, endpoint.proxy_authorization)
    if early.at_eof():
        raise ConnectionResetError("closed by the server")
    connection = Connection()
    if tls is None:
        link.set_protocol(connection)
        connection.connection_made(link)
        return connection
    name = endpoint.server_name or address.host
    transport = await asyncio.get_running_loop().start_tls(link, connection, tls, server_hostname=name)
    if transport is None or connection.closed:
        raise ConnectionResetError("closed by the server after the TLS handshake")
    connection.connection_made(transport)
    return connection


def _watch_for_silence(link: asyncio.Transport) -> None:
    """Have the kernel probe a silent peer: a watch on a dead machine must not hang for ever."""
    raw = link.get_extra_info("socket")
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (
        ("TCP_KEEPIDLE", PROBE_AFTER_SECONDS),
        ("TCP_KEEPINTVL", PROBE_EVERY_SECONDS),
        ("TCP_KEEPCNT", PROBES),
    ):
        with suppress(AttributeError, OSError):
            raw.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


async def _tunnel(
    link: asyncio.Transport, answers: asyncio.StreamReader, address: Address, authorization: str
) -> None:
    """Ask an HTTP proxy for a tunnel to the address.

    Raises: NotSentError when it refuses or answers with something else than HTTP.
    """
    host = f"[{address.host}]" if ":" in address.host else address.host
    lines = [f"CONNECT {host}:{address.port} HTTP/1.1", f"Host: {host}:{address.port}"]
    if authorization:
        lines.append(f"Proxy-Authorization: {authorization}")
    link.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
    try:
        head = await answers.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError as error:
        raise NotSentError("the proxy closed the connection") from error
    except asyncio.LimitOverrunError as error:
        raise NotSentError(f"the proxy's answer has no end within {TUNNEL_HEAD_LIMIT_BYTES} bytes") from error
    parser = httptools.HttpResponseParser(object())
    try:
        parser.feed_data(head.partition(b"\r\n")[0] + b"\r\n\r\n")
    except httptools.HttpParserError as error:
        raise NotSentError(f"the proxy does not speak HTTP: {error}") from error
    if parser.get_status_code() != OK:
        raise NotSentError(f"the proxy answered {parser.get_status_code()}")
