"""Error texts of requests without a response: those of Go's net and net/http, as kube-scheduler logs them.

Called by: client.py.

Source: src/net/{net,dnsclient,error_unix}.go, src/net/http/client.go, src/crypto/tls/common.go (Go 1.25).
"""

import os
import re
import socket
import ssl
from typing import Final

import aiohttp

TIMED_OUT: Final = "context deadline exceeded (Client.Timeout exceeded while awaiting headers)"
_ERRNO: Final = re.compile(r"\[Errno (\d+)\]")
_ADDRESS: Final = re.compile(r"\('([^']+)', (\d+)")
_NO_SUCH_HOST: Final = frozenset({socket.EAI_NONAME, socket.EAI_NODATA})
_NO_AUTHORITY: Final = frozenset({18, 19, 20, 21})
"""X509_V_ERR codes of OpenSSL: what is signed by itself, or by what is not trusted."""


def go_error_text(error: Exception) -> str:
    """The failure's text in Go; the library's own text where Go's is not known."""
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "EOF"
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return f"tls: failed to verify certificate: {_certificate(error.certificate_error)}"
    if isinstance(error, aiohttp.ClientConnectorError):
        proxied = "proxyconnect tcp: " if isinstance(error, aiohttp.ClientProxyConnectionError) else ""
        return proxied + _dialled(error)
    return str(error) or type(error).__name__


def _dialled(error: aiohttp.ClientConnectorError) -> str:
    cause = error.os_error
    if isinstance(cause, socket.gaierror):
        unknown = cause.errno in _NO_SUCH_HOST
        why = "no such host" if unknown else str(cause.strerror or cause)
        return f"dial tcp: lookup {error.host}: {why}"
    if isinstance(cause, ssl.SSLError):
        return f"tls: {cause.reason or cause}"
    text = str(cause)
    tried, number = _ADDRESS.search(text), cause.errno
    if number is None and (found := _ERRNO.search(text)):
        # Of several addresses, Go names the first one.
        number = int(found[1])
    host, port = tried.groups() if tried else (error.host, error.port)
    why = f"connect: {os.strerror(number).lower()}" if number else text
    return f"dial tcp {f'[{host}]' if ':' in host else host}:{port}: {why}"


def _certificate(error: Exception) -> str:
    if not isinstance(error, ssl.SSLCertVerificationError):
        return str(error)
    if error.verify_code in _NO_AUTHORITY:
        return "x509: certificate signed by unknown authority"
    return f"x509: {error.verify_message}"
