"""TLS settings of an extender, as an ssl context: its CA and server name, and our client certificate.

Certificates and keys were loaded and checked when the configuration was read.

Source: client-go rest.TLSConfigFor (v0.36).
"""

import ssl
from contextlib import ExitStack
from tempfile import NamedTemporaryFile

from berth.config.types import ExtenderTls


def client_context(tls: ExtenderTls | None) -> ssl.SSLContext:
    """The context; without settings the system's CAs are trusted.

    Raises: OSError, where certificate and key make no pair.
    """
    tls = tls or ExtenderTls()
    context = ssl.create_default_context(cadata=tls.ca_data.decode() if tls.ca_data else None)
    # CAs of many clusters lack extensions that Python 3.13 began to require.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if tls.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if tls.cert_data and tls.key_data:
        _show(context, tls.cert_data, tls.key_data)
    return context


def _show(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Load the pair from files that only this user can read: the ssl module loads from files alone."""
    with ExitStack() as stack:
        paths = []
        for data in (certificate, key):
            file = stack.enter_context(NamedTemporaryFile())
            file.write(data)
            file.flush()
            paths.append(file.name)
        context.load_cert_chain(*paths)
