"""Reads the /state of a started plugin over HTTP.

Called by: outside_plugins.py, on its own loop, while virtual time stands still.
"""

import http.client
from typing import Final, TypeVar

import msgspec

from berth.sandbox.free_port import LOOPBACK
from berth.simulation.reading.packed_lines import NO_JSON

SECONDS: Final = 10.0
MAX_BYTES: Final = 64 << 20
T = TypeVar("T")


class StateError(Exception):
    """The state can't be read; the text says why."""


def read_state(port: int, of: type[T]) -> T:
    """The state of the plugin whose pages are served at that port. Raises: StateError."""
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=SECONDS)
    try:
        connection.request("GET", "/state")
        response = connection.getresponse()
        body = response.read(MAX_BYTES + 1)
        if response.status != http.client.OK:
            raise StateError(
                f"{response.status} {response.reason}: {body[:200].decode(errors='replace').strip()}"
            )
        if len(body) > MAX_BYTES:
            raise StateError(f"more than {MAX_BYTES} bytes")
        return msgspec.json.decode(body, type=of)
    except (OSError, http.client.HTTPException) as error:
        raise StateError(str(error) or type(error).__name__) from None
    except NO_JSON as error:
        raise StateError(str(error)) from None
    finally:
        connection.close()
