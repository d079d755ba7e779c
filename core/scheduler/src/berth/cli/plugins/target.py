"""What `berth plugin` asks and changes: the resources of a namespace, or one scheduler's process.

-n, --scheduler, or a kubeconfig ──► SchedulerPlugins and Schedulers, which reach all replicas and last
--server, or no cluster at all   ──► the secure port of one scheduler
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar, cast

import click

from berth.cli.asking.access import ServerAccess, asks_a_scheduler
from berth.cli.asking.reaching import complete_namespace
from berth.cli.asking.secure_port import Server
from berth.cli.failing import fail
from berth.cli.plugins.resource import Keeper

F = TypeVar("F", bound=Callable[..., Any])

Target = Keeper | Server

_NAMESPACE = click.option(
    "-n",
    "--namespace",
    default="",
    help="The namespace of SchedulerPlugins and Schedulers, berth-system with install.yaml; that of the "
    "kubeconfig's context if not given.",
    shell_complete=complete_namespace,
)
NAMES_A_SCHEDULER = click.option(
    "--scheduler", default="", help="Which Scheduler of the namespace, where it is not the only one."
)
"""The option of commands whose target is a Scheduler; it stands above asks_for_plugins."""


def asks_for_plugins(command: F) -> F:
    """The options that say whose plugins are meant; they come as one argument, `target`."""

    @wraps(command)
    @click.pass_context
    def asked(
        context: click.Context, /, *, access: ServerAccess, namespace: str, scheduler: str = "", **others: Any
    ) -> Any:
        target = _target(context, access, namespace, scheduler)
        return command(target=target, **others)

    return cast("F", asks_a_scheduler(_NAMESPACE(asked)))


def one_process(access: ServerAccess, what: str) -> Server:
    """The secure port that was named; ends the program where only a cluster is known.

    `what` says what is of one process.
    """
    with access.cluster.asked():
        port = access.port()
    if port is None:
        fail(
            f"{what}: kubectl port-forward -n NAMESPACE service/berth-NAME 10259, with the Scheduler's "
            "namespace and name, and --server https://localhost:10259 (docs/explain-access.md)"
        )
    return port


def _target(context: click.Context, access: ServerAccess, namespace: str, scheduler: str) -> Target:
    if namespace or scheduler:
        source = context.get_parameter_source("server")
        if source is click.core.ParameterSource.COMMANDLINE:
            fail("--server is one scheduler's process, -n and --scheduler are resources: give one of them")
        return Keeper(access.cluster, namespace, scheduler)
    with access.cluster.asked():
        return access.port() or Keeper(access.cluster)
