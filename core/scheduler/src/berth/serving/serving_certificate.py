"""The certificate that a process serves with: that of files, as they are now, or one of its own.

Clients are asked for theirs once there are authorities to verify them by; one that shows another is refused
in the handshake.

Source: staging/src/k8s.io/apiserver/pkg/server/dynamiccertificates (Kubernetes v1.36).
"""

import hashlib
import logging
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from berth.serving.errors import StartError

log = logging.getLogger(__name__)

Authorities = Callable[[], str]
"""Gives the authorities of clients' certificates, in PEM, "" where none are asked for."""


Certificate = Callable[[], ssl.SSLContext]
"""Gives the TLS context of a new connection."""


def no_authorities() -> str:
    """Ask for no client's certificate."""
    return ""


MADE_WITHIN_SECONDS = 60.0
_END = ssl.PEM_FOOTER.encode() + b"\n"
_Version = tuple[int, int, int] | None


class NamedCertificate:
    """A certificate in files; each new connection gets the present one.

    Files are looked at when a connection comes: a renewed certificate needs no restart. Until certificate and
    key fit each other, the last ones that did are used.

    Cost: two calls of stat for each connection.
    """

    def __init__(
        self, certificate_file: str, key_file: str, authorities: Authorities = no_authorities
    ) -> None:
        """Raises: StartError where the files can't be used."""
        self._certificate_file, self._key_file = certificate_file, key_file
        self._authorities = authorities
        self.fingerprint = ""
        # Looked at before it is read, so that what changes in between is read again.
        self._versions = self._look()
        self._context = self._load()

    def __call__(self) -> ssl.SSLContext:
        """Give the context of a new connection."""
        versions = self._look()
        if versions != self._versions:
            renewed = versions[:2] != self._versions[:2]
            self._versions = versions
            self._renew(renewed=renewed)
        return self._context

    def _renew(self, *, renewed: bool) -> None:
        try:
            self._context = self._load()
        except StartError as error:
            log.warning("serving certificate not renewed, the last one stays err=%s", error)
        else:
            # Else it is the authorities of clients that changed.
            if renewed:
                log.info("serving certificate read again file=%s", self._certificate_file)

    def _load(self) -> ssl.SSLContext:
        context = _context(self._authorities())
        try:
            context.load_cert_chain(self._certificate_file, self._key_file or None)
            self.fingerprint = fingerprint(Path(self._certificate_file).read_text("ascii", "replace"))
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            files = f"--tls-cert-file {self._certificate_file}, --tls-private-key-file {self._key_file}"
            raise StartError(f"{files}: {reason}") from error
        return context

    def _look(self) -> tuple[_Version, _Version, str]:
        files = _version(self._certificate_file), _version(self._key_file or self._certificate_file)
        return *files, self._authorities()


class SelfMade:
    """A new self-signed certificate for `localhost`. Raises: StartError where none can be made.

    Cost: a process that ends when it is made, so that `cryptography` takes no memory of this one.
    """

    def __init__(self, authorities: Authorities = no_authorities) -> None:
        self._pair = _made_apart()
        self._authorities = authorities
        self._asked_by = authorities()
        self._context = context_of(*self._pair, self._asked_by)
        self.fingerprint = fingerprint(self._pair[0].decode())

    def __call__(self) -> ssl.SSLContext:
        """Give the context of a new connection."""
        authorities = self._authorities()
        if authorities != self._asked_by:
            self._context, self._asked_by = context_of(*self._pair, authorities), authorities
        return self._context


def _made_apart() -> tuple[bytes, bytes]:
    # -P: the folder that the process runs in is no place for modules.
    program = (sys.executable, "-P", "-m", "berth.serving.self_signed")
    try:
        made = subprocess.run(program, capture_output=True, check=True, timeout=MADE_WITHIN_SECONDS)  # noqa: S603 (ours)
    except (OSError, subprocess.SubprocessError) as error:
        said = (getattr(error, "stderr", None) or b"").decode(errors="replace").strip().rpartition("\n")[2]
        raise StartError(
            "no certificate could be made to serve with, "
            f"name one with --tls-cert-file and --tls-private-key-file: {error} {said}"
        ) from error
    certificate, end, key = made.stdout.partition(_END)
    return certificate + end, key


def fingerprint(pem: str) -> str:
    """Give the SHA-256 of the first certificate in a text, in hex. Raises: ValueError."""
    begin, end = pem.find(ssl.PEM_HEADER), pem.find(ssl.PEM_FOOTER)
    der = ssl.PEM_cert_to_DER_cert(pem[begin : end + len(ssl.PEM_FOOTER)])
    return hashlib.sha256(der).hexdigest()


def context_of(certificate: bytes, key: bytes, authorities: str = "") -> ssl.SSLContext:
    """Give the context of a server with that certificate, both in PEM; ssl reads them from files alone."""
    context = _context(authorities)
    with tempfile.TemporaryDirectory(prefix="berth-serving-") as folder:
        certificate_file, key_file = Path(folder, "tls.crt"), Path(folder, "tls.key")
        certificate_file.write_bytes(certificate)
        key_file.write_bytes(key)
        context.load_cert_chain(certificate_file, key_file)
    return context


def _context(authorities: str = "") -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    if authorities:
        context.load_verify_locations(cadata=authorities)
        context.verify_mode = ssl.CERT_OPTIONAL
        # Many clusters' own authorities lack extensions that Python 3.13 began to insist on.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def _version(file: str) -> _Version:
    """Give what differs between versions of a file; None where there is none."""
    try:
        found = Path(file).stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size
