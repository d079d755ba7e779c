"""Extenders over TLS: whom they have to be, and who we are to them."""

import base64
import ipaddress
import ssl
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from berth.out_of_tree.extender import UnansweredError
from berth.testing.builders import make_node
from berth.testing.clusters import table
from tests.fakes import attempt_at
from tests.unit.extender.webhook import Webhook, client_of, serving

NODES = [make_node("n0")]


def self_signed(*names):
    """(certificate, key) in PEM for these names and for 127.0.0.1 if there are none."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "extender")])
    alternatives = [x509.DNSName(name) for name in names]
    alternatives = alternatives or [x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return certificate.public_bytes(serialization.Encoding.PEM), private


@pytest.fixture
def server_side(tmp_path):
    """Makes an ssl context of a certificate, perhaps one that asks clients for theirs."""

    def make(certificate, key, *, clients=b""):
        (tmp_path / "cert.pem").write_bytes(certificate)
        (tmp_path / "key.pem").write_bytes(key)
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
        if clients:
            context.load_verify_locations(cadata=clients.decode())
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    return make


async def asked(context, **entry):
    """What comes of a call with these settings."""
    async with (
        serving(Webhook(filter={"NodeNames": ["n0"]}), context) as webhook,
        client_of(webhook, filterVerb="filter", nodeCacheCapable=True, **entry) as client,
    ):
        return list((await client.filter(attempt_at(table(NODES)), NODES)).passed)


def encoded(pem):
    return base64.b64encode(pem).decode()


async def test_without_a_ca_nothing_is_verified(server_side):
    """`enableHTTPS` alone trusts any server, as in kube-scheduler."""
    assert ["n0"] == await asked(server_side(*self_signed()), enableHTTPS=True)


async def test_ca_is_verified(server_side):
    """With a CA, its certificates are accepted."""
    certificate, key = self_signed()

    assert ["n0"] == await asked(
        server_side(certificate, key), enableHTTPS=True, tlsConfig={"caData": encoded(certificate)}
    )


@pytest.mark.parametrize(
    "tls", [{}, {"tlsConfig": {"caData": encoded(self_signed()[0])}}], ids=["none", "another"]
)
async def test_unknown_authority(server_side, tls):
    """A server that no trusted authority vouches for is not spoken to."""
    with pytest.raises(UnansweredError, match="x509: certificate signed by unknown authority"):
        await asked(server_side(*self_signed()), **tls)


async def test_server_name(server_side):
    """`serverName` is what the certificate has to be for."""
    certificate, key = self_signed("extender.example.com")
    trusted = {"caData": encoded(certificate)}

    with pytest.raises(UnansweredError, match="x509: IP address mismatch, certificate is not valid for"):
        await asked(server_side(certificate, key), tlsConfig=trusted)
    named = {**trusted, "serverName": "extender.example.com"}
    assert ["n0"] == await asked(server_side(certificate, key), tlsConfig=named)


async def test_client_certificate(server_side):
    """We show our own certificate to a server that asks for it."""
    (certificate, key), (ours, our_key) = self_signed(), self_signed()
    context = server_side(certificate, key, clients=ours)
    shown = {"caData": encoded(certificate), "certData": encoded(ours), "keyData": encoded(our_key)}

    assert ["n0"] == await asked(context, tlsConfig=shown)
