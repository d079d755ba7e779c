"""Whom the extender has to be, and who the plugin is to it: `tlsConfig`, its files read and checked.

Source: kubescheduler.config.k8s.io/v1 ExtenderTLSConfig (Kubernetes v1.36).
"""

import base64
import binascii
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from berth.config.rules.tls_material import check_authorities, check_pair
from berth.config.types import ExtenderTls


class TrustError(Exception):
    """The settings make no sense; the text begins with the field."""


def trust_of(tls: Mapping[str, Any], *, https: bool) -> ExtenderTls:
    """Return whom to trust; with HTTPS and without an authority nothing is verified, as in kube-scheduler.

    Raises: TrustError.
    """
    authority, certificate, key = (_pem(tls, kind) for kind in ("ca", "cert", "key"))
    insecure = tls.get("insecure", False)
    if authority and insecure:
        raise TrustError("insecure: true and a CA contradict each other; take one of them out")
    try:
        if authority:
            check_authorities(authority)
    except ValueError as error:
        raise TrustError(f"caData: no certificate in PEM ({error}); give the authority's") from error
    try:
        if certificate and key:
            check_pair(certificate, key)
    except ValueError as error:
        raise TrustError(f"certData: certificate and key are no pair ({error}); give both in PEM") from error
    return ExtenderTls(
        insecure=insecure or (https and not authority),
        server_name=tls.get("serverName") or "",
        ca_data=authority,
        cert_data=certificate,
        key_data=key,
    )


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
