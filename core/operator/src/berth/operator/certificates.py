"""Authorities and the certificates that they sign, in PEM. No I/O; the time is given.

    new authority ──a day──► signs ──two thirds of its life──► a successor is made ──a day──► signs

A successor is trusted a day before it signs: clients have read it by then.
"""

import base64
import binascii
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from typing import Final, NamedTuple

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

AUTHORITY_LIFE: Final = timedelta(days=730)
SERVING_LIFE: Final = timedelta(days=90)
TRUSTED_BEFORE_SIGNING: Final = timedelta(days=1)
CLOCKS_DIFFER_BY: Final = timedelta(hours=1)
_MADE: Final = "%Y%m%d%H%M%S"
_LOOPBACK: Final = ("127.0.0.1", "::1")
_LONGEST_COMMON_NAME: Final = 64


class Pair(NamedTuple):
    """A certificate and its key, both in PEM."""

    certificate: bytes
    key: bytes


class Authority:
    """A certificate that signs others; `made` is when."""

    def __init__(self, pair: Pair, made: datetime) -> None:
        """Raises: ValueError where the pair is none."""
        self.pair, self.made = pair, made
        self.certificate = x509.load_pem_x509_certificate(pair.certificate)
        self.key = _private_key(pair.key)
        if self.certificate.public_key() != self.key.public_key():
            raise ValueError("the key is of another certificate")

    def issue(self, names: Sequence[str], now: datetime) -> Pair:
        """Give a new certificate for a server of these names, and of the loopback addresses."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = (
            _builder(_name(names[0]), self.certificate.subject, key, now, SERVING_LIFE)
            .add_extension(_alternative(names), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(digital_signature=True), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()), critical=False
            )
        )
        return _pair(builder.sign(self.key, hashes.SHA256()), key)

    def vouches(self, pair: Pair, names: Sequence[str], now: datetime) -> bool:
        """Say whether a pair is of this authority, for these names, and not due to be renewed."""
        try:
            certificate = x509.load_pem_x509_certificate(pair.certificate)
            certificate.verify_directly_issued_by(self.certificate)
            key = _private_key(pair.key)
            found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        except (ValueError, TypeError, x509.ExtensionNotFound, x509.InvalidVersion, InvalidSignature):
            return False
        fits = key.public_key() == certificate.public_key() and found == _alternative(names)
        return fits and not _is_due(certificate, now)


class Authorities:
    """All authorities that are trusted, the oldest first."""

    def __init__(self, every: Sequence[Authority] = ()) -> None:
        self._every = sorted(every, key=lambda one: one.made)

    @classmethod
    def read(cls, data: Mapping[str, str], now: datetime) -> "Authorities":
        """Give those of a Secret's data, without what is damaged or has ended."""
        found = []
        for name in data:
            stem, _, suffix = name.rpartition(".")
            if suffix == "crt" and (one := _read(stem, data)) is not None:
                found.append(one)
        return cls([one for one in found if one.certificate.not_valid_after_utc > now])

    def data(self) -> dict[str, str]:
        """Give them as a Secret's data, by when they were made."""
        found = {}
        for one in self._every:
            stem = one.made.strftime(_MADE)
            found[f"{stem}.crt"], found[f"{stem}.key"] = map(encoded, one.pair)
        return found

    def renewed(self, now: datetime) -> "Authorities":
        """Give them with a successor of the newest, if one is due."""
        if self._every and not _is_due(self._every[-1].certificate, now):
            return self
        return Authorities([*self._every, _new_authority(now)])

    def bundle(self) -> str:
        """Give the certificates that clients are to trust."""
        return "".join(one.pair.certificate.decode() for one in self._every)

    def signer(self, now: datetime) -> Authority | None:
        """Give the newest that clients have had the time to learn of; the oldest if none is; None of none."""
        known = [one for one in self._every if one.made + TRUSTED_BEFORE_SIGNING <= now]
        return known[-1] if known else next(iter(self._every), None)


def encoded(content: bytes) -> str:
    """Give bytes as a Secret's data has them."""
    return base64.b64encode(content).decode()


def decoded(data: Mapping[str, str], name: str) -> bytes:
    """Give bytes of a Secret's data, none where they are missing or damaged."""
    try:
        return base64.b64decode(data.get(name, ""), validate=True)
    except (ValueError, TypeError, binascii.Error):
        return b""


def _read(stem: str, data: Mapping[str, str]) -> Authority | None:
    try:
        made = datetime.strptime(stem, _MADE).replace(tzinfo=UTC)
        return Authority(Pair(decoded(data, f"{stem}.crt"), decoded(data, f"{stem}.key")), made)
    except (ValueError, TypeError, x509.InvalidVersion):
        return None


def _new_authority(now: datetime) -> Authority:
    key, made = ec.generate_private_key(ec.SECP256R1()), now.replace(microsecond=0)
    name = _name(f"berth-operator-ca@{made.strftime(_MADE)}")
    builder = (
        _builder(name, name, key, now, AUTHORITY_LIFE)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(key_cert_sign=True), critical=True)
    )
    return Authority(_pair(builder.sign(key, hashes.SHA256()), key), made)


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    now: datetime,
    life: timedelta,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCKS_DIFFER_BY)
        .not_valid_after(now + life)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text[:_LONGEST_COMMON_NAME])])


def _alternative(names: Sequence[str]) -> x509.SubjectAlternativeName:
    addresses = [x509.IPAddress(ip_address(one)) for one in _LOOPBACK]
    return x509.SubjectAlternativeName([*map(x509.DNSName, (*names, "localhost")), *addresses])


def _usage(*, digital_signature: bool = False, key_cert_sign: bool = False) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=digital_signature,
        key_cert_sign=key_cert_sign,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )


def _is_due(certificate: x509.Certificate, now: datetime) -> bool:
    """Say whether less than a third of a certificate's life is left."""
    begin, end = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    return end - now < (end - begin) / 3


def _pair(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Pair:
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return Pair(certificate.public_bytes(Encoding.PEM), private)


def _private_key(pem: bytes) -> ec.EllipticCurvePrivateKey:
    """Raises: ValueError where it is none of ours."""
    key = load_pem_private_key(pem, password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise ValueError("not an elliptic curve's key")  # noqa: TRY004 (one error for all that is damaged)
    return key
