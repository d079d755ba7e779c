"""A plugin's socket, served, dialled and checked as another user.

`python -m tests.e2e.socket_as_user USER GROUP serve|dial|check PATH [SERVED-BY]`

Modules are read as root, who may read the interpreter's folders; then the user is changed for good.
"""

import asyncio
import os
import socket
import sys

from berth.out_of_tree.errors import NotConnectedError
from berth.out_of_tree.transport.socket_access import check_socket
from berth_sdk import Plugin, Server

SERVING, CONNECTED, TRUSTED = "serving", "connected", "trusted"


class Passes(Plugin):
    """It turns no node down."""

    name = "passes"

    def filter(self, _pod, _node):
        """Pass."""


async def serve(path):
    """Serve a plugin until standard input ends."""
    server = Server(Passes(), f"unix:{path}")
    await server.start()
    print(SERVING, flush=True)  # noqa: T201 (for who started it)
    ended = asyncio.Event()
    asyncio.get_running_loop().add_reader(sys.stdin, ended.set)
    await ended.wait()
    await server.stop(0)


def dial(path):
    """Give what comes of connecting."""
    with socket.socket(socket.AF_UNIX) as dialled:
        try:
            dialled.connect(path)
        except OSError as error:
            return error.strerror
    return CONNECTED


def check(path, served_by):
    """Give what the scheduler says of it."""
    try:
        check_socket("passes", path, int(served_by))
    except NotConnectedError as error:
        return str(error)
    return TRUSTED


def main(user, group, verb, *arguments):
    """Do it as that user, in that group alone."""
    os.setgroups([int(group)])
    os.setgid(int(group))
    os.setuid(int(user))
    if verb == "serve":
        asyncio.run(serve(*arguments))
    else:
        print({"dial": dial, "check": check}[verb](*arguments))  # noqa: T201 (for who started it)


if __name__ == "__main__":
    main(*sys.argv[1:])
