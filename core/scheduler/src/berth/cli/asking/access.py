"""How a verb about a running scheduler reaches it: at its secure port, or through the API server.

--server, $BERTH_SERVER ──► that secure port, with --token or the kubeconfig's bearer token
a kubeconfig            ──► the API server, as any request of its user
neither                 ──► the secure port of this machine's scheduler

Called by: reaching, for explanations; plugin_target, for plugins; live.
"""

import asyncio
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import msgspec

from berth.cli.asking.cluster import KubeconfigCluster, asks_a_cluster
from berth.cli.asking.secure_port import LOCAL, Server, asks_a_server

F = TypeVar("F", bound=Callable[..., Any])

_NO_CLUSTER = (
    "no kubeconfig was found, so the scheduler of this machine was asked: name a cluster with --kubeconfig, "
    "or the scheduler's secure port with --server"
)


class ServerAccess(msgspec.Struct, frozen=True):
    """The secure port that was named, if any, and the cluster."""

    server: Server
    cluster: KubeconfigCluster

    def port(self) -> Server | None:
        """The secure port to ask, with the token to show it; None where the API server is asked.

        Raises: ConfigurationError.
        """
        if self.server.url:
            return msgspec.structs.replace(self.server, token=asyncio.run(self.token()))
        return (
            None
            if self.cluster.known
            else msgspec.structs.replace(self.server, url=LOCAL, remedy=_NO_CLUSTER)
        )

    async def token(self) -> str:
        """The one given, else the kubeconfig's where the server is verified; "" for none.

        Raises: ConfigurationError.
        """
        if self.server.token or self.server.insecure or not self.cluster.known:
            return self.server.token
        return await self.cluster.token()


def asks_a_scheduler(command: F) -> F:
    """The options that name a cluster or a secure port, and who asks; they come as one argument, `access`."""

    @wraps(command)
    def asked(*, server: Server, cluster: KubeconfigCluster, **others: Any) -> Any:
        return command(access=ServerAccess(server, cluster), **others)

    return cast("F", asks_a_server(asks_a_cluster(asked)))
