"""From a command line to a running scheduler process.

options -> files read -> configuration and plugins -> telemetry -> process
"""

import asyncio
import signal
from pathlib import Path

from berth.config.command_line import Options, load_with_flags
from berth.config.loading import Loaded
from berth.config.plugin_list import parse_plugin_list, plugins_beside
from berth.config.sidecars import SidecarSpec, catalogue_of
from berth.scheduler.errors import StartError
from berth.scheduler.process import ProcessSettings, Serving, run
from berth.telemetry.logs import configure_logs
from berth.telemetry.tracing import Tracing


async def start(options: Options, loaded: Loaded, sidecars: tuple[SidecarSpec, ...]) -> None:
    """Run a scheduler until SIGTERM or SIGINT.

    Raises: ConfigurationError, BuildError, EventRegistrationError before anything runs.
    """
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    configure_logs(verbosity=options.verbosity, log_format=str(options.value("logging-format")))
    tracing = Tracing.from_environment()
    settings = ProcessSettings(
        loaded,
        master=options.master,
        sidecars=sidecars,
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
        await run(settings, stop)
    finally:
        tracing.close()


def load_files(options: Options) -> tuple[Loaded, tuple[SidecarSpec, ...]]:
    """The configuration and the out-of-tree plugins that the command line names.

    Raises: ConfigError, StartError.
    """
    source = _read(options.config_file) if options.config_file else None
    sidecars: tuple[SidecarSpec, ...] = ()
    if options.plugins_file:
        sidecars = parse_plugin_list(_read(options.plugins_file), options.plugins_file)
    elif source is not None:
        sidecars = plugins_beside(source, options.config_file)
    return load_with_flags(options, source, out_of_tree=catalogue_of(sidecars)), sidecars


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise StartError(f"open {path}: {reason}: name a file that can be read") from error
