"""From a command line to a running scheduler process.

options -> files read -> the API server's release -> process_start -> process
"""

import asyncio
import logging
import os
import signal
from collections.abc import Iterable
from contextlib import nullcontext
from socket import socket

from berth.config.command_line import StartSettings, ValidatedFlags
from berth.config.out_of_tree.sidecars import SidecarSpec, is_unix, socket_path
from berth.out_of_tree.transport.socket_access import missing_folder
from berth.scheduler.errors import FinishedError
from berth.scheduler.server_release import settings_for_server
from berth.serving.errors import StartError
from berth.serving.listening import listen
from berth.telemetry.logs import configure_logs

log = logging.getLogger(__name__)


async def start(options: ValidatedFlags, settings: StartSettings) -> None:
    """Run a scheduler until SIGTERM or SIGINT; a second of them ends the process at once.

    It decides as kube-scheduler of the release that `server_release` finds.

    Raises: ConfigurationError, ConfigError, EventRegistrationError, StartError before anything runs;
        FinishedError at the end of a process that took no part in an election.
    """
    _check_socket_folders(settings.sidecars)
    stop, dump = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _end, stop)
    loop.add_signal_handler(signal.SIGUSR2, dump.set)
    configure_logs(verbosity=options.verbosity, log_format=str(options.value("logging-format")))
    # Before the wait for the API server: a port in use is said at once, and probes are not refused.
    with listen(options.bind_address, options.secure_port) or nullcontext() as listener:
        await _run_for_server(options, settings, listener, stop, dump)


async def _run_for_server(
    options: ValidatedFlags,
    settings: StartSettings,
    listener: socket | None,
    stop: asyncio.Event,
    dump: asyncio.Event,
) -> None:
    options, settings = await settings_for_server(options, settings, stop)
    # Not beside the question: a thread that imports keeps the loop from it for longer than an answer takes.
    from berth.scheduler.process_start import run_process  # noqa: PLC0415 (half of a start, after the question)

    await run_process(options, settings, listener, stop, dump)
    if not settings.loaded.configuration.leader_election.leader_elect:
        raise FinishedError("finished without leader elect")
    log.info("Requested to terminate, exiting")


def _end(stop: asyncio.Event) -> None:
    if stop.is_set():
        os._exit(1)
    stop.set()


def _check_socket_folders(sidecars: Iterable[SidecarSpec]) -> None:
    for spec in sidecars:
        folder = missing_folder(socket_path(spec.address)) if is_unix(spec.address) else ""
        if folder:
            raise StartError(f"plugin {spec.name}: {spec.address}: no folder {folder}: make it, or mount it")
