"""The program around a plugin: flags, environment, exit code."""

import argparse
import logging
import os
import sys
from pathlib import Path

import grpc

from berth_sdk.errors import AddressError, SdkError
from berth_sdk.log_lines import LogFormatter
from berth_sdk.plugin import Plugin
from berth_sdk.serving import serve

LEVELS = ("debug", "info", "warn", "warning", "error")


def flags(program: str, description: str | None = None) -> argparse.ArgumentParser:
    """Return a parser of the flags that every plugin has, to add a plugin's own to."""
    parser = argparse.ArgumentParser(prog=program, description=description)
    parser.set_defaults(program=program)
    add = parser.add_argument
    add(
        "--address",
        default=os.environ.get("BERTH_PLUGIN_ADDRESS"),
        help="unix:/path/to/socket, or host:port with certificates; BERTH_PLUGIN_ADDRESS if not given",
    )
    add(
        "--metrics-address",
        default=os.environ.get("BERTH_METRICS_ADDRESS"),
        help="host:port for GET /metrics and /state; BERTH_METRICS_ADDRESS if not given",
    )
    add("--tls-certificate", type=Path, help="the plugin's certificate, for host:port")
    add("--tls-key", type=Path, help="its key")
    add("--tls-authority", type=Path, help="who signs the scheduler's certificate")
    add("--grace", type=float, default=5.0, help="seconds that running calls may take to end (default: 5)")
    add("--log-level", choices=LEVELS, default="info", help="default: %(default)s")
    return parser


def main(plugin: Plugin, options: argparse.Namespace | None = None) -> int:
    """Serve the plugin until SIGTERM or SIGINT; the exit code, 2 if it can't be served.

    Args:
        plugin: What to serve.
        options: What a parser made by `flags` read; the program's own flags if not given.
    """
    given = flags(plugin.name).parse_args() if options is None else options
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LogFormatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
    logging.basicConfig(level=given.log_level.upper(), handlers=[handler])
    try:
        serve(
            plugin,
            given.address,
            credentials=_certificates(given),
            grace_seconds=given.grace,
            metrics_address=given.metrics_address,
        )
    except SdkError as error:
        sys.stderr.write(f"{given.program}: {error}\n")
        return 2
    return 0


def _certificates(given: argparse.Namespace) -> grpc.ServerCredentials | None:
    """Return mutual TLS of three files, None where none is named.

    Raises: AddressError: one is missing, or can't be read.
    """
    files = (given.tls_key, given.tls_certificate, given.tls_authority)
    if not any(files):
        return None
    if not all(files):
        raise AddressError("tls-certificate, tls-key and tls-authority go together")
    try:
        key, certificate, authority = (path.read_bytes() for path in files)
    except OSError as error:
        raise AddressError(f"{error.filename}: {error.strerror}") from error
    return grpc.ssl_server_credentials([(key, certificate)], authority, require_client_auth=True)
