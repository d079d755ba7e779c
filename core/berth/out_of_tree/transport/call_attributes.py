"""What the span of a plugin's call says by OpenTelemetry's conventions: where it went, and how it ended.

Source: OpenTelemetry semantic conventions 1.44, RPC client spans. The names are written out, because the
package of conventions has those of RPC among the unstable ones, which it may move.
"""

import asyncio
from collections.abc import Mapping
from functools import lru_cache
from urllib.parse import urlsplit

import grpc

from berth.config.out_of_tree.sidecars import is_unix, socket_path
from berth.out_of_tree.errors import LateError, PluginFailedError, ProtocolError
from berth.out_of_tree.transport.rpc import RpcError

SERVER_ADDRESS = "server.address"
SERVER_PORT = "server.port"
ERROR_TYPE = "error.type"
RPC_SYSTEM_NAME = "rpc.system.name"
RPC_METHOD = "rpc.method"
RPC_RESPONSE_STATUS_CODE = "rpc.response.status_code"

SERVICE = "berth.plugin.v1.SchedulingService"

Attributes = Mapping[str, str | int]

_OK: Attributes = {RPC_RESPONSE_STATUS_CODE: grpc.StatusCode.OK.name}


@lru_cache(maxsize=1024)
def rpc_request(address: str, method: str, system: str = "grpc") -> Attributes:
    """A call of a plugin's scheduling service; ttrpc's frames carry the calls and codes of gRPC."""
    return {
        RPC_SYSTEM_NAME: system,
        RPC_METHOD: f"{SERVICE}/{method}",
        **({SERVER_ADDRESS: socket_path(address)} if is_unix(address) else _host_and_port(address)),
    }


def rpc_outcome(error: BaseException | None) -> Attributes:
    """How a call ended: its status code, and what kind of failure it was.

    An answer that was received and is of no use has the code OK and the failure's own type.
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
    """The status code behind a failure; None where no answer was waited for."""
    cause = error.__cause__
    if isinstance(cause, RpcError):
        return cause.code
    if isinstance(error, LateError):
        return grpc.StatusCode.DEADLINE_EXCEEDED
    if isinstance(error, asyncio.CancelledError):
        return grpc.StatusCode.CANCELLED
    return grpc.StatusCode.OK if isinstance(error, PluginFailedError | ProtocolError) else None
