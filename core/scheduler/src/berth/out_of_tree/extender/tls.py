"""Whom an extender has to be, and who we are to it, as an ssl context.

The material was loaded and checked when the configuration was read.

Source: client-go rest.TLSConfigFor (v0.36).
"""

import ssl
from contextlib import ExitStack
from tempfile import NamedTemporaryFile

from berth.config.types import ExtenderTls


def client_context(tls: ExtenderTls | None) -> ssl.SSLContext:
    """The context; without settings the system's authorities are trusted.

    Raises: OSError, where certificate and key make no pair.
    """
    tls = tls or ExtenderTls()
    context = ssl.create_default_context(cadata=tls.ca_data.decode() if tls.ca_data else None)
    # Many clusters' own authorities lack extensions that Python 3.13 began to insist on.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if tls.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if tls.cert_data and tls.key_data:
        _show(context, tls.cert_data, tls.key_data)
    return context


def _show(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Load the pair, by way of files that only we can read: the ssl module reads no others."""
    with ExitStack() as stack:
        paths = []
        for data in (certificate, key):
            file = stack.enter_context(NamedTemporaryFile())
            file.write(data)
            file.flush()
            paths.append(file.name)
        context.load_cert_chain(*paths)
