"""The certificate that the process serves with: the one given, or one made for `localhost`.

Source: spec/core.md 8.4.
"""

import ssl
import tempfile
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from berth.scheduler.errors import StartError

VALID_FOR = timedelta(days=365)
CLOCKS_DIFFER_BY = timedelta(hours=1)


def server_context(certificate_file: str = "", key_file: str = "") -> ssl.SSLContext:
    """TLS with that certificate, or with a new self-signed one where none is named.

    Raises: StartError where the files can't be used.
    """
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    if not certificate_file and not key_file:
        with tempfile.TemporaryDirectory(prefix="berth-serving-") as folder:
            certificate, key = Path(folder, "tls.crt"), Path(folder, "tls.key")
            certificate_pem, key_pem = self_signed()
            certificate.write_bytes(certificate_pem)
            key.write_bytes(key_pem)
            context.load_cert_chain(certificate, key)
        return context
    try:
        context.load_cert_chain(certificate_file, key_file or None)
    except (OSError, ssl.SSLError) as error:
        reason = error.strerror or str(error)
        raise StartError(
            f"--tls-cert-file {certificate_file}, --tls-private-key-file {key_file}: {reason}"
        ) from error
    return context


def self_signed() -> tuple[bytes, bytes]:
    """A certificate for localhost and the loopback addresses, and its key, both in PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"localhost@{int(now.timestamp())}")])
    loopback = [x509.IPAddress(ip_address(each)) for each in ("127.0.0.1", "::1")]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCKS_DIFFER_BY)
        .not_valid_after(now + VALID_FOR)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost"), *loopback]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return certificate.public_bytes(Encoding.PEM), private
