"""Where the API server is and how to prove who we are: what the transport needs to know, no more."""

import re
import ssl
from typing import Protocol
from urllib.parse import urlsplit

import msgspec

from berth.client.errors import ConfigurationError

DEFAULT_PORTS = {"http": 80, "https": 443}


class Authorization(Protocol):
    """Supplies the Authorization header and keeps it current."""

    def current(self) -> str | None:
        """The header's value (empty for none), or None when refresh has to be called first."""
        ...

    async def refresh(self, *, rejected: bool = False) -> str:
        """The header's value, asked for anew; `rejected` says that the server refused the last one.

        Raises: ConfigurationError when the credentials cannot be had.
        """
        ...


class FixedAuthorization:
    """A header that never changes; by default none at all."""

    def __init__(self, value: str = "") -> None:
        self._value = value

    def current(self) -> str:
        """The value given at the start."""
        return self._value

    async def refresh(self, *, rejected: bool = False) -> str:  # noqa: ARG002 - nothing to ask anew
        """The value given at the start."""
        return self._value


class Address(msgspec.Struct, frozen=True):
    """A host and port, and whether TLS is spoken to it."""

    scheme: str
    host: str
    port: int

    @property
    def authority(self) -> str:
        """The value of the Host header: the port is left out where it is the scheme's own."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if DEFAULT_PORTS[self.scheme] == self.port else f"{host}:{self.port}"


class Endpoint(msgspec.Struct):
    """An API server and our credentials for it.

    `prefix` is put before every path (a server behind `https://host/k8s/clusters/x`).
    """

    address: Address
    prefix: str = ""
    ssl_context: ssl.SSLContext | None = None
    server_name: str | None = None
    proxy: Address | None = None
    proxy_authorization: str = ""
    authorization: Authorization = msgspec.field(default_factory=FixedAuthorization)


def endpoint_of(url: str, ssl_context: ssl.SSLContext | None = None) -> Endpoint:
    """An endpoint without credentials, from a URL.

    Raises: ConfigurationError when the URL is not one of http or https.
    """
    address, prefix = parse_url(url, file="", field_name="server")
    if address.scheme == "https" and ssl_context is None:
        ssl_context = ssl.create_default_context()
    return Endpoint(address, prefix, ssl_context)


def parse_url(url: str, *, file: str, field_name: str) -> tuple[Address, str]:
    """Split a URL into its address and its path without a slash at the end.

    Raises: ConfigurationError that names the file and field.
    """
    text = url if "://" in url else f"http://{url}"
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError as error:
        raise _bad_url(url, file, field_name) from error
    if parts.scheme not in DEFAULT_PORTS or not parts.hostname:
        raise _bad_url(url, file, field_name)
    address = Address(parts.scheme, parts.hostname, port or DEFAULT_PORTS[parts.scheme])
    return address, parts.path.rstrip("/")


def _bad_url(url: str, file: str, field_name: str) -> ConfigurationError:
    shown = re.sub(r"//[^/]*@", "//***@", url)  # Passwords do not go into logs.
    return ConfigurationError(
        file, field_name, f"{shown!r} is not a server address", "write it as https://host:port"
    )
