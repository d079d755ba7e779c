"""The interface of all transports: a method for each call, and one type of error.

    UnaryCalls     a gRPC call each time
    Conversation   messages on one gRPC stream (conversation.py)
    Ttrpc          frames on a socket (ttrpc.py)

Each has the methods of the generated stub, by name, and each enforces the call's timeout.

Source: docs/protocol.md "Transport", "Scheduling calls".
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import grpc
import grpc.aio

from berth.out_of_tree.transport.traceparent import Metadata
from berth_plugin_proto import group_pb2, placement_pb2, queueing_pb2, scheduling_pb2

MESSAGES: Final[Mapping[str, Any]] = {
    "SchedulingService": scheduling_pb2,
    "PlacementService": placement_pb2,
    "GroupService": group_pb2,
    "QueueingService": queueing_pb2,
}
"""The services whose unary calls travel in several ways, each with the module of its messages."""
SERVICE_OF: Final[Mapping[str, str]] = {
    method.name: name
    for name, module in MESSAGES.items()
    for method in module.DESCRIPTOR.services_by_name[name].methods
}
"""The service that has the call of that name: no two have one of the same name."""

OF_GROUPS: Final = frozenset({"PlacementService", "GroupService"})
"""The services whose calls are about pod groups."""

REASON_KEY = "berth-reason"

Call = Callable[..., Awaitable[Any]]

_CODES = {code.value[0]: code for code in grpc.StatusCode}


class RpcError(Exception):
    """A call that was refused, or not answered; `reason` is the metadata `berth-reason`, empty if absent."""

    def __init__(self, code: grpc.StatusCode, text: str, reason: str = "") -> None:
        super().__init__(f"{code.name}: {text}")
        self.code = code
        self.text = text
        self.reason = reason

    @classmethod
    def of(cls, error: "grpc.aio.AioRpcError | RpcError") -> "RpcError":
        """The error for a gRPC error."""
        if isinstance(error, RpcError):
            return error
        trailing = error.trailing_metadata() or ()
        reason = next((str(value) for key, value in trailing if key == REASON_KEY), "")
        return cls(error.code(), error.details() or "", reason)

    @classmethod
    def by_number(cls, code: int, text: str, reason: str = "") -> "RpcError":
        """The error for a code in a message."""
        return cls(_CODES.get(code, grpc.StatusCode.UNKNOWN), text, reason)


def late() -> RpcError:
    """The error of a call that ran into its deadline."""
    return RpcError(grpc.StatusCode.DEADLINE_EXCEEDED, "no answer in time")


class UnaryCalls:
    """The unary calls of a generated stub."""

    def __init__(self, stub: Any) -> None:
        self._stub = stub

    def __getattr__(self, name: str) -> Call:
        """The call of that name, such as `FilterScore`."""
        plain = getattr(self._stub, name)

        async def call(request: Any, *, timeout: float, metadata: Metadata = ()) -> Any:  # noqa: ASYNC109 - as a stub
            try:
                return await plain(request, timeout=timeout, metadata=metadata)
            except grpc.aio.AioRpcError as error:
                raise RpcError.of(error) from error
            except grpc.aio.UsageError as error:
                raise RpcError(grpc.StatusCode.UNAVAILABLE, str(error)) from error
            except asyncio.CancelledError:
                # A closed channel cancels its calls and so their callers, unlike a caller's own end.
                if (task := asyncio.current_task()) is None or task.cancelling():
                    raise
                raise RpcError(grpc.StatusCode.UNAVAILABLE, "cut off with the connection") from None

        setattr(self, name, call)
        return call
