"""The connections of a scheduler process to its API server, by the loop that owns them."""

from contextlib import AsyncExitStack
from typing import NamedTuple

from berth.client.endpoint import Endpoint
from berth.client.events import EventRecorder
from berth.client.transport import Transport
from berth.framework.clock import SystemClock
from berth.framework.pacing import TokenBucket
from berth.scheduler.loop.control_thread import ControlThread
from berth.scheduler.process_options import ProcessOptions

MAX_CONNECTIONS = 64
REVIEWS_AT_ONCE = 4
REVIEW_SECONDS = 10.0


class Transports(NamedTuple):
    """One for each kind of traffic.

    Events never queue behind bindings, nor the other way; leases and access reviews belong to the control
    thread's loop.
    """

    requests: Transport
    events: Transport
    leases: Transport
    reviews: Transport


def open_transports(
    options: ProcessOptions,
    endpoints: tuple[Endpoint, Endpoint],
    control: ControlThread,
    stack: AsyncExitStack,
) -> Transports:
    """Those of the scheduling loop to the first endpoint, the control thread's to the second.

    Closed with the stack, each by the loop that owns it.
    """
    connection = options.loaded.configuration.client_connection
    limiter = TokenBucket(connection.qps, connection.burst, SystemClock().monotonic)
    seconds = options.request_seconds
    first, second = endpoints
    requests = Transport(first, max_connections=MAX_CONNECTIONS, limiter=limiter, request_seconds=seconds)
    events = Transport(first, max_connections=EventRecorder.max_writes, request_seconds=seconds)
    leases = Transport(second, max_connections=2)
    reviews = Transport(second, max_connections=REVIEWS_AT_ONCE, request_seconds=REVIEW_SECONDS)

    async def close() -> None:
        for transport in (leases, reviews):
            await control.run(transport.aclose())

    for transport in (requests, events):
        stack.push_async_callback(transport.aclose)
    stack.push_async_callback(close)
    return Transports(requests, events, leases, reviews)
