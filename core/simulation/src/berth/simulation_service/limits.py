"""What one client may cost; a caller at a bound gets RESOURCE_EXHAUSTED, with the bound's name and value."""

import msgspec

from berth.simulation_service.errors import BoundError


class ServiceLimits(msgspec.Struct, frozen=True):
    """Bounds, per client where not said otherwise. Units: bytes, seconds."""

    message_bytes: int = 32 << 20
    """Of one request as it is sent."""
    unpacked_bytes: int = 256 << 20
    """Of an uploaded snapshot, and of all objects that were put into one fork."""
    forks: int = 4
    forks_of_all: int = 64
    """Of all clients together."""
    idle_seconds: float = 600.0
    """A fork is dropped once it has not been used for so long."""
    nodes: int = 15_000
    """Of a fork."""
    pods: int = 200_000
    """Of a fork."""
    changes: int = 10_000
    """Objects in one ApplyToFork."""
    asked_pods: int = 5_000
    """In one request."""
    shapes: int = 256
    """In one request; options of an expander, too."""
    request_seconds: float = 120.0
    """How long one answer may take."""
    waiting: int = 8
    """Requests at a time, of which one is answered and the others wait."""
    calls: int = 64
    """Requests of all clients together, those that wait among them."""
    at_once: int = 8
    """Answers in the making, of all clients together."""


def check(name: str, found: int, most: int) -> None:
    """Refuse more than `most`. Raises: BoundError."""
    if found > most:
        raise BoundError(f"{name}: found {found}; at most {most}")
