"""Who is at the other end of a unix socket: looked at before anything is said to it.

A plugin decides where pods go, so a socket that others may write to, or that others serve, is refused. So is
one in a folder that belongs to another user, who could put another socket there. A folder that anybody may
write to is reported and not refused: a volume of Kubernetes is one (emptyDir has mode 0777), and what takes a
socket's place in it has to be served by a trusted user all the same.

Trusted are root, our own user, and the one that the plugin's entry names. That one's socket may be open to a
group of ours: who else is in the group is for those to see to who made it (an operator gives each plugin a
volume that no other sees).

    path --open, O_PATH--> the socket itself --looked at--> dialled by its descriptor

What is dialled is what was looked at, whatever the path leads to by then; where the system has no descriptors
of that kind (they are Linux'), it is dialled by its path.

Source: docs/protocol.md "Transport".
"""

import os
import socket
import stat
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from berth.out_of_tree.errors import NotConnectedError

WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_CREDENTIALS = struct.Struct("3i")  # pid, uid, gid


def check_socket(plugin: str, path: str, user: int | None = None) -> None:
    """Check the socket's owner and mode, the folders that lead to it, and who serves it.

    Raises: NotConnectedError with what is wrong.
    """
    with held_socket(plugin, path, user):
        pass


@contextmanager
def held_socket(plugin: str, path: str, user: int | None = None) -> Iterator[str]:
    """The path by which to dial the socket that was checked, and no other, until the block ends.

    `user` may serve it, besides ours and root.

    Raises: NotConnectedError with what is wrong.
    """
    try:
        descriptor = _opened(path)
    except OSError as error:
        raise NotConnectedError(plugin, f"{path}: {error.strerror or error}") from error
    try:
        held = path if descriptor is None else f"/proc/self/fd/{descriptor}"
        _check(plugin, path, held, user)
        yield held
    finally:
        if descriptor is not None:
            os.close(descriptor)


def shared_folder(path: str) -> str:
    """The first folder on the way to the socket in which others may replace what is there; empty if none."""
    for folder in _folders(path):
        mode = folder.stat().st_mode
        if mode & WRITABLE_BY_OTHERS and not mode & stat.S_ISVTX:
            return f"others may replace what is in {folder} (mode {stat.S_IMODE(mode):04o})"
    return ""


def missing_folder(path: str) -> str:
    """The folder that the socket is to appear in, if it can't be there ever; empty if it is, or may come.

    The socket may come later, as its plugin may, with a private folder that the plugin makes for it. The
    folder above that has to be there.
    """
    folder = Path(path).parent
    return "" if folder.is_dir() or folder.parent.is_dir() else str(folder)


def _opened(path: str) -> int | None:
    """A descriptor of the socket's file, which keeps no connection; None where there is no such thing."""
    only_path = getattr(os, "O_PATH", None)
    if only_path is None or not Path("/proc/self/fd").is_dir():
        return None
    return os.open(path, only_path | os.O_CLOEXEC)


def _check(plugin: str, path: str, held: str, user: int | None) -> None:
    try:
        found = Path(held).stat()
        if not stat.S_ISSOCK(found.st_mode):
            raise NotConnectedError(plugin, f"{path} is no socket")
        if found.st_mode & (stat.S_IWOTH if _is_shared(found, user) else WRITABLE_BY_OTHERS):
            mode = stat.S_IMODE(found.st_mode)
            raise NotConnectedError(plugin, f"others may write to {path} (mode {mode:04o}): make it 0600")
        owners = [(folder.stat().st_uid, f"{folder} belongs to") for folder in _folders(path)]
        served_by = _served_by(held)
    except OSError as error:
        raise NotConnectedError(plugin, f"{path}: {error.strerror or error}") from error
    for uid, whose in (*owners, (found.st_uid, f"{path} belongs to"), (served_by, f"{path} is served by")):
        if uid is not None and not _trusted(uid, user):
            named = "" if user is None else f" nor {user}"
            raise NotConnectedError(plugin, f"{whose} user {uid}, which is neither ours nor root{named}")


def _folders(path: str) -> list[Path]:
    """Every folder on the way to the socket, by its own path and by the one that links lead to."""
    named, real = Path(path), Path(path).resolve()
    return list(dict.fromkeys((*named.parents, *real.parents)))


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


def _is_shared(found: os.stat_result, user: int | None) -> bool:
    """Whether another user was named who serves the socket, and it is open to a group of ours."""
    return user is not None and found.st_gid in (os.getegid(), *os.getgroups())


def _trusted(uid: int, user: int | None) -> bool:
    """Whether that user may decide for us: root and we may, and who is named; root trusts all of them."""
    ours = os.geteuid()
    return uid in (0, ours, user) or ours == 0
