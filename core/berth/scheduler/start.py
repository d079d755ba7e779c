"""From a command line to a running scheduler process.

options -> files read -> configuration and plugins -> telemetry -> process
"""

import asyncio
import signal
from collections.abc import Iterable

from berth.config.command_line import Options, Settings
from berth.config.sidecars import SidecarSpec, is_unix, socket_path
from berth.out_of_tree.socket_access import missing_folder
from berth.scheduler.errors import StartError
from berth.scheduler.process import ProcessSettings, Serving, run
from berth.telemetry.logs import configure_logs
from berth.telemetry.tracing import Tracing


async def start(options: Options, settings: Settings) -> None:
    """Run a scheduler until SIGTERM or SIGINT.

    Raises: ConfigurationError, BuildError, EventRegistrationError, StartError before anything runs.
    """
    _check_socket_folders(settings.sidecars)
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    configure_logs(verbosity=options.verbosity, log_format=str(options.value("logging-format")))
    tracing = Tracing.from_environment()
    process = ProcessSettings(
        settings.loaded,
        master=options.master,
        sidecars=settings.sidecars,
        max_in_unschedulable_seconds=options.pod_max_in_unschedulable_pods.seconds,
        tracing=tracing,
        serving=Serving(
            options.bind_address,
            options.secure_port,
            str(options.value("tls-cert-file")),
            str(options.value("tls-private-key-file")),
            tuple(options.value("authorization-always-allow-paths")),
        ),
    )
    try:
        await run(process, stop)
    finally:
        tracing.close()


def _check_socket_folders(sidecars: Iterable[SidecarSpec]) -> None:
    for spec in sidecars:
        folder = missing_folder(socket_path(spec.address)) if is_unix(spec.address) else ""
        if folder:
            raise StartError(f"plugin {spec.name}: {spec.address}: no folder {folder}: make it, or mount it")
