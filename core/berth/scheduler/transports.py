"""The connections of a scheduler process to its API server, by the loop that owns them."""

from contextlib import AsyncExitStack
from dataclasses import dataclass

from berth.client.endpoint import Endpoint
from berth.client.events import EventRecorder
from berth.client.timing import SystemClock, TokenBucket
from berth.client.transport import Transport
from berth.scheduler.control_thread import ControlThread
from berth.scheduler.process_settings import ProcessSettings

MAX_CONNECTIONS = 64
REVIEWS_AT_ONCE = 4
REVIEW_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Transports:
    """The scheduling loop's, by purpose: events never queue behind bindings, nor the other way."""

    main: Transport
    events: Transport


def open_transports(settings: ProcessSettings, endpoint: Endpoint, stack: AsyncExitStack) -> Transports:
    """Transports that are closed with the stack, the last one first."""
    connection = settings.loaded.configuration.client_connection
    limiter = TokenBucket(connection.qps, connection.burst, SystemClock())
    seconds = settings.request_seconds
    transports = Transports(
        Transport(endpoint, max_connections=MAX_CONNECTIONS, limiter=limiter, request_seconds=seconds),
        Transport(endpoint, max_connections=EventRecorder.most_workers, request_seconds=seconds),
    )
    for transport in (transports.main, transports.events):
        stack.push_async_callback(transport.aclose)
    return transports


@dataclass(frozen=True, slots=True)
class ControlTransports:
    """The control thread's: a renewal never queues behind reviews of those who ask for pages."""

    leases: Transport
    reviews: Transport


def open_control_transports(
    endpoint: Endpoint, control: ControlThread, stack: AsyncExitStack
) -> ControlTransports:
    """Transports for the control thread, with credentials of its own, that are closed with the stack."""
    transports = ControlTransports(
        Transport(endpoint, max_connections=2),
        Transport(endpoint, max_connections=REVIEWS_AT_ONCE, request_seconds=REVIEW_SECONDS),
    )

    async def close() -> None:
        for transport in (transports.leases, transports.reviews):
            await control.run(transport.aclose())

    stack.push_async_callback(close)
    return transports
