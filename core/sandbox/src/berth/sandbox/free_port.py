"""A port for a server that cannot choose its own."""

import itertools
import random
import socket
from typing import Final

LOOPBACK: Final = "127.0.0.1"
PORTS: Final = range(20_000, 32_768)
"""Below those of outgoing connections on Linux and macOS: one of them could take the port meanwhile."""
# In an order of this process's own: it does not give a port twice, and another process rarely the same.
# Chance comes from the system: test runners seed the module's generator alike in all of their processes.
_UNTRIED = itertools.cycle(random.SystemRandom().sample(PORTS, len(PORTS)))


def free_port() -> int:
    """Give a port of loopback that is free now; it stays free until another server asks for it.

    Raises: OSError where none is left.
    """
    for port in itertools.islice(_UNTRIED, len(PORTS)):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((LOOPBACK, port))
            except OSError:
                continue
            return port
    raise OSError(f"every port of {LOOPBACK} from {PORTS.start} to {PORTS.stop - 1} is in use")
