"""Checks the owner, mode and server of a unix socket before anything is sent to it.

A plugin decides where pods go, so a socket that others may write to, or that others serve, is refused. So is
one in a folder that belongs to another user, who could put another socket there. A folder that anybody may
write to is reported and not refused: a volume of Kubernetes is one (emptyDir has mode 0777), and what takes a
socket's place in it has to be served by a trusted user all the same.

Trusted are root, our own user, and the one that the plugin's entry names. That one's socket may be open to a
group of ours: the group's members are its creator's responsibility (the operator gives each plugin a
volume that no other plugin mounts).

    path --open, O_PATH--> the socket's file --checked--> dialled by its descriptor

The socket that is dialled is the one that was checked, even if the path changed; where the system has no
O_PATH (it is Linux's), the path is dialled.

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
    """A path that leads to exactly the socket that was checked, until the block ends.

    `user` may serve it, as may this process's user and root.

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
    """The first folder in the socket's path in which other users may replace files; empty if none."""
    for folder in _folders(path):
        mode = folder.stat().st_mode
        if mode & WRITABLE_BY_OTHERS and not mode & stat.S_ISVTX:
            return f"others may replace what is in {folder} (mode {stat.S_IMODE(mode):04o})"
    return ""


def missing_folder(path: str) -> str:
    """The missing folder because of which the socket can never appear; empty if it exists or may appear.

    The socket may appear later, with a private folder that the plugin creates for it. The
    parent of that folder has to exist.
    """
    folder = Path(path).parent
    return "" if folder.is_dir() or folder.parent.is_dir() else str(folder)


def _opened(path: str) -> int | None:
    """An O_PATH descriptor of the socket's file; None where the system has none."""
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
    """Every folder in the socket's path, by the given path and by the resolved one."""
    named, real = Path(path), Path(path).resolve()
    return list(dict.fromkeys((*named.parents, *real.parents)))


def _served_by(path: str) -> int | None:
    """The user of the listening process; None where the system does not say."""
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
    """Whether the socket is served by another, named user, and is open to a group of this process's user."""
    return user is not None and found.st_gid in (os.getegid(), *os.getgroups())


def _trusted(uid: int, user: int | None) -> bool:
    """Whether that user is trusted: root, the process's own, the named one; a process of root trusts all."""
    ours = os.geteuid()
    return uid in (0, ours, user) or ours == 0
