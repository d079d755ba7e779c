"""Attributes of the span of a plugin's call, by OpenTelemetry's conventions.

Source: OpenTelemetry semantic conventions 1.44, RPC client spans. The names are written out, because the
package of conventions has those of RPC among the unstable ones, which it may move.
"""

import asyncio
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import grpc

from berth.config.out_of_tree.sidecars import SidecarSpec, is_unix, socket_path
from berth.out_of_tree.errors import LateError, PluginFailedError, ProtocolError
from berth.out_of_tree.transport.rpc import SERVICE_OF, RpcError
from berth_plugin_proto import identity_pb2

SERVER_ADDRESS = "server.address"
SERVER_PORT = "server.port"
ERROR_TYPE = "error.type"
RPC_SYSTEM_NAME = "rpc.system.name"
RPC_METHOD = "rpc.method"
RPC_RESPONSE_STATUS_CODE = "rpc.response.status_code"

PACKAGE = "berth.plugin.v1"

Attributes = Mapping[str, str | int]

_OK: Attributes = {RPC_RESPONSE_STATUS_CODE: grpc.StatusCode.OK.name}


class PluginEndpoint(NamedTuple):
    """The address of a plugin's calls: a socket's path or host:port, and `grpc` or `ttrpc`."""

    address: str
    system: str = "grpc"

    @classmethod
    def of(cls, spec: SidecarSpec, announced: identity_pb2.Capabilities) -> "PluginEndpoint":
        """The ttrpc socket where one is announced, else the plugin's own address."""
        address = socket_path(spec.address) if is_unix(spec.address) else spec.address
        if announced.HasField("ttrpc_socket"):
            return cls(str(Path(address).with_name(announced.ttrpc_socket)), "ttrpc")
        return cls(address)


@lru_cache(maxsize=1024)
def rpc_request(endpoint: PluginEndpoint, method: str) -> Attributes:
    """A call of a plugin; ttrpc's frames carry the calls and codes of gRPC."""
    address = endpoint.address
    return {
        RPC_SYSTEM_NAME: endpoint.system,
        RPC_METHOD: f"{PACKAGE}.{SERVICE_OF[method]}/{method}",
        **({SERVER_ADDRESS: address} if address.startswith("/") else _host_and_port(address)),
    }


def rpc_outcome(error: BaseException | None) -> Attributes:
    """The outcome of a call: its status code, and the type of its failure.

    A response that is invalid has the code OK and the failure's type.
    """
    if error is None:
        return _OK
    code = _code(error)
    if code is None:
        return {ERROR_TYPE: type(error).__name__}
    kind = type(error).__name__ if code is grpc.StatusCode.OK else code.name
    return {RPC_RESPONSE_STATUS_CODE: code.name, ERROR_TYPE: kind}


def _host_and_port(address: str) -> Attributes:
    parts = urlsplit(f"//{address}")
    return {SERVER_ADDRESS: parts.hostname or address, **({SERVER_PORT: parts.port} if parts.port else {})}


def _code(error: BaseException) -> grpc.StatusCode | None:
    """The status code of a failure; None where no response was awaited."""
    cause = error.__cause__
    if isinstance(cause, RpcError):
        return cause.code
    if isinstance(error, LateError):
        return grpc.StatusCode.DEADLINE_EXCEEDED
    if isinstance(error, asyncio.CancelledError | GeneratorExit):
        return grpc.StatusCode.CANCELLED
    return grpc.StatusCode.OK if isinstance(error, PluginFailedError | ProtocolError) else None
