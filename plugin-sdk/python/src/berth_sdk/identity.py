"""IdentityService: who the plugin is, and which profiles use it with which arguments."""

import logging
from typing import Any

import msgspec

from berth_plugin_proto import identity_pb2 as pb
from berth_sdk.arguments import read
from berth_sdk.capabilities import capabilities
from berth_sdk.errors import ArgumentError
from berth_sdk.plugin import Plugin, keep_arguments, put_in_shadow
from berth_sdk.session import Session

PROTOCOL_VERSION = 1

log = logging.getLogger(__name__)


async def handshake(session: Session, request: pb.HandshakeRequest) -> pb.HandshakeResponse:
    """Introduce the plugin."""
    versions = list(request.supported_versions)
    log.info("handshake host=%s version=%s protocol=%s", request.host_name, request.host_version, versions)
    announced = capabilities(session.plugin)
    if session.ttrpc_socket is not None:
        announced.ttrpc_socket = session.ttrpc_socket
    return pb.HandshakeResponse(
        name=session.plugin.name,
        version=session.plugin.version,
        supported_versions=[PROTOCOL_VERSION],
        capabilities=announced,
    )


async def configure(session: Session, request: pb.ConfigureRequest) -> pb.ConfigureResponse:
    """Hand a profile's arguments to the plugin; every error goes back."""
    if request.removed:
        return await _removed(session, request.profile)
    errors = _refusals(request)
    if not errors:
        errors = _configured(session, request)
    for error in errors:
        log.error("configure profile=%s err=%s", request.profile, error)
    session.announce()
    return pb.ConfigureResponse(errors=errors)


async def _removed(session: Session, profile: str) -> pb.ConfigureResponse:
    if profile in session.profiles:
        session.profiles.discard(profile)
        log.info("removed profile=%s", profile)
        session.plugin.profile_removed(profile)
        keep_arguments(session.plugin, profile, None)
        put_in_shadow(session.plugin, profile, on=False)
        session.announce()
    return pb.ConfigureResponse()


def _refusals(request: pb.ConfigureRequest) -> list[str]:
    errors = list(request.handshake_errors)
    if request.protocol_version != PROTOCOL_VERSION:
        errors.append(
            f"protocol_version: {request.protocol_version} is not spoken here, {PROTOCOL_VERSION} is"
        )
    return errors


def _configured(session: Session, request: pb.ConfigureRequest) -> list[str]:
    plugin, profile = session.plugin, request.profile
    before = plugin.in_shadow(profile)
    put_in_shadow(plugin, profile, on=request.shadow)
    errors = _taken(plugin, request)
    if errors:
        put_in_shadow(plugin, profile, on=before)
    else:
        session.profiles.add(profile)
    return errors


def _taken(plugin: Plugin, request: pb.ConfigureRequest) -> list[str]:
    try:
        given = _arguments(request)
        settings = given if plugin.arguments is None else read(plugin.arguments, given)
        plugin.configure(settings, request.profile)
        if plugin.arguments is not None:
            keep_arguments(plugin, request.profile, settings)
    except ArgumentError as error:
        return list(error.errors)
    except Exception as error:
        log.exception("configure profile=%s", request.profile)
        return [f"{type(error).__name__}: {error}"]
    return []


def _arguments(request: pb.ConfigureRequest) -> dict[str, Any]:
    try:
        return msgspec.json.decode(request.arguments or b"{}", type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise ArgumentError(f"arguments: {error}") from error
