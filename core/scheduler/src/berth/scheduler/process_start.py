"""A scheduler's process of the settings that its API server's release makes of flags and files.

Called by: start, which imports this, and with it all that schedules, once the API server has answered.
"""

import asyncio
import logging
from socket import socket

from berth.config.command_line import StartSettings, ValidatedFlags
from berth.scheduler.process import run
from berth.scheduler.process_options import ProcessOptions, Serving
from berth.telemetry.traces.tracing import Tracing

log = logging.getLogger(__name__)


async def run_process(
    options: ValidatedFlags,
    settings: StartSettings,
    listener: socket | None,
    stop: asyncio.Event,
    dump: asyncio.Event,
) -> None:
    """Schedule, and show it, until `stop` is set; each time `dump` is set, the log shows the cache.

    Raises: what `process.run` raises; SettingError, TraceFileError.
    """
    for warning in options.gate_warnings:
        log.warning("gate without its effect note=%s", warning)
    tracing = Tracing.from_environment()
    process = ProcessOptions(
        settings.loaded,
        shards=settings.shards,
        master=options.master,
        sidecars=settings.sidecars,
        plugins_file=options.plugins_file,
        directory=settings.directory,
        max_in_unschedulable_seconds=options.pod_max_in_unschedulable_pods.seconds,
        record_to=options.record_to,
        record_most_bytes=options.record_most_bytes,
        request_seconds=options.request_timeout.seconds,
        flags=options.values,
        live_page=bool(options.value("live-page")),
        serving=Serving(
            options.bind_address,
            options.secure_port,
            str(options.value("tls-cert-file")),
            str(options.value("tls-private-key-file")),
            tuple(options.value("authorization-always-allow-paths")),
            trusts_front_proxies=not options.value("authentication-skip-lookup"),
            listener=listener,
        ),
    )
    try:
        await run(process, stop, dump, tracing=tracing)
    finally:
        tracing.close()
