"""Whose certificates a client may show, and which user a request then comes from.

    certificate of the front proxy's authority, its name allowed ──► the user that X-Remote-* headers name
    certificate of the cluster's authority for clients           ──► its common name, its organizations
    neither                                                      ──► None: headers count for nothing

TLS has verified that a certificate is of one of these authorities; which of them is found out here.

Source: staging/src/k8s.io/apiserver/pkg/authentication/request/{headerrequest,x509} (Kubernetes v1.36).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Protocol
from urllib.parse import unquote

import msgspec
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import NameOID

from berth.aggregated_api.users import AUTHENTICATED, User

FRONT_PROXY_FILE = "requestheader-client-ca-file"
CLIENTS_FILE = "client-ca-file"


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
    """Authorities of client certificates, and the headers in which a front proxy names users."""

    front_proxies: tuple[x509.Certificate, ...] = ()
    clients: tuple[x509.Certificate, ...] = ()
    allowed_names: tuple[str, ...] = ()
    """Common names of front proxies; empty for all that their authority vouches for."""
    username_headers: tuple[str, ...] = ("X-Remote-User",)
    uid_headers: tuple[str, ...] = ()
    group_headers: tuple[str, ...] = ("X-Remote-Group",)
    extra_prefixes: tuple[str, ...] = ("X-Remote-Extra-",)
    pem: str = field(init=False)
    """All authorities, for TLS."""

    def __post_init__(self) -> None:
        found = (one.public_bytes(Encoding.PEM).decode() for one in (*self.front_proxies, *self.clients))
        object.__setattr__(self, "pem", "".join(dict.fromkeys(found)))

    def user(self, certificate: bytes | None, headers: Headers, now: datetime | None = None) -> User | None:
        """The user behind a verified certificate, in DER, and headers."""
        if certificate is None:
            return None
        try:
            shown = x509.load_der_x509_certificate(certificate)
            names = [str(each.value) for each in shown.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
        except ValueError:
            return None
        now = now or datetime.now(UTC)
        if not shown.not_valid_before_utc <= now <= shown.not_valid_after_utc or not names:
            return None
        if _is_of(shown, self.front_proxies, now) and self._is_allowed(names[0]):
            named = self._named(headers)
            if named is not None:
                return named
        if _is_of(shown, self.clients, now):
            found = shown.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
            return User(names[0], groups=_with_authenticated([str(each.value) for each in found]))
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


def _certificates(data: Mapping[str, str], name: str) -> tuple[x509.Certificate, ...]:
    if not data.get(name, "").strip():
        return ()
    try:
        return tuple(x509.load_pem_x509_certificates(data[name].encode()))
    except (ValueError, x509.InvalidVersion) as error:
        raise ValueError(f"{name}: no certificates in PEM: {error}") from error


def _texts(data: Mapping[str, str], name: str) -> tuple[str, ...]:
    try:
        return msgspec.json.decode(data.get(name) or "[]", type=tuple[str, ...])
    except msgspec.MsgspecError as error:
        raise ValueError(f"{name}: not a list of texts in JSON: {error}") from error


def _is_of(shown: x509.Certificate, authorities: Sequence[x509.Certificate], now: datetime) -> bool:
    """Whether one of the authorities, itself still good, signed the certificate."""
    for authority in authorities:
        if not authority.not_valid_before_utc <= now <= authority.not_valid_after_utc:
            continue
        try:
            shown.verify_directly_issued_by(authority)
        except (ValueError, TypeError, InvalidSignature):
            continue
        return True
    return False


def _first(headers: Headers, names: Sequence[str]) -> str:
    return next((value for name in names if (value := headers.get(name, ""))), "")


def _with_authenticated(groups: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*groups, AUTHENTICATED)))
