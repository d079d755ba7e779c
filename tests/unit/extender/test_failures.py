"""What fails on the way to an extender is said in the words of Go's net and net/http."""

import asyncio
import errno
import socket
import ssl

import aiohttp
import pytest
from aiohttp.client_reqrep import ConnectionKey

from berth.out_of_tree.extender.failures import go_error_text
from tests.suite import PATIENCE_SECONDS


def failed(cause, kind=aiohttp.ClientConnectorError, host="h.example", port=80):
    """A failure of the library, made by hand: resolvers and routes of a machine are its own."""
    return kind(ConnectionKey(host, port, is_ssl=False, ssl=True, proxy=None, **AROUND), cause)


AROUND = {"proxy_auth": None, "proxy_headers_hash": None, "server_hostname": None}
REFUSED = ConnectionRefusedError(errno.ECONNREFUSED, "Connect call failed ('10.0.0.1', 80)")
UNTRUSTED = ssl.SSLCertVerificationError(1, "certificate verify failed")
UNTRUSTED.verify_code, UNTRUSTED.verify_message = 18, "self-signed certificate"
EXPIRED = ssl.SSLCertVerificationError(1, "certificate verify failed")
EXPIRED.verify_code, EXPIRED.verify_message = 10, "certificate has expired"


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (failed(REFUSED), "dial tcp 10.0.0.1:80: connect: connection refused"),
        (
            failed(ConnectionRefusedError(errno.ECONNREFUSED, "Connect call failed ('::1', 80, 0, 0)")),
            "dial tcp [::1]:80: connect: connection refused",
        ),
        (
            failed(OSError("Multiple exceptions: [Errno 111] Connect call failed ('::1', 80, 0, 0), ...")),
            "dial tcp [::1]:80: connect: connection refused",
        ),
        (failed(OSError(errno.EHOSTUNREACH, "no")), "dial tcp h.example:80: connect: no route to host"),
        (
            failed(OSError(errno.ENETUNREACH, "no")),
            "dial tcp h.example:80: connect: network is unreachable",
        ),
        (
            failed(REFUSED, aiohttp.ClientProxyConnectionError),
            "proxyconnect tcp: dial tcp 10.0.0.1:80: connect: connection refused",
        ),
        (
            failed(socket.gaierror(socket.EAI_NONAME, "Name or service not known")),
            "dial tcp: lookup h.example: no such host",
        ),
        (
            failed(socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")),
            "dial tcp: lookup h.example: Temporary failure in name resolution",
        ),
        (
            failed(UNTRUSTED, aiohttp.ClientConnectorCertificateError),
            "tls: failed to verify certificate: x509: certificate signed by unknown authority",
        ),
        (
            failed(EXPIRED, aiohttp.ClientConnectorCertificateError),
            "tls: failed to verify certificate: x509: certificate has expired",
        ),
        (aiohttp.ServerDisconnectedError(), "EOF"),
        (ValueError(), "ValueError"),
    ],
)
def test_words_by_kind_of_failure(error, said):
    """The operation, the address and the cause; nothing of the library."""
    assert said == go_error_text(error)


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_a_real_refusal(host, scheme):
    """A port without a listener is refused, whatever the scheme."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port = held.getsockname()[1]
        async with aiohttp.ClientSession() as session:
            with pytest.raises(aiohttp.ClientConnectorError) as caught:
                await asyncio.wait_for(session.post(f"{scheme}://{host}:{port}/"), PATIENCE_SECONDS)

    assert go_error_text(caught.value) in {
        f"dial tcp {address}:{port}: connect: connection refused" for address in ("127.0.0.1", "[::1]")
    }
