"""Checks of certificates and keys in PEM, with Go's complaints.

Source: crypto/tls X509KeyPair (Go 1.26), k8s.io/client-go/transport (v0.36).
"""

import re

_BLOCK = re.compile(rb"-----BEGIN ([A-Z0-9 ]+)-----.*?-----END \1-----", re.DOTALL)
_CERTIFICATE = "CERTIFICATE"
_KEY = "PRIVATE KEY"


def check_authorities(pem: bytes) -> None:
    """Demand one usable certificate at least; what is wrong with the others does not matter then.

    Raises:
        ValueError: with the reason.
    """
    from cryptography import x509  # noqa: PLC0415 (slow to import, rarely needed)

    problem = "unable to parse bytes as PEM block"
    for kind, block in _blocks(pem):
        if kind != _CERTIFICATE:
            problem = "no valid certificate authority data seen"
            continue
        try:
            x509.load_pem_x509_certificate(block)
        except ValueError as error:
            problem = f"failed to parse certificate: x509: {error}"
        else:
            return
    raise ValueError(problem)


def check_pair(certificate: bytes, key: bytes) -> None:
    """Demand a certificate and the private key that belongs to it.

    Raises:
        ValueError: with the reason.
    """
    from cryptography import x509  # noqa: PLC0415 (slow to import, rarely needed)
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415 (likewise)

    leaf, private = _leaf(certificate), _private_key(key)
    try:
        public = x509.load_pem_x509_certificate(leaf).public_key()
    except ValueError as error:
        raise ValueError(f"x509: {error}") from None
    try:
        matching = serialization.load_pem_private_key(private, password=None).public_key()
    except (ValueError, TypeError):
        raise ValueError("tls: failed to parse private key") from None
    if matching != public:
        raise ValueError("tls: private key does not match public key")


def _leaf(pem: bytes) -> bytes:
    skipped: list[str] = []
    for kind, block in _blocks(pem):
        if kind == _CERTIFICATE:
            return block
        skipped.append(kind)
    if not skipped:
        raise ValueError("tls: failed to find any PEM data in certificate input")
    if len(skipped) == 1 and skipped[0].endswith(_KEY):
        found = "but did find a private key; PEM inputs may have been switched"
        raise ValueError(f"tls: failed to find certificate PEM data in certificate input, {found}")
    raise ValueError(
        f'tls: failed to find "{_CERTIFICATE}" PEM block in certificate input after {_after(skipped)}'
    )


def _private_key(pem: bytes) -> bytes:
    skipped: list[str] = []
    for kind, block in _blocks(pem):
        if kind == _KEY or kind.endswith(f" {_KEY}"):
            return block
        skipped.append(kind)
    if not skipped:
        raise ValueError("tls: failed to find any PEM data in key input")
    if skipped == [_CERTIFICATE]:
        raise ValueError("tls: found a certificate rather than a key in the PEM for the private key")
    raise ValueError(
        f'tls: failed to find PEM block with type ending in "{_KEY}" in key input after {_after(skipped)}'
    )


def _after(skipped: list[str]) -> str:
    return f"skipping PEM blocks of the following types: [{' '.join(skipped)}]"


def _blocks(pem: bytes) -> list[tuple[str, bytes]]:
    return [(match[1].decode(), match[0]) for match in _BLOCK.finditer(pem)]
