"""Forks: clusters that clients keep, each known to its own client alone and dropped once it is idle.

create --> kept --get--> kept ... --idle, drop--> gone
"""

import secrets
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from berth.framework.clock import Clock
from berth.objects.node import Node
from berth.objects.pods.pod import Pod
from berth.simulation.reading.inputs import ClusterInput
from berth.simulation_service.errors import NoForkError
from berth.simulation_service.limits import ServiceLimits, check


class ForkVersion(msgspec.Struct, frozen=True):
    """A cluster as a fork has it, and how many bytes of objects were put into it. Not to be changed."""

    cluster: ClusterInput
    put_bytes: int = 0

    @property
    def nodes(self) -> int:
        """How many nodes it has."""
        return len(self.cluster.of(Node))

    @property
    def pods(self) -> int:
        """How many pods it has."""
        return len(self.cluster.of(Pod))


@dataclass(slots=True)
class _Fork:
    client: str
    version: ForkVersion
    used: float


class Forks:
    """The forks of all clients by their IDs. One event loop owns it."""

    def __init__(self, limits: ServiceLimits, clock: Clock) -> None:
        self._limits = limits
        self._clock = clock
        self._forks: dict[str, _Fork] = {}

    def __len__(self) -> int:
        self._drop_idle()
        return len(self._forks)

    def room(self, client: str) -> None:
        """Refuse a client that has as many forks as it may have. Raises: BoundError."""
        self._drop_idle()
        check("forks of the client", 1 + self._of(client), self._limits.forks)
        check("forks of all clients", 1 + len(self._forks), self._limits.forks_of_all)

    def create(self, client: str, version: ForkVersion) -> str:
        """Keep a cluster; the fork's ID, which can't be guessed. Raises: BoundError."""
        self.room(client)
        self._check(version)
        fork_id = secrets.token_urlsafe(18)
        self._forks[fork_id] = _Fork(client, version, self._clock.monotonic())
        return fork_id

    def get(self, client: str, fork_id: str) -> ForkVersion:
        """The fork's cluster; it is used now. Raises: NoForkError."""
        self._drop_idle()
        fork = self._forks.get(fork_id)
        if fork is None or fork.client != client:
            raise NoForkError("fork_id: found none of yours; it may have been idle too long: create it anew")
        fork.used = self._clock.monotonic()
        return fork.version

    def put(self, client: str, fork_id: str, version: ForkVersion) -> None:
        """Let the fork be another version of its cluster. Raises: NoForkError, BoundError."""
        self.get(client, fork_id)
        self._check(version)
        self._forks[fork_id].version = version

    def drop(self, client: str, fork_id: str) -> None:
        """Forget a fork; one that the client does not have is no matter."""
        fork = self._forks.get(fork_id)
        if fork is not None and fork.client == client:
            del self._forks[fork_id]

    def _of(self, client: str) -> int:
        return sum(fork.client == client for fork in self._forks.values())

    def _check(self, version: ForkVersion) -> None:
        check("nodes", version.nodes, self._limits.nodes)
        check("pods", version.pods, self._limits.pods)
        check("bytes put into the fork", version.put_bytes, self._limits.unpacked_bytes)

    def _drop_idle(self) -> None:
        since = self._clock.monotonic() - self._limits.idle_seconds
        self._forks = {key: fork for key, fork in self._forks.items() if fork.used > since}


Base = Callable[[], ClusterInput]
"""The cluster that the server follows, as it is now; not to be changed. Raises: QueryError."""
