"""Who is at the other end of a unix socket: looked at before anything is said to it.

A plugin decides where pods go, so a socket that others may write to, or that others serve, is refused.

Source: docs/protocol.md "Transport".
"""

import os
import socket
import stat
import struct
from pathlib import Path

from berth.out_of_tree.errors import NotConnectedError

WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_CREDENTIALS = struct.Struct("3i")  # pid, uid, gid


def check_socket(plugin: str, path: str) -> None:
    """Check the socket's owner and mode, and who serves it.

    Raises: NotConnectedError with what is wrong.
    """
    try:
        found = Path(path).stat()
        if not stat.S_ISSOCK(found.st_mode):
            raise NotConnectedError(plugin, f"{path} is no socket")
        if found.st_mode & WRITABLE_BY_OTHERS:
            mode = stat.S_IMODE(found.st_mode)
            raise NotConnectedError(plugin, f"others may write to {path} (mode {mode:04o}): make it 0600")
        served_by = _served_by(path)
    except OSError as error:
        raise NotConnectedError(plugin, f"{path}: {error.strerror or error}") from error
    for uid, whose in ((found.st_uid, "belongs to"), (served_by, "is served by")):
        if uid is not None and not _trusted(uid):
            raise NotConnectedError(plugin, f"{path} {whose} user {uid}, which is neither ours nor root")


def missing_folder(path: str) -> str:
    """The folder that the socket is to appear in, if it can't be there ever; empty if it is, or may come.

    The socket may come later, as its plugin may, with a private folder that the plugin makes for it; nobody
    makes the folder above that.
    """
    folder = Path(path).parent
    return "" if folder.is_dir() or folder.parent.is_dir() else str(folder)


def _served_by(path: str) -> int | None:
    """The user whose process listens, None where the system does not tell."""
    peer_credentials = getattr(socket, "SO_PEERCRED", None)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)
        probe.connect(path)
        if peer_credentials is None:
            return None
        data = probe.getsockopt(socket.SOL_SOCKET, peer_credentials, _CREDENTIALS.size)
        uid: int = _CREDENTIALS.unpack(data)[1]
        return uid


def _trusted(uid: int) -> bool:
    """Whether that user may decide for us: root may, we may, and root trusts whom it was told to dial."""
    ours = os.geteuid()
    return uid in (0, ours) or ours == 0
