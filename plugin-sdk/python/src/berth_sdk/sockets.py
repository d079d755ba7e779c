"""Unix sockets that a plugin serves: private, or shared with its group, from their first moment on."""

import logging
import os
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from berth_sdk.errors import AddressError

log = logging.getLogger(__name__)


def unix_path(address: str) -> Path | None:
    """Return the socket's path, None for TCP addresses."""
    scheme, _, path = address.partition(":")
    return Path(path.removeprefix("//")) if scheme == "unix" else None


def is_shared() -> bool:
    """Return whether the socket is open to the group of the process: a host of another user dials it."""
    return os.environ.get("BERTH_PLUGIN_SOCKET_SHARED") == "true"


def prepare_socket(path: Path) -> None:
    """Make the socket's directory, private if it is new, and take away a socket that is not served.

    Raises: AddressError: another process serves it, or something else is there.
    """
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if is_shared() and path.parent.stat().st_mode & 0o777 == stat.S_IRWXU:
            path.parent.chmod(0o750)
        if path.parent.stat().st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            log.warning("others may write to the socket's directory path=%s", path.parent)
        if not path.exists():
            return
        if not path.is_socket():
            raise AddressError(f"unix:{path}: there is a file that is no socket")
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            if not probe.connect_ex(str(path)):
                raise AddressError(f"unix:{path}: in use")
        path.unlink()
    except OSError as error:
        raise AddressError(f"unix:{path}: {error.strerror}") from error


@contextmanager
def private() -> Iterator[None]:
    """Let sockets made within the block be private, or open to the group alone."""
    before = os.umask(0o117 if is_shared() else 0o177)
    try:
        yield
    finally:
        os.umask(before)


def set_mode(path: Path) -> None:
    """Let the socket have the mode that the host looks for."""
    path.chmod(0o660 if is_shared() else 0o600)
