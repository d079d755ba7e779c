"""The handshake with a plugin, and its configuration by profile.

Source: docs/protocol.md "Order of calls".
"""

from collections.abc import Iterable
from itertools import islice
from typing import Any, TypeVar

import msgspec

from berth.config.out_of_tree.sidecars import SidecarSpec, is_unix
from berth.out_of_tree.errors import ProtocolError
from berth.out_of_tree.handshake_validation import problems_of
from berth.out_of_tree.limits import NAME_BYTES, REFUSALS
from berth.out_of_tree.plugin_text import bounded
from berth.version import version
from berth_plugin_proto import identity_pb2, identity_pb2_grpc

PROTOCOL_VERSION = 1
M = TypeVar("M")


def readable(plugin: str, answer: M | None) -> M:
    """The message; gRPC returns None for one that can't be decoded.

    Raises: ProtocolError.
    """
    if answer is None:
        raise ProtocolError(plugin, "sent a message that can't be read")
    return answer


async def handshake(
    identity: "identity_pb2_grpc.IdentityServiceAsyncStub", spec: SidecarSpec
) -> tuple[identity_pb2.HandshakeResponse, list[str]]:
    """The plugin's description of itself, and all problems of it."""
    request = identity_pb2.HandshakeRequest(
        host_name="berth", host_version=version(), supported_versions=[PROTOCOL_VERSION]
    )
    answer = readable(spec.name, await identity.Handshake(request))
    return answer, _problems(spec, answer)


async def configure(
    identity: "identity_pb2_grpc.IdentityServiceAsyncStub",
    spec: SidecarSpec,
    profile: str,
    arguments: Any,
    problems: list[str],
) -> list[str]:
    """Configure one profile; returns the problems that the plugin found beyond those in the request."""
    response = readable(
        spec.name, await identity.Configure(configuration(spec, profile, arguments, problems))
    )
    count = len(response.errors)
    more = [f"{count - REFUSALS} further errors"] if count > REFUSALS else []
    errors = [bounded(error) for error in response.errors[:REFUSALS]]
    return [f"profile {profile}: {error}" for error in (*errors, *more) if error not in problems]


def configuration(
    spec: SidecarSpec, profile: str, arguments: Any, problems: Iterable[str] = ()
) -> identity_pb2.ConfigureRequest:
    """The request that configures one profile, with the problems that were found before."""
    return identity_pb2.ConfigureRequest(
        protocol_version=PROTOCOL_VERSION,
        handshake_errors=problems,
        profile=profile,
        arguments=None if arguments is None else msgspec.json.encode(arguments),
        shadow=spec.shadow,
    )


async def release(
    identity: "identity_pb2_grpc.IdentityServiceAsyncStub", spec: SidecarSpec, profile: str
) -> None:
    """Tell the plugin that a profile no longer uses it."""
    request = identity_pb2.ConfigureRequest(protocol_version=PROTOCOL_VERSION, profile=profile, removed=True)
    readable(spec.name, await identity.Configure(request))


def _problems(spec: SidecarSpec, answer: identity_pb2.HandshakeResponse) -> list[str]:
    if too_much := list(islice(problems_of(answer), REFUSALS)):
        return [bounded(problem) for problem in too_much]
    problems = []
    if answer.name != spec.name:
        name = bounded(answer.name, NAME_BYTES)
        problems.append(f"the plugin calls itself {name!r}, the list calls it {spec.name!r}")
    if PROTOCOL_VERSION not in answer.supported_versions:
        spoken = bounded(", ".join(map(str, answer.supported_versions[:REFUSALS])) or "none")
        problems.append(f"it speaks protocol versions {spoken}, this scheduler speaks {PROTOCOL_VERSION}")
    capabilities = answer.capabilities
    if not capabilities.extension_points:
        problems.append("it announces no extension points")
    overlays, filters = identity_pb2.EXTENSION_POINT_FILTER_OVERLAYS, identity_pb2.EXTENSION_POINT_FILTER
    if overlays in capabilities.extension_points and filters not in capabilities.extension_points:
        problems.append("it announces FilterOverlays without Filter")
    if capabilities.HasField("ttrpc_socket") and not is_unix(spec.address):
        problems.append("it announces a ttrpc socket, and is reached over TCP")
    points = [wish.extension_point for wish in capabilities.wanted_deadlines]
    if len(points) != len(set(points)):
        problems.append("it wants two deadlines at one extension point")
    return problems
