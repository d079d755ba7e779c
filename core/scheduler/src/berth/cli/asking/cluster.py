"""Which cluster a verb asks, as kubectl finds it, and the one line that ends a verb that cannot ask it.

--kubeconfig, $KUBECONFIG, ~/.kube/config ──► --context, or the current one ──► the API server
none of these, in a pod                   ──► the pod's service account
"""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click
import msgspec

from berth.cli.failing import fail

if TYPE_CHECKING:
    from berth.client.api import Api
    from berth.client.endpoint import Endpoint

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

TIMEOUT_SECONDS = 60.0
_KUBECTLS_OWN = "~/.kube/config"
_IN_A_POD = ("KUBERNETES_SERVICE_HOST", "KUBERNETES_MASTER")


class KubeconfigCluster(msgspec.Struct, frozen=True):
    """The kubeconfig of a user, and a context of it; that of kubectl where none is named."""

    kubeconfig: str = ""
    context: str = ""

    @property
    def files(self) -> str:
        """The kubeconfig's path, or several as in $KUBECONFIG; "" where there is none."""
        own = Path(_KUBECTLS_OWN).expanduser()
        return self.kubeconfig or os.environ.get("KUBECONFIG", "") or (str(own) if own.exists() else "")

    @property
    def known(self) -> bool:
        """Whether there is a cluster to ask, by a kubeconfig or around this process."""
        return bool(self.files or any(os.environ.get(name) for name in _IN_A_POD))

    @property
    def described(self) -> str:
        """Where it was found, for errors. Raises: ConfigurationError."""
        from berth.client.authentication.kubeconfig import choose  # noqa: PLC0415 (quick start of the other verbs)

        if not self.files:
            return "this pod's cluster"
        return f"context {choose(self.files, self.context).context.name} of {self.files}"

    def namespace(self) -> str:
        """The context's namespace. Raises: ConfigurationError."""
        # Imported here so that the other verbs start quickly.
        from berth.client.authentication.kubeconfig import choose  # noqa: PLC0415 (see above)

        found = choose(self.files, self.context).context.value.get("namespace") if self.files else ""
        return str(found or "default")

    async def ask(self, work: Callable[["Api"], Awaitable[T]], seconds: float = TIMEOUT_SECONDS) -> T:
        """What comes of some requests to the API server. Raises: ClientError."""
        # Imported here so that the other verbs start quickly.
        from berth.client.api import Api  # noqa: PLC0415 (see above)
        from berth.client.transport import Transport  # noqa: PLC0415 (see above)

        endpoint = await asyncio.to_thread(self.endpoint)
        transport = Transport(endpoint, max_connections=1, request_seconds=seconds)
        try:
            return await work(Api(transport))
        finally:
            await transport.aclose()

    async def token(self) -> str:
        """The user's bearer token; "" where it has none. Raises: ConfigurationError."""
        authorization = (await asyncio.to_thread(self.endpoint)).authorization
        header = authorization.current()
        scheme, _, token = (await authorization.refresh() if header is None else header).partition(" ")
        return token if scheme == "Bearer" else ""

    def endpoint(self) -> "Endpoint":
        """The API server and the user's credentials; a program may be run for these.

        Raises: ConfigurationError.
        """
        from berth.client.authentication.credentials import load_endpoint  # noqa: PLC0415 (quick start of the other verbs)
        from berth.client.errors import ConfigurationError  # noqa: PLC0415 (quick start)

        if not self.known:
            problem = "no cluster is known: there is no --kubeconfig, $KUBECONFIG or ~/.kube/config"
            raise ConfigurationError("", "", problem, "name a kubeconfig with --kubeconfig")
        return load_endpoint(kubeconfig=self.files, context=self.context)

    @contextmanager
    def asked(self) -> Iterator[None]:
        """End the program with one line where a request of the block fails.

        Where none could be sent it says which cluster was asked, and how another one is named.
        """
        from berth.client.errors import ClientError, NotSentError  # noqa: PLC0415 (quick start)

        try:
            yield
        except NotSentError as error:
            fail(f"{error}: the API server of {self.described}: name another with --kubeconfig or --context")
        except ClientError as error:
            fail(error)


def asks_a_cluster(command: F) -> F:
    """The options that name a cluster and its user, as kubectl's do; they come as one argument, `cluster`."""

    @wraps(command)
    def asked(*, kubeconfig: str, context: str, **others: Any) -> Any:
        return command(cluster=KubeconfigCluster(kubeconfig, context), **others)

    for option in (
        click.option("--context", default="", help="The kubeconfig's context, if not the current one."),
        click.option(
            "--kubeconfig",
            default="",
            help="The cluster and its user; by default $KUBECONFIG or ~/.kube/config, as for kubectl.",
        ),
    ):
        option(asked)
    return cast("F", asked)
