"""A stub that records its calls: requests, responses and failures.

Source: proto/berth/plugin/v1/recording.proto.
"""

import asyncio
from collections.abc import Callable
from typing import Any

import grpc

from berth.framework.clock import SYSTEM_CLOCK
from berth.out_of_tree.transport.conversation import TRACEPARENT, field_of
from berth.out_of_tree.transport.rpc import OF_GROUPS, SERVICE_OF, RpcError
from berth.out_of_tree.transport.traceparent import Metadata
from berth.recordings.calls.recording import CallRecording
from berth_plugin_proto import scheduling_pb2


class RecordedStub:
    """Wraps a stub; `plain` is the stub itself."""

    def __init__(self, plain: Any, recording: CallRecording) -> None:
        self.plain = plain
        self._recording = recording

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """The call of that name, such as `FilterScore`."""
        call: Callable[..., Any] = getattr(self.plain, name)
        recording = self._recording

        async def identity(request: Any, **options: Any) -> Any:
            response = await call(request, **options)
            if name == "Handshake":
                recording.greeted(response)
            else:
                recording.configured(request, response)
            return response

        async def whole(request: Any, **options: Any) -> Any:
            number, started, response = recording.opened(), SYSTEM_CLOCK.monotonic(), None
            try:
                response = await call(request, **options)
            finally:
                written = recording.hinted if name == "QueueingHints" else recording.placed
                written(number, request, response, SYSTEM_CLOCK.monotonic() - started)
            return response

        async def scheduling(request: Any, *, timeout: float, metadata: Metadata = ()) -> Any:  # noqa: ASYNC109 - as a stub
            number = recording.asked(field_of(name), request, timeout, dict(metadata).get(TRACEPARENT))
            try:
                response = await call(request, timeout=timeout, metadata=metadata)
            except BaseException as error:
                recording.answered(number, error=_call_error(error))
                raise
            if response is None:
                unreadable = _failure(grpc.StatusCode.INTERNAL, "sent a message that can't be read")
                recording.answered(number, error=unreadable)
            else:
                recording.answered(number, **{field_of(name): response})
            return response

        if name == "SortKeys":
            return call  # sort keys depend on the live queue, which no replay has
        if name in ("Handshake", "Configure"):
            return identity
        return whole if name == "QueueingHints" or SERVICE_OF[name] in OF_GROUPS else scheduling


def _call_error(error: BaseException) -> scheduling_pb2.CallError:
    if isinstance(error, RpcError):
        return _failure(error.code, error.text, error.reason)
    if isinstance(error, asyncio.CancelledError):
        return _failure(grpc.StatusCode.CANCELLED, "the caller stopped waiting")
    return _failure(grpc.StatusCode.UNAVAILABLE, str(error))


def _failure(code: grpc.StatusCode, text: str, reason: str = "") -> scheduling_pb2.CallError:
    return scheduling_pb2.CallError(code=code.value[0], message=text, reason=reason)
