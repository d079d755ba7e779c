"""The certificate that a process serves with: that of files, as they are now, or one of its own.

Source: staging/src/k8s.io/apiserver/pkg/server/dynamiccertificates (Kubernetes v1.36).
"""

import logging
import ssl
import tempfile
from collections.abc import Callable
from pathlib import Path

from berth.scheduler.errors import StartError

log = logging.getLogger(__name__)

Certificate = Callable[[], ssl.SSLContext]
"""Gives the TLS context of a new connection."""
_Version = tuple[int, int, int] | None


class NamedCertificate:
    """A certificate in files; each new connection gets the present one.

    Files are looked at when a connection comes: a renewed certificate needs no restart. Until certificate and
    key fit each other, the last ones that did are used.

    Cost: two calls of stat for each connection.
    """

    def __init__(self, certificate_file: str, key_file: str) -> None:
        """Raises: StartError where the files can't be used."""
        self._certificate_file, self._key_file = certificate_file, key_file
        # Looked at before it is read, so that what changes in between is read again.
        self._versions = self._look()
        self._context = self._load()

    def __call__(self) -> ssl.SSLContext:
        """Give the context of a new connection."""
        versions = self._look()
        if versions != self._versions:
            self._versions = versions
            self._renew()
        return self._context

    def _renew(self) -> None:
        try:
            self._context = self._load()
        except StartError as error:
            log.warning("serving certificate not renewed, the last one stays error=%s", error)
        else:
            log.info("serving certificate renewed file=%s", self._certificate_file)

    def _load(self) -> ssl.SSLContext:
        context = _context()
        try:
            context.load_cert_chain(self._certificate_file, self._key_file or None)
        except (OSError, ssl.SSLError) as error:
            reason = error.strerror or str(error)
            files = f"--tls-cert-file {self._certificate_file}, --tls-private-key-file {self._key_file}"
            raise StartError(f"{files}: {reason}") from error
        return context

    def _look(self) -> tuple[_Version, _Version]:
        return _version(self._certificate_file), _version(self._key_file or self._certificate_file)


def self_made() -> Certificate:
    """Give a new self-signed certificate for `localhost`."""
    # Imported here: cryptography takes 0.1 s of CPU, and a process with a named certificate needs none of it.
    from berth.scheduler.self_signed import self_signed  # noqa: PLC0415 (see above)

    context = context_of(*self_signed())
    return lambda: context


def context_of(certificate: bytes, key: bytes) -> ssl.SSLContext:
    """Give the context of a server with that certificate, both in PEM; ssl reads them from files alone."""
    context = _context()
    with tempfile.TemporaryDirectory(prefix="berth-serving-") as folder:
        certificate_file, key_file = Path(folder, "tls.crt"), Path(folder, "tls.key")
        certificate_file.write_bytes(certificate)
        key_file.write_bytes(key)
        context.load_cert_chain(certificate_file, key_file)
    return context


def _context() -> ssl.SSLContext:
    return ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)


def _version(file: str) -> _Version:
    """Give what differs between versions of a file; None where there is none."""
    try:
        found = Path(file).stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size
