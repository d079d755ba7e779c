"""Opening a connection: TCP with keep-alive probes, TLS, and a way through an HTTP proxy."""

import asyncio
import socket
from contextlib import suppress

import httptools

from berth.client.connection import Connection
from berth.client.endpoint import Address, Endpoint
from berth.client.errors import NotSentError

PROBE_AFTER_SECONDS = 30
PROBE_EVERY_SECONDS = 10
PROBES = 3
OK = 200
TUNNEL_HEAD_LIMIT_BYTES = 65536


async def open_connection(endpoint: Endpoint) -> Connection:
    """Connect to the endpoint, through its proxy if it has one.

    Raises: OSError (ssl.SSLError among them), NotSentError when the proxy says no.
    """
    loop = asyncio.get_running_loop()
    address, tls = endpoint.address, endpoint.ssl_context
    raw = await _connect(endpoint.proxy or address)
    try:
        if endpoint.proxy is not None:
            await _tunnel(raw, address, endpoint.proxy_authorization)
        _, connection = await loop.create_connection(
            Connection,
            sock=raw,
            ssl=tls,
            server_hostname=(endpoint.server_name or address.host) if tls else None,
        )
    except BaseException:
        raw.close()
        raise
    return connection


async def _connect(address: Address) -> socket.socket:
    """A connected TCP socket to the first of the host's addresses that answers."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    error: OSError = OSError(f"{address.host} has no address")
    for family, kind, protocol, _, where in found:
        raw = socket.socket(family, kind, protocol)
        raw.setblocking(False)
        try:
            _watch_for_silence(raw)
            await loop.sock_connect(raw, where)
        except OSError as caught:
            raw.close()
            error = caught
        except BaseException:
            raw.close()
            raise
        else:
            return raw
    raise error


def _watch_for_silence(raw: socket.socket) -> None:
    """Have the kernel probe a silent peer: a watch on a dead machine must not hang for ever."""
    raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in (
        ("TCP_KEEPIDLE", PROBE_AFTER_SECONDS),
        ("TCP_KEEPINTVL", PROBE_EVERY_SECONDS),
        ("TCP_KEEPCNT", PROBES),
    ):
        with suppress(AttributeError, OSError):
            raw.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)


async def _tunnel(raw: socket.socket, address: Address, authorization: str) -> None:
    """Ask an HTTP proxy for a tunnel to the address.

    Raises: NotSentError when it refuses or answers with something else than HTTP.
    """
    loop = asyncio.get_running_loop()
    host = f"[{address.host}]" if ":" in address.host else address.host
    lines = [f"CONNECT {host}:{address.port} HTTP/1.1", f"Host: {host}:{address.port}"]
    if authorization:
        lines.append(f"Proxy-Authorization: {authorization}")
    await loop.sock_sendall(raw, ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
    head = b""
    # One byte at a time: what follows the blank line is not ours to read.
    while not head.endswith(b"\r\n\r\n"):
        byte = await loop.sock_recv(raw, 1)
        if not byte or len(head) > TUNNEL_HEAD_LIMIT_BYTES:
            raise NotSentError("the proxy closed the connection")
        head += byte
    parser = httptools.HttpResponseParser(object())
    try:
        parser.feed_data(head.partition(b"\r\n")[0] + b"\r\n\r\n")
    except httptools.HttpParserError as error:
        raise NotSentError(f"the proxy does not speak HTTP: {error}") from error
    if parser.get_status_code() != OK:
        raise NotSentError(f"the proxy answered {parser.get_status_code()}")
