"""Whose certificates a client may show, and which user a request then comes from.

    certificate of the front proxy's authority, its name allowed ──► the user that X-Remote-* headers name
    certificate of the cluster's authority for clients           ──► its common name, its organizations
    neither                                                      ──► None: headers count for nothing

TLS has verified that a certificate is of one of these authorities; which of them is found out here.

Source: staging/src/k8s.io/apiserver/pkg/authentication/request/{headerrequest,x509} (Kubernetes v1.36).
"""

import re
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol
from urllib.parse import unquote

import msgspec

from berth.aggregated_api.users import AUTHENTICATED, User

FRONT_PROXY_FILE = "requestheader-client-ca-file"
CLIENTS_FILE = "client-ca-file"
_CERTIFICATE = re.compile(f"{ssl.PEM_HEADER}[^-]*{ssl.PEM_FOOTER}")


class Headers(Protocol):
    """Headers of a request, some of which may come several times; names in any case."""

    def get(self, name: str, default: str, /) -> str:
        """The first value."""
        ...

    def getall(self, name: str, default: Sequence[str], /) -> Sequence[str]:
        """Every value."""
        ...

    def keys(self) -> "Sequence[str]":
        """Every name."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """Authorities of client certificates, each in PEM, and the headers in which a front proxy names users."""

    front_proxies: tuple[str, ...] = ()
    clients: tuple[str, ...] = ()
    allowed_names: tuple[str, ...] = ()
    """Common names of front proxies; empty for all that their authority vouches for."""
    username_headers: tuple[str, ...] = ("X-Remote-User",)
    uid_headers: tuple[str, ...] = ()
    group_headers: tuple[str, ...] = ("X-Remote-Group",)
    extra_prefixes: tuple[str, ...] = ("X-Remote-Extra-",)
    pem: str = field(init=False)
    """All authorities, for TLS."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "pem", "".join(dict.fromkeys((*self.front_proxies, *self.clients))))

    def user(self, certificate: bytes | None, headers: Headers, now: datetime | None = None) -> User | None:
        """The user behind a verified certificate, in DER, and headers."""
        if certificate is None:
            return None
        from berth.aggregated_api.client_certificate import (  # noqa: PLC0415 (it says why)
            ClientCertificate,
        )

        try:
            shown = ClientCertificate(certificate)
        except ValueError:
            return None
        now = now or datetime.now(UTC)
        if not shown.good(now) or not shown.common_names:
            return None
        name = shown.common_names[0]
        if shown.is_of(self.front_proxies, now) and self._is_allowed(name):
            named = self._named(headers)
            if named is not None:
                return named
        if shown.is_of(self.clients, now):
            return User(name, groups=_with_authenticated(shown.organizations))
        return None

    def _is_allowed(self, name: str) -> bool:
        return not self.allowed_names or name in self.allowed_names

    def _named(self, headers: Headers) -> User | None:
        name = _first(headers, self.username_headers)
        if not name:
            return None
        groups = [group for header in self.group_headers for group in headers.getall(header, ())]
        return User(
            name, _first(headers, self.uid_headers), _with_authenticated(groups), self._extra(headers)
        )

    def _extra(self, headers: Headers) -> dict[str, list[str]]:
        extra: dict[str, list[str]] = {}
        for header in dict.fromkeys(name.lower() for name in headers.keys()):  # noqa: SIM118 (each name once)
            for prefix in map(str.lower, self.extra_prefixes):
                if header.startswith(prefix):
                    key = unquote(header.removeprefix(prefix))
                    extra.setdefault(key, []).extend(headers.getall(header, ()))
        return extra


NO_TRUST = Trust()


def read_trust(data: Mapping[str, str]) -> Trust:
    """The trust that the ConfigMap extension-apiserver-authentication describes.

    Raises: ValueError where a field of it is damaged, with the field's name.
    """
    return Trust(
        front_proxies=_certificates(data, FRONT_PROXY_FILE),
        clients=_certificates(data, CLIENTS_FILE),
        allowed_names=_texts(data, "requestheader-allowed-names"),
        username_headers=_texts(data, "requestheader-username-headers"),
        uid_headers=_texts(data, "requestheader-uid-headers"),
        group_headers=_texts(data, "requestheader-group-headers"),
        extra_prefixes=_texts(data, "requestheader-extra-headers-prefix"),
    )


def _certificates(data: Mapping[str, str], name: str) -> tuple[str, ...]:
    text = data.get(name, "")
    if not text.strip():
        return ()
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_verify_locations(cadata=text)
        found = [ssl.PEM_cert_to_DER_cert(each) for each in _CERTIFICATE.findall(text)]
    except (ssl.SSLError, TypeError, ValueError) as error:
        raise ValueError(f"{name}: no certificates in PEM: {error}") from error
    return tuple(map(ssl.DER_cert_to_PEM_cert, found))


def _texts(data: Mapping[str, str], name: str) -> tuple[str, ...]:
    try:
        return msgspec.json.decode(data.get(name) or "[]", type=tuple[str, ...])
    except msgspec.MsgspecError as error:
        raise ValueError(f"{name}: not a list of texts in JSON: {error}") from error


def _first(headers: Headers, names: Sequence[str]) -> str:
    return next((value for name in names if (value := headers.get(name, ""))), "")


def _with_authenticated(groups: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*groups, AUTHENTICATED)))
