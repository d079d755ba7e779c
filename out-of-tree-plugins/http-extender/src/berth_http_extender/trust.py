"""Whom the extender has to be, and who the plugin is to it: `tlsConfig` as an ssl context.

Source: kubescheduler.config.k8s.io/v1 ExtenderTLSConfig (Kubernetes v1.36).
"""

import base64
import binascii
import ssl
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


class TrustError(Exception):
    """The settings make no sense; the text begins with the field."""


@dataclass(frozen=True, slots=True)
class Trust:
    """The context, None for the system's authorities; and the name that the certificate has to have."""

    context: ssl.SSLContext | None = None
    server_name: str | None = None


def trust_of(tls: Mapping[str, Any], *, https: bool) -> Trust:
    """Return whom to trust; with HTTPS and without an authority nothing is verified, as in kube-scheduler.

    Raises: TrustError.
    """
    if not tls and not https:
        return Trust()
    authority = _pem(tls, "ca")
    insecure = tls.get("insecure", False)
    if authority and insecure:
        raise TrustError("insecure: true and a CA contradict each other; take one of them out")
    try:
        context = ssl.create_default_context(cadata=authority.decode() if authority else None)
    except (ssl.SSLError, ValueError) as error:
        raise TrustError(f"caData: no certificate in PEM ({error}); give the authority's") from error
    context.verify_flags &= (
        ~ssl.VERIFY_X509_STRICT
    )  # what clusters' own authorities issue may lack extensions
    if insecure or (https and not authority):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    _show(context, _pem(tls, "cert"), _pem(tls, "key"))
    return Trust(context, tls.get("serverName") or None)


def _pem(tls: Mapping[str, Any], kind: str) -> bytes:
    """Return the data, else what the file holds, empty if neither is given."""
    data, path = tls.get(f"{kind}Data"), tls.get(f"{kind}File")
    try:
        if data:
            return base64.b64decode(data, validate=True)
        return Path(path).read_bytes() if path else b""
    except binascii.Error as error:
        raise TrustError(f"{kind}Data: no base64 ({error}); encode the PEM file") from error
    except OSError as error:
        raise TrustError(f"{kind}File: {path}: {error.strerror}; give a file that can be read") from error


def _show(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Load the pair from a private file, because the ssl module takes it from nothing else."""
    if not (certificate and key):
        return
    with tempfile.NamedTemporaryFile() as file:
        file.write(certificate + b"\n" + key)
        file.flush()
        try:
            context.load_cert_chain(file.name)
        except ssl.SSLError as error:
            raise TrustError(
                f"certData: certificate and key are no pair ({error}); give both in PEM"
            ) from error
