"""The certificate by which other servers know this one, and the headers in which it names users."""

import ssl
import tempfile
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from berth.sandbox.attributes import SandboxUser

NAME: Final = "front-proxy-client"
USER_HEADER: Final = "X-Remote-User"
UID_HEADER: Final = "X-Remote-Uid"
GROUP_HEADER: Final = "X-Remote-Group"
EXTRA_PREFIX: Final = "X-Remote-Extra-"
PREFIX: Final = "x-remote-"
_LIFE: Final = timedelta(days=365)
_CLOCKS_DIFFER_BY: Final = timedelta(hours=1)


class Issued(NamedTuple):
    """The authority's certificate, the front proxy's, and its key, all in PEM."""

    authority: bytes
    certificate: bytes
    key: bytes


class FrontProxy:
    """A certificate that is made when it is first asked for, signed by an authority that signs no other."""

    def show_in(self, context: ssl.SSLContext) -> None:
        """Have connections of the context show the certificate; ssl reads it from files alone."""
        with tempfile.TemporaryDirectory(prefix="berth-sandbox-") as folder:
            certificate, private = Path(folder, "tls.crt"), Path(folder, "tls.key")
            certificate.write_bytes(self.issued.certificate)
            private.write_bytes(self.issued.key)
            context.load_cert_chain(certificate, private)

    @cached_property
    def issued(self) -> Issued:
        """Give all of it."""
        signing, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
        authority = _named("front-proxy-ca", signing.public_key(), "front-proxy-ca")
        authority = authority.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])
        client = _named(NAME, key.public_key(), "front-proxy-ca").add_extension(usage, critical=False)
        return Issued(
            authority.sign(signing, hashes.SHA256()).public_bytes(Encoding.PEM),
            client.sign(signing, hashes.SHA256()).public_bytes(Encoding.PEM),
            key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
        )


def user_headers(user: SandboxUser) -> list[tuple[str, str]]:
    """Give the headers that name a user."""
    headers = [(USER_HEADER, user.name), *((GROUP_HEADER, group) for group in user.groups)]
    return [*headers, (UID_HEADER, user.uid)] if user.uid else headers


def _named(name: str, key: ec.EllipticCurvePublicKey, issuer: str) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, issuer)]))
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCKS_DIFFER_BY)
        .not_valid_after(now + _LIFE)
    )
