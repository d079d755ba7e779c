"""The connections of a scheduler process to its API server, by the loop that owns them."""

from contextlib import AsyncExitStack

from berth.client.endpoint import Endpoint
from berth.client.events import EventRecorder
from berth.client.timing import TokenBucket
from berth.client.transport import Transport
from berth.framework.clock import SystemClock
from berth.scheduler.loop.control_thread import ControlThread
from berth.scheduler.process_options import ProcessOptions

MAX_CONNECTIONS = 64
REVIEWS_AT_ONCE = 4
REVIEW_SECONDS = 10.0


def open_for_scheduling(
    options: ProcessOptions, endpoint: Endpoint, stack: AsyncExitStack
) -> tuple[Transport, Transport]:
    """The scheduling loop's transports, for requests and for events; closed with the stack."""
    connection = options.loaded.configuration.client_connection
    limiter = TokenBucket(connection.qps, connection.burst, SystemClock())
    seconds = options.request_seconds
    requests = Transport(endpoint, max_connections=MAX_CONNECTIONS, limiter=limiter, request_seconds=seconds)
    events = Transport(endpoint, max_connections=EventRecorder.most_writes, request_seconds=seconds)
    for transport in (requests, events):
        stack.push_async_callback(transport.aclose)
    return requests, events


def open_for_control(
    endpoint: Endpoint, control: ControlThread, stack: AsyncExitStack
) -> tuple[Transport, Transport]:
    """The control thread's, for leases and for access reviews; closed with the stack by that thread."""
    leases = Transport(endpoint, max_connections=2)
    reviews = Transport(endpoint, max_connections=REVIEWS_AT_ONCE, request_seconds=REVIEW_SECONDS)

    async def close() -> None:
        for transport in (leases, reviews):
            await control.run(transport.aclose())

    stack.push_async_callback(close)
    return leases, reviews
