"""The connections of a scheduler process to its API server."""

from contextlib import AsyncExitStack
from dataclasses import dataclass

from berth.client.endpoint import Endpoint
from berth.client.events import EventRecorder
from berth.client.timing import SystemClock, TokenBucket
from berth.client.transport import Transport
from berth.scheduler.process_settings import ProcessSettings

MAX_CONNECTIONS = 64


@dataclass(frozen=True, slots=True)
class Transports:
    """Connections by purpose: neither leases nor events ever queue behind bindings, nor the other way."""

    main: Transport
    leases: Transport
    events: Transport


def open_transports(settings: ProcessSettings, endpoint: Endpoint, stack: AsyncExitStack) -> Transports:
    """Transports that are closed with the stack, the last one first."""
    connection = settings.loaded.configuration.client_connection
    limiter = TokenBucket(connection.qps, connection.burst, SystemClock())
    seconds = settings.request_seconds
    transports = Transports(
        Transport(endpoint, max_connections=MAX_CONNECTIONS, limiter=limiter, request_seconds=seconds),
        Transport(endpoint, max_connections=2),
        Transport(endpoint, max_connections=EventRecorder.most_workers, request_seconds=seconds),
    )
    for transport in (transports.main, transports.leases, transports.events):
        stack.push_async_callback(transport.aclose)
    return transports
