"""`berth operator`: keep the schedulers that Scheduler resources describe."""

import asyncio
import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import click

from berth.cli.failing import fail

if TYPE_CHECKING:
    from berth.operator.process import OperatorSettings

_NAMESPACE_FILE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
LEASE = "berth-operator"
_EVERYWHERE = "0.0.0.0"  # noqa: S104 (in a pod, its own address)


@click.command()
@click.option(
    "--kubeconfig", default="", help="How to reach the API server; the pod's service account if not given."
)
@click.option(
    "--scheduler-image",
    envvar="BERTH_SCHEDULER_IMAGE",
    required=True,
    help="The image of schedulers whose resource names none.",
)
@click.option(
    "--scheduler-role",
    envvar="BERTH_SCHEDULER_ROLE",
    default="berth-scheduler",
    show_default=True,
    help="The ClusterRole of all schedulers.",
)
@click.option(
    "--scheduler-affinity-role",
    "affinity_role",
    envvar="BERTH_SCHEDULER_AFFINITY_ROLE",
    default="berth-scheduler-affinity",
    show_default=True,
    help="The ClusterRole of the group affinity; those of other groups are called like it.",
)
@click.option(
    "--scheduler-priority-class",
    "priority_class",
    envvar="BERTH_SCHEDULER_PRIORITY_CLASS",
    default="berth-critical",
    show_default=True,
    help="The PriorityClass of schedulers whose resource names none.",
)
@click.option(
    "--descheduler-image",
    envvar="BERTH_DESCHEDULER_IMAGE",
    default="",
    help="The image of deschedulers whose resource names none.",
)
@click.option(
    "--explain-service",
    envvar="BERTH_EXPLAIN_SERVICE",
    default="",
    help="The Service of the APIService v1alpha1.explain.berth.dev, whose caBundle is kept.",
)
@click.option(
    "--namespaces",
    envvar="BERTH_NAMESPACES",
    default="",
    help="Whose Schedulers to keep, with commas between them; * for all, its own namespace if not given.",
)
@click.option(
    "--leader-elect/--no-leader-elect", default=True, show_default=True, help="Take turns by a lease."
)
@click.option(
    "--leader-elect-resource-namespace", "namespace", default="", help="Its own namespace if not given."
)
@click.option(
    "--leader-elect-lease-duration", "lease_seconds", default=15.0, show_default=True, help="Seconds."
)
@click.option(
    "--leader-elect-renew-deadline", "renew_seconds", default=10.0, show_default=True, help="Seconds."
)
@click.option("--leader-elect-retry-period", "retry_seconds", default=2.0, show_default=True, help="Seconds.")
@click.option(
    "--bind-address", default=_EVERYWHERE, show_default=True, help="Where to serve health and metrics."
)
@click.option(
    "--secure-port", default=8443, show_default=True, help="Port of health and metrics; 0 serves nothing."
)
@click.option("--logging-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("-v", "verbosity", default=0, show_default=True, help="How much to log.")
def operator(
    *,
    kubeconfig: str,
    scheduler_image: str,
    scheduler_role: str,
    affinity_role: str,
    priority_class: str,
    descheduler_image: str,
    explain_service: str,
    namespaces: str,
    leader_elect: bool,
    namespace: str,
    lease_seconds: float,
    renew_seconds: float,
    retry_seconds: float,
    bind_address: str,
    secure_port: int,
    logging_format: str,
    verbosity: int,
) -> None:
    """Keep the schedulers that Scheduler resources describe, until SIGTERM."""
    # Imported here so that the other verbs start quickly.
    from berth.client.errors import FatalError  # noqa: PLC0415 (see above)
    from berth.client.leases import LeaseSettings  # noqa: PLC0415 (see above)
    from berth.operator.process import OperatorSettings  # noqa: PLC0415 (see above)
    from berth.operator.rendering import SchedulerDefaults  # noqa: PLC0415 (see above)
    from berth.scheduler.loop.event_loop import run  # noqa: PLC0415 (see above)
    from berth.serving.errors import StartError  # noqa: PLC0415 (see above)
    from berth.telemetry.logs import configure_logs  # noqa: PLC0415 (see above)

    configure_logs(verbosity=verbosity, log_format=logging_format)
    try:
        lease: LeaseSettings | None = None
        if leader_elect:
            where = namespace or _own_namespace()
            lease = LeaseSettings(where, LEASE, lease_seconds, renew_seconds, retry_seconds)
        settings = OperatorSettings(
            SchedulerDefaults(
                scheduler_image,
                role=scheduler_role,
                affinity_role=affinity_role,
                priority_class=priority_class,
                descheduler_image=descheduler_image,
                explain_service=explain_service,
            ),
            kubeconfig,
            lease,
            bind_address,
            secure_port,
            _own_namespace(),
            kept_namespaces(namespaces),
        )
        run(_until_signalled(settings))
    except (FatalError, StartError) as error:
        fail(error)


def kept_namespaces(given: str) -> tuple[str, ...]:
    """Give the namespaces to keep Schedulers in; none means all."""
    if given.strip() == "*":
        return ()
    return tuple(dict.fromkeys(one.strip() for one in given.split(",") if one.strip())) or (_own_namespace(),)


def _own_namespace() -> str:
    root = os.environ.get("CONTAINER_SANDBOX_MOUNT_POINT", "").rstrip("/")
    file = Path(f"{root}{_NAMESPACE_FILE}")
    return file.read_text(encoding="utf-8").strip() if file.exists() else "berth-system"


async def _until_signalled(settings: "OperatorSettings") -> None:
    from berth.operator.process import run  # noqa: PLC0415 (quick start of the other verbs)

    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await run(settings, stop)
