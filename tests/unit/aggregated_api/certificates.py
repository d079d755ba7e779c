"""Authorities and certificates of clients, for tests."""

from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

DAY = timedelta(days=1)


class TestAuthority:
    """Signs certificates of clients."""

    __test__ = False

    def __init__(self, name="front-proxy-ca"):
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        basic = x509.BasicConstraints(ca=True, path_length=None)
        builder = _builder(self._name, self._name, self._key, DAY).add_extension(basic, critical=True)
        self.pem = builder.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM).decode()

    def issue(self, name, *organizations, life=DAY):
        """A client's certificate and its key, both in PEM."""
        key = ec.generate_private_key(ec.SECP256R1())
        parts = [x509.NameAttribute(NameOID.COMMON_NAME, name)]
        parts += [x509.NameAttribute(NameOID.ORGANIZATION_NAME, each) for each in organizations]
        usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])
        builder = _builder(x509.Name(parts), self._name, key, life).add_extension(usage, critical=False)
        private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        return builder.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM), private

    def show(self, name, *organizations, life=DAY):
        """A client's certificate in DER, as TLS shows it."""
        pem, _ = self.issue(name, *organizations, life=life)
        return x509.load_pem_x509_certificate(pem).public_bytes(Encoding.DER)


def _builder(subject, issuer, key, life):
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - 2 * DAY)
        .not_valid_after(now + life)
    )
