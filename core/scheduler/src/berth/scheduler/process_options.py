"""What a scheduler process is started with, and where it shows itself.

Source: cmd/kube-scheduler/app/options/options.go (Kubernetes v1.36).
"""

from collections.abc import Mapping
from socket import socket
from typing import Any

import msgspec

from berth.aggregated_api.replicas import token_file
from berth.client.transport import REQUEST_SECONDS
from berth.config.loading import LoadedConfig
from berth.config.out_of_tree.sidecars import SidecarSpec, SocketDirectory
from berth.config.shards import Shard
from berth.serving.access import ALWAYS_ALLOWED


class Serving(msgspec.Struct, frozen=True):
    """Where the process shows itself; port 0 stands for nowhere."""

    address: str = "127.0.0.1"
    port: int = 0
    certificate_file: str = ""
    key_file: str = ""
    always_allowed: tuple[str, ...] = ALWAYS_ALLOWED
    trusts_front_proxies: bool = True
    """Whether the ConfigMap that names them is read."""
    listener: socket | None = None
    """A socket that listens there already, and is the process's."""


class ProcessOptions(msgspec.Struct, frozen=True):
    """What a scheduler process is started with, as files and command line say."""

    loaded: LoadedConfig
    sidecars: tuple[SidecarSpec, ...] = ()
    plugins_file: str = ""
    """Where the sidecars are listed; changes of it are followed. Empty for a list that stays as it is."""
    directory: SocketDirectory | None = None
    """Where more of them may appear."""
    shards: tuple[Shard, ...] = ()
    """Empty where one lease is for all profiles."""
    master: str = ""
    seed: int | None = None
    max_in_unschedulable_seconds: float = 300.0
    request_seconds: float = REQUEST_SECONDS
    record_to: str = ""
    """The folder to record to, empty for not at all."""
    record_most_bytes: int = 1 << 30
    serving: Serving = msgspec.field(default_factory=Serving)
    replica_token_file: str = msgspec.field(default_factory=token_file)
    """What other replicas know this process by."""
    live_page: bool = False
    """Whether /live is served."""
    flags: Mapping[str, Any] = msgspec.field(default_factory=dict)
    """Every flag's value, to be shown."""

    @property
    def has_sidecars(self) -> bool:
        """Whether there are sidecars from the start, or may be as soon as they appear."""
        return bool(self.sidecars or self.plugins_file or self.directory is not None)
