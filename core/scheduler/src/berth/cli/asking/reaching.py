"""How a command gets an explanation, and names of what can be explained."""

import asyncio
import json
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click
import msgspec

from berth.aggregated_api.kinds import DEFAULT_PROFILE, ExplainKind
from berth.cli.asking.access import ServerAccess, asks_a_scheduler
from berth.cli.asking.cluster import KubeconfigCluster
from berth.cli.failing import fail

if TYPE_CHECKING:
    from berth.client.api import Api
    from berth.client.errors import AnsweredError

F = TypeVar("F", bound=Callable[..., Any])

COMPLETION_SECONDS = 3.0
MAX_NAMES = 500
_FORBIDDEN, _NOT_FOUND = 403, 404
_NOT_INSTALLED = (
    "this cluster's API server serves no explanations: no scheduler is ready, or an administrator switched "
    "them off; kubectl get apiservice v1alpha1.explain.berth.dev shows it. Or ask the scheduler itself: "
    "kubectl port-forward -n berth-system service/berth-main 10259, and --server https://localhost:10259 "
    "--certificate-authority with its ConfigMap berth-main-ca (docs/explain-access.md)"
)
_MAY_NOT_IN_NAMESPACE = "; who may view a namespace may: bind ClusterRole view or berth-viewer there"
_MAY_NOT = "; it shows pods of all namespaces: bind ClusterRole berth-cluster-viewer by a ClusterRoleBinding"


class Explanations(msgspec.Struct, frozen=True):
    """Where explanations come from; every method ends the program with one line where that fails."""

    access: ServerAccess

    def of(self, kind: ExplainKind, name: str, namespace: str = "", **query: Any) -> Any:
        """The document about an object; without a namespace it is in that of the kubeconfig's context."""
        from berth.client.errors import AnsweredError  # noqa: PLC0415 (quick start of the other verbs)

        with self.access.cluster.asked():
            path = kind.path(self._namespace(namespace) if kind.namespaced else "", name)
            try:
                return self._document(path, query)
            except AnsweredError as error:
                fail(_words(kind, error))

    def of_profile(self, kind: ExplainKind, name: str | None) -> Any:
        """The document about a profile; without a name it is default-scheduler, or else the only one."""
        from berth.client.errors import AnsweredError  # noqa: PLC0415 (quick start of the other verbs)

        if name is not None:
            return self.of(kind, name)
        with self.access.cluster.asked():
            try:
                return self._document(kind.path("", DEFAULT_PROFILE), {})
            except AnsweredError as error:
                if not error.causes:
                    fail(_words(kind, error))
                profiles = error.causes
        if len(profiles) > 1:
            command = click.get_current_context().command_path
            fail(f"which profile? There are {', '.join(profiles)}: name one, as in {command} {profiles[0]}")
        return self.of(kind, profiles[0])

    def _namespace(self, named: str) -> str:
        cluster = self.access.cluster
        return named or (cluster.namespace() if self.access.server.url or cluster.known else "default")

    def _document(self, path: str, query: dict[str, Any]) -> Any:
        """Raises: ClientError; it ends the program where a secure port was asked, and not for a 404."""
        port = self.access.port()
        if port is not None:
            return port.find(path, **query)

        async def got(api: "Api") -> bytes:
            return await api.call("GET", path, query=dict(query))

        return json.loads(asyncio.run(self.access.cluster.ask(got)))


def _words(kind: ExplainKind, error: "AnsweredError") -> str:
    """What was refused, and what to do."""
    if error.status == _NOT_FOUND and kind.resource not in error.message:
        return _NOT_INSTALLED
    if error.status != _FORBIDDEN:
        return error.message
    return error.message + (_MAY_NOT_IN_NAMESPACE if kind.namespaced else _MAY_NOT)


def asks_for_explanations(command: F) -> F:
    """The options that say which cluster or scheduler is asked, and as whom.

    The command gets them as one argument, `explanations`.
    """

    @wraps(command)
    def asked(*, access: ServerAccess, **others: Any) -> Any:
        return command(explanations=Explanations(access), **others)

    return cast("F", asks_a_scheduler(asked))


def complete_namespace(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """The cluster's namespaces that begin so."""
    return _names(ctx, "/api/v1/namespaces", incomplete)


def complete_pod(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """The namespace's pods that begin so."""
    return _names_in_namespace(ctx, "/api/v1", "pods", incomplete)


def complete_pod_group(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    """The namespace's PodGroups that begin so."""
    from berth.client.resources import POD_GROUPS, in_each_version  # noqa: PLC0415 - as below

    kinds = in_each_version(POD_GROUPS)
    found = (_names_in_namespace(ctx, kind.root, kind.plural, incomplete) for kind in kinds)
    return next(filter(None, found), [])


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


def _cluster(ctx: click.Context) -> KubeconfigCluster:
    return KubeconfigCluster(ctx.params.get("kubeconfig") or "", ctx.params.get("context") or "")


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
