"""A certificate that a client showed: whom it names, and which authorities signed it.

Imported with the first one that is shown: `cryptography` takes 9 MiB of memory, and most schedulers are shown
none.

Called by: front_proxy, which knows what the authorities vouch for.
"""

from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.x509.oid import NameOID

MAX_AUTHORITIES = 64


class ClientCertificate:
    """A certificate in DER, which TLS has verified. Raises: ValueError where it can't be read."""

    def __init__(self, certificate: bytes) -> None:
        self._shown = x509.load_der_x509_certificate(certificate)
        self.common_names = self._named(NameOID.COMMON_NAME)
        self.organizations = self._named(NameOID.ORGANIZATION_NAME)

    def _named(self, kind: x509.ObjectIdentifier) -> tuple[str, ...]:
        return tuple(str(each.value) for each in self._shown.subject.get_attributes_for_oid(kind))

    def good(self, now: datetime) -> bool:
        """Whether it is neither too early nor too late for it."""
        return _good(self._shown, now)

    def is_of(self, authorities: Sequence[str], now: datetime) -> bool:
        """Whether one of the authorities, in PEM, signed it and is itself still good."""
        return any(self._is_of(authority, now) for authority in map(_authority, authorities))

    def _is_of(self, authority: x509.Certificate | None, now: datetime) -> bool:
        if authority is None or not _good(authority, now):
            return False
        try:
            self._shown.verify_directly_issued_by(authority)
        except (ValueError, TypeError, InvalidSignature):
            return False
        return True


def _good(certificate: x509.Certificate, now: datetime) -> bool:
    return certificate.not_valid_before_utc <= now <= certificate.not_valid_after_utc


@lru_cache(maxsize=MAX_AUTHORITIES)
def _authority(pem: str) -> x509.Certificate | None:
    """The certificate; None where only TLS can read it, so that it vouches for no one."""
    try:
        return x509.load_pem_x509_certificate(pem.encode())
    except (ValueError, x509.InvalidVersion):
        return None
