"""Which kube-scheduler is followed: that of the API server's release, which is asked before all else.

--release ───────────────────────────┐
GET /version, until it is answered ──┴─► release ─► gates, configuration, rules
"""

import asyncio
import logging
from contextlib import suppress
from http import HTTPStatus
from typing import Any, Protocol

import msgspec

from berth.client.authentication.credentials import load_endpoint
from berth.client.errors import ClientError
from berth.client.transport import Transport
from berth.config.command_line import StartSettings, ValidatedFlags, read_settings
from berth.config.releases.release import DEFAULT, PREVIEWS, Release, followed, shown
from berth.config.releases.tried import untried

log = logging.getLogger(__name__)

ANSWER_SECONDS = 5.0
PAUSE_SECONDS = 1.0


class VersionReader(Protocol):
    """The part of the transport that is used here."""

    async def request(self, method: str, path: str, *, timeout_seconds: float | None = None) -> Any:
        """Send a request; gives the response, whatever its status."""


class _Version(msgspec.Struct, rename="camel"):
    git_version: str = ""


async def settings_for_server(
    options: ValidatedFlags, settings: StartSettings, stop: asyncio.Event
) -> tuple[ValidatedFlags, StartSettings]:
    """Give the options and settings of the release that --release names, else of the API server's.

    Waits for the API server until it answers or `stop` is set; the log says what keeps it.

    Raises:
        ConfigurationError: the API server can't be addressed.
        ConfigError: flags or files are wrong in that release.
    """
    release = options.release
    if release is None:
        kubeconfig = settings.loaded.configuration.client_connection.kubeconfig
        endpoint = await asyncio.to_thread(load_endpoint, kubeconfig=kubeconfig, master=options.master)
        transport = Transport(endpoint, max_connections=1)
        try:
            release = _release_beside(await server_version(transport, stop))
        finally:
            await transport.aclose()
    if release != options.gates.version.binary:
        options = options.at(release)
        settings = read_settings(options)
    _say(options)
    return options, settings


async def server_version(transport: VersionReader, stop: asyncio.Event) -> str:
    """Give the API server's version such as v1.37.0; "" where it does not say, or `stop` is set first."""
    failed = ""
    while not stop.is_set():
        try:
            response = await transport.request("GET", "/version", timeout_seconds=ANSWER_SECONDS)
        except ClientError as error:
            if str(error) != failed:
                failed = str(error)
                log.warning("waiting for the API server, whose version is to be known first err=%s", failed)
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), PAUSE_SECONDS)
        else:
            return _git_version(bytes(response.body)) if response.status == HTTPStatus.OK else ""
    return ""


def _git_version(body: bytes) -> str:
    try:
        return msgspec.json.decode(body, type=_Version).git_version
    except msgspec.DecodeError:
        return ""


def _release_beside(version: str) -> Release:
    release = followed(version)
    if release is None:
        log.warning(
            "API server does not say its version, another release is named by --release release=%s",
            shown(DEFAULT),
        )
        return DEFAULT
    log.info("found API server version=%s", version)
    remark = untried(version)
    if remark is not None:
        log.warning("API server is not tested version=%s remark=%s", version, remark.text)
    return release


def _say(options: ValidatedFlags) -> None:
    version = options.gates.version
    log.info(
        "decides as kube-scheduler release=%s emulated=%s preview=%s",
        shown(version.binary),
        shown(version.emulated),
        version.binary in PREVIEWS,
    )
