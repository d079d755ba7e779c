"""The certificate that the process serves with: the one given, or one made for `localhost`.

Source: spec/core.md 8.4.
"""

import ssl
import tempfile
from pathlib import Path

from berth.scheduler.errors import StartError


def server_context(certificate_file: str = "", key_file: str = "") -> ssl.SSLContext:
    """TLS with that certificate, or with a new self-signed one where none is named.

    Raises: StartError where the files can't be used.
    """
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    if not certificate_file and not key_file:
        # Imported here: cryptography takes 0.1 s of CPU, and who names a certificate needs none of it.
        from berth.scheduler.self_signed import self_signed  # noqa: PLC0415 (see above)

        with tempfile.TemporaryDirectory(prefix="berth-serving-") as folder:
            certificate, key = Path(folder, "tls.crt"), Path(folder, "tls.key")
            certificate_pem, key_pem = self_signed()
            certificate.write_bytes(certificate_pem)
            key.write_bytes(key_pem)
            context.load_cert_chain(certificate, key)
        return context
    try:
        context.load_cert_chain(certificate_file, key_file or None)
    except (OSError, ssl.SSLError) as error:
        reason = error.strerror or str(error)
        raise StartError(
            f"--tls-cert-file {certificate_file}, --tls-private-key-file {key_file}: {reason}"
        ) from error
    return context
