"""The socket of the secure port: it listens from the start, whatever is yet to be imported."""

import os
import socket
from collections.abc import Mapping

from berth.serving.errors import StartError

ADDRESS = "POD_IP"
"""The variable that has the address of the pod that this process runs in."""
EVERY_INTERFACE = ("", "0.0.0.0", "::")  # noqa: S104 (compared with, not bound to)
BACKLOG = 4096
"""Connections that wait to be accepted: a burst of others must not make a probe's come too late."""


def reached_at(address: str, port: int, environ: Mapping[str, str] = os.environ) -> str:
    """Give HOST:PORT at which other machines reach what is bound to that address; "" for port 0."""
    host = environ.get(ADDRESS, "")
    if not host:
        host = socket.gethostname() if address in EVERY_INTERFACE else address
    shown = f"[{host}]" if ":" in host else host
    return f"{shown}:{port}" if port else ""


def listen(address: str, port: int, *, share: bool = False) -> socket.socket | None:
    """A socket that listens there; None for port 0, which means that nothing is served.

    Raises: StartError where the address can't be had.
    """
    if not port:
        return None
    try:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        return socket.create_server((address, port), family=family, backlog=BACKLOG, reuse_port=share)
    except OSError as error:
        number = error.errno or 0
        reason = os.strerror(number).lower() if number > 0 else str(error)
        raise StartError(
            f"failed to listen on {address}:{port}: {reason}: "
            "choose another --secure-port, or 0 to serve nothing"
        ) from error
