"""From a command line to a running scheduler process.

options -> files read -> configuration and plugins -> telemetry -> process
"""

import asyncio
import signal

from berth.config.command_line import Options, Settings
from berth.scheduler.process import ProcessSettings, Serving, run
from berth.telemetry.logs import configure_logs
from berth.telemetry.tracing import Tracing


async def start(options: Options, settings: Settings) -> None:
    """Run a scheduler until SIGTERM or SIGINT.

    Raises: ConfigurationError, BuildError, EventRegistrationError before anything runs.
    """
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
