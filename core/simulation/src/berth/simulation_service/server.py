"""The gRPC server: addresses, certificates, who a client is, and the status of a call that has no answer.

A unix socket is its user's alone. Over TCP there is TLS, with or without certificates of clients; without TLS
a loopback address is served and no other.
"""

import logging
import os
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import grpc
import grpc.aio
import msgspec

from berth.config.out_of_tree.sidecars import is_loopback, is_unix, socket_path
from berth.simulation.errors import SimulationError
from berth.simulation_service.errors import AddressError, QueryError
from berth.simulation_service.expander import Expander
from berth.simulation_service.limits import ServiceLimits
from berth.simulation_service.service import SimulationService
from berth_expander_proto import expander_pb2, expander_pb2_grpc
from berth_simulation_proto import simulation_pb2, simulation_pb2_grpc

log = logging.getLogger(__name__)

Context = grpc.aio.ServicerContext[Any, Any]
Request = TypeVar("Request")
Response = TypeVar("Response")
LONGEST_MESSAGE = 4096
"""Of a status, in characters: it travels in a header."""
CONNECTIONS_MS = 300_000
"""How long a connection may be idle."""


class Tls(msgspec.Struct, frozen=True):
    """Files: the server's certificate and key, and whose certificates clients have to show, if any."""

    cert_file: str
    key_file: str
    client_ca_file: str = ""


async def serve(
    address: str, tls: Tls | None, service: SimulationService, expander: Expander, limits: ServiceLimits
) -> tuple[grpc.aio.Server, str]:
    """Listen at unix:///path or host:port; the server, and the address with the port that it is.

    Raises: AddressError.
    """
    options = (
        ("grpc.max_receive_message_length", limits.message_bytes),
        ("grpc.max_connection_idle_ms", CONNECTIONS_MS),
        ("grpc.so_reuseport", 0),
    )
    server = grpc.aio.server(options=options, maximum_concurrent_rpcs=limits.calls)
    simulation_pb2_grpc.add_SimulationServiceServicer_to_server(_Simulation(service), server)
    expander_pb2_grpc.add_ExpanderServicer_to_server(_Expander(expander), server)
    bound = _bind(server, address, tls)
    await server.start()
    return server, bound


def _bind(server: grpc.aio.Server, address: str, tls: Tls | None) -> str:
    if is_unix(address):
        return _bind_socket(server, Path(socket_path(address)))
    if tls is None and not is_loopback(address):
        raise AddressError(f"{address}: anyone could ask over a network: give --tls-cert and --tls-key")
    try:
        if tls is None:
            port = server.add_insecure_port(address)
        else:
            port = server.add_secure_port(address, _credentials(tls))
    except (RuntimeError, ValueError) as error:
        raise AddressError(f"{address}: {error}; give another HOST:PORT") from None
    return f"{address.rpartition(':')[0]}:{port}"


def _bind_socket(server: grpc.aio.Server, path: Path) -> str:
    """Serve a socket that this user alone may open, in place of one that is served no more."""
    try:
        with socket.socket(socket.AF_UNIX) as probe:
            # gRPC would take the place of one that is served.
            if path.is_socket() and not probe.connect_ex(str(path)):
                raise AddressError(f"unix:{path}: it is in use; give another socket")
        before = os.umask(0o177)
        try:
            server.add_insecure_port(f"unix:{path}")
        finally:
            os.umask(before)
    except (OSError, RuntimeError) as error:
        raise AddressError(f"unix:{path}: {error}; give a socket in a folder of yours") from None
    return f"unix:{path}"


def _credentials(tls: Tls) -> grpc.ServerCredentials:
    try:
        pair = (Path(tls.key_file).read_bytes(), Path(tls.cert_file).read_bytes())
        ca = Path(tls.client_ca_file).read_bytes() if tls.client_ca_file else None
    except OSError as error:
        raise AddressError(f"{error.filename}: {error.strerror}; give a file in PEM form") from None
    return grpc.ssl_server_credentials([pair], ca, require_client_auth=ca is not None)


class _Simulation(simulation_pb2_grpc.SimulationServiceServicer):
    """berth.simulation.v1 on the wire; the contract is the .proto file's."""

    def __init__(self, service: SimulationService) -> None:
        self._service = service

    async def CreateFork(self, request: Any, context: Context) -> simulation_pb2.CreateForkResponse:  # noqa: N802 - gRPC's name
        return await _answered(self._service.create_fork, request, context)

    async def ApplyToFork(self, request: Any, context: Context) -> simulation_pb2.ApplyToForkResponse:  # noqa: N802 - gRPC's name
        return await _answered(self._service.apply_to_fork, request, context)

    async def WouldFit(self, request: Any, context: Context) -> simulation_pb2.WouldFitResponse:  # noqa: N802 - gRPC's name
        return await _answered(self._service.would_fit, request, context)

    async def WhatIf(self, request: Any, context: Context) -> simulation_pb2.WhatIfResponse:  # noqa: N802 - gRPC's name
        return await _answered(self._service.what_if, request, context)

    async def DropFork(self, request: Any, context: Context) -> simulation_pb2.DropForkResponse:  # noqa: N802 - gRPC's name
        return await _answered(self._service.drop_fork, request, context)


class _Expander(expander_pb2_grpc.ExpanderServicer):
    """grpcplugin.Expander on the wire."""

    def __init__(self, expander: Expander) -> None:
        self._expander = expander

    async def BestOptions(self, request: Any, context: Context) -> expander_pb2.BestOptionsResponse:  # noqa: N802 - gRPC's name
        return await _answered(self._expander.best_options, request, context)


async def _answered(
    answer: Callable[[str, Request], Awaitable[Response]], request: Request, context: Context
) -> Response:
    """The answer, or the status that says why there is none."""
    try:
        return await answer(_client(context), request)
    except QueryError as error:
        code, message = error.code, str(error)
    except SimulationError as error:
        code, message = grpc.StatusCode.INVALID_ARGUMENT, str(error)
    except Exception as error:
        # Of one request: others go on. What is wrong with it is in the log.
        log.exception("a request has no answer request=%s", type(request).__name__)
        code, message = grpc.StatusCode.INTERNAL, f"{type(error).__name__}; the server's log says more"
    await context.abort(code, message[:LONGEST_MESSAGE])
    raise AssertionError("abort raises")


def _client(context: Context) -> str:
    """Who asks: the name in the client's certificate, else its host; all of a unix socket are one."""
    for name in context.auth_context().get("x509_common_name", ()):
        return f"certificate:{name.decode(errors='replace')}"
    kind, _, rest = context.peer().partition(":")
    return kind if kind == "unix" else rest.rpartition(":")[0]
