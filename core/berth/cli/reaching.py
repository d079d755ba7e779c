"""How a command that explains pods reaches a scheduler: through the API server, or at its secure port.

--server, $BERTH_SERVER ──► that secure port, with --token or the kubeconfig's bearer token
a kubeconfig            ──► the API server, as any request of its user
neither                 ──► the secure port of this machine's scheduler
"""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from berth.aggregated_api.kinds import Kind
from berth.cli.asking import LOCAL, Server, asks_a_server
from berth.cli.failing import fail

if TYPE_CHECKING:
    from berth.client.api import Api
    from berth.client.endpoint import Endpoint

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")

TIMEOUT_SECONDS = 60.0
COMPLETION_SECONDS = 3.0
MAX_NAMES = 500
_KUBECTLS_OWN = "~/.kube/config"
_FORBIDDEN, _NOT_FOUND = 403, 404
_NOT_INSTALLED = (
    "this cluster's API server serves no explanations: no scheduler is ready, or an administrator switched "
    "them off; kubectl get apiservice v1alpha1.explain.berth.dev shows it. Or ask the scheduler itself: "
    "kubectl port-forward -n berth-system service/berth-main 10259, and "
    f"--server {LOCAL} (docs/explain-access.md)"
)
_MAY_NOT_IN_NAMESPACE = "; who may view a namespace may: bind ClusterRole view or berth-viewer there"
_MAY_NOT = "; it shows pods of all namespaces: bind ClusterRole berth-cluster-viewer by a ClusterRoleBinding"


@dataclass(frozen=True, slots=True)
class Cluster:
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
        return bool(self.files or os.environ.get("KUBERNETES_SERVICE_HOST"))

    def namespace(self) -> str:
        """The context's namespace. Raises: ConfigurationError."""
        # Imported here so that the other verbs start quickly.
        from berth.client.kubeconfig import choose  # noqa: PLC0415 (see above)

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
        from berth.client.credentials import load_endpoint  # noqa: PLC0415 (quick start of the other verbs)

        return load_endpoint(kubeconfig=self.files, context=self.context)


@dataclass(frozen=True, slots=True)
class Explanations:
    """Where explanations come from; every method ends the program with one line where that fails."""

    server: Server
    cluster: Cluster

    def of(self, kind: Kind, name: str, namespace: str = "", **query: Any) -> Any:
        """The document about an object; without a namespace it is in that of the kubeconfig's context."""
        from berth.client.errors import ClientError  # noqa: PLC0415 (quick start of the other verbs)

        try:
            path = kind.path(self._namespace(namespace) if kind.namespaced else "", name)
            if not (self.server.url or self.cluster.known):
                return replace(self.server, url=LOCAL).ask(path, **query)
            if self.server.url:
                return self._with_token().ask(path, **query)
            return asyncio.run(self._through_api_server(kind, path, query))
        except ClientError as error:
            fail(str(error))

    def _namespace(self, named: str) -> str:
        if named or not (self.server.url or self.cluster.known):
            return named or "default"
        return self.cluster.namespace()

    def _with_token(self) -> Server:
        """The server, with the token to show it."""
        return replace(self.server, token=asyncio.run(self.token()))

    async def token(self) -> str:
        """The one given, else the kubeconfig's where the server is verified; "" for none.

        Raises: ConfigurationError.
        """
        if self.server.token or self.server.insecure or not self.cluster.known:
            return self.server.token
        return await self.cluster.token()

    async def _through_api_server(self, kind: Kind, path: str, query: dict[str, Any]) -> Any:
        from berth.client.errors import AnsweredError  # noqa: PLC0415 (quick start of the other verbs)

        try:
            return json.loads(await self.cluster.ask(lambda api: api.call("GET", path, query=dict(query))))
        except AnsweredError as error:
            if error.status == _NOT_FOUND and kind.resource not in error.message:
                fail(_NOT_INSTALLED)
            may_not = _MAY_NOT_IN_NAMESPACE if kind.namespaced else _MAY_NOT
            fail(f"{error.message}{may_not if error.status == _FORBIDDEN else ''}")


def asks_for_explanations(command: F) -> F:
    """The options that say which cluster or scheduler is asked, and as whom.

    The command gets them as one argument, `explanations`.
    """

    @wraps(command)
    def asked(*, server: Server, kubeconfig: str, context: str, **others: Any) -> Any:
        return command(explanations=Explanations(server, Cluster(kubeconfig, context)), **others)

    for option in (
        click.option("--context", default="", help="The kubeconfig's context, if not the current one."),
        click.option(
            "--kubeconfig", default="", help="How to reach the API server; $KUBECONFIG or kubectl's own."
        ),
    ):
        option(asked)
    return cast("F", asks_a_server(asked, default=""))


def complete_namespace(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """The cluster's namespaces that begin so."""
    return _names(ctx, "/api/v1/namespaces", incomplete)


def complete_pod(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """The namespace's pods that begin so."""
    return _names_in_namespace(ctx, "/api/v1", "pods", incomplete)


def complete_pod_group(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """The namespace's PodGroups that begin so."""
    return _names_in_namespace(ctx, "/apis/scheduling.k8s.io/v1alpha2", "podgroups", incomplete)


def complete_node(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """The nodes that begin so."""
    return _names(ctx, "/api/v1/nodes", incomplete)


def _names_in_namespace(ctx: click.Context, root: str, resource: str, incomplete: str) -> list[str]:
    from berth.client.errors import ClientError  # noqa: PLC0415 (quick start of the other verbs)

    try:
        namespace = ctx.params.get("namespace") or _cluster(ctx).namespace()
    except ClientError:
        return []
    return _names(ctx, f"{root}/namespaces/{namespace}/{resource}", incomplete)


def _cluster(ctx: click.Context) -> Cluster:
    return Cluster(ctx.params.get("kubeconfig") or "", ctx.params.get("context") or "")


def _names(ctx: click.Context, path: str, incomplete: str) -> list[str]:
    """Names of objects; none where the cluster can't be asked, since a shell has no place for an error."""
    from berth.client.errors import ClientError  # noqa: PLC0415 (quick start of the other verbs)

    async def listed(api: "Api") -> bytes:
        return await api.call("GET", path, query={"limit": MAX_NAMES}, timeout_seconds=COMPLETION_SECONDS)

    try:
        found = json.loads(asyncio.run(_cluster(ctx).ask(listed, COMPLETION_SECONDS)))
    except (ClientError, ValueError):
        return []
    names = (one["metadata"]["name"] for one in found.get("items") or ())
    return [name for name in names if name.startswith(incomplete)]
