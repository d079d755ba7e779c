"""Asking a plugin: the head of a call, its deadline, and the second try that a failed precondition allows.

Source: docs/protocol.md "Scheduling calls".
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import grpc
import grpc.aio

from berth.framework.cycle_record import CycleRecord
from berth.framework.cycle_state import CycleState
from berth.objects.pod import Pod
from berth.out_of_tree._generated import common_pb2
from berth.out_of_tree.connection import Connection
from berth.out_of_tree.errors import CallFailedError, NotConnectedError
from berth.out_of_tree.raw_objects import RawObjects
from berth.out_of_tree.state_feed import StateFeed
from berth.out_of_tree.traceparent import call_span

log = logging.getLogger(__name__)

DEFAULT_SECONDS = 1.0
LONGEST_SECONDS = 10.0
REASON_KEY = "berth-reason"
WORTH_REPEATING = frozenset({"GENERATION_GONE", "POD_UNKNOWN"})

Response = TypeVar("Response")


@dataclass(frozen=True, slots=True)
class Caller:
    """Calls one plugin in the name of one profile."""

    connection: Connection
    feed: StateFeed
    pods: RawObjects[Pod]
    profile: str
    sampled: Callable[[bytes], bool]

    def head(self, state: CycleState, pod: Pod, *, with_state: bool = True) -> common_pb2.Call:
        """The head of a request: which pod and attempt, against which state."""
        record = state.get(CycleRecord)
        ref = common_pb2.PodRef(
            uid=pod.uid,
            namespace=pod.namespace,
            name=pod.name,
            attempt=record.attempt if record else 0,
            object=self.pods.get(pod.uid),
        )
        deltas = self.feed.carried(self.connection.acknowledged) if with_state else []
        return common_pb2.Call(
            epoch=self.connection.epoch,
            generation=self.feed.generation,
            deltas=deltas,
            profile=self.profile,
            pod=ref,
        )

    async def ask(self, name: str, request: Any, state: CycleState) -> Any:
        """The plugin's response to a request of its scheduling service.

        Raises: NotConnectedError, CallFailedError.
        """
        plugin, stub = self.connection.spec.name, self.connection.scheduling
        if stub is None:
            raise NotConnectedError(plugin, f"not connected: {self.connection.last_error or 'waiting'}")
        record = state.get(CycleRecord)
        with call_span(record, f"{plugin} {name}", self.sampled) as metadata:
            for last_try in (False, True):
                try:
                    return await getattr(stub, name)(request, timeout=self.seconds, metadata=metadata)
                except grpc.aio.AioRpcError as error:
                    if last_try or _reason(error) not in WORTH_REPEATING:
                        raise CallFailedError(plugin, _text(name, error)) from error
                request.call.generation = self.feed.generation
        raise AssertionError("unreachable")

    @property
    def seconds(self) -> float:
        """How long a call may take: the list's word, else the plugin's wish within bounds."""
        spec, wish = self.connection.spec, self.connection.capabilities
        if spec.timeout is not None:
            return spec.timeout.seconds
        if wish.HasField("wanted_deadline"):
            return min(wish.wanted_deadline.ToTimedelta().total_seconds(), LONGEST_SECONDS)
        return DEFAULT_SECONDS


def _reason(error: grpc.aio.AioRpcError) -> str:
    if error.code() is not grpc.StatusCode.FAILED_PRECONDITION:
        return ""
    return next((str(value) for key, value in error.trailing_metadata() or () if key == REASON_KEY), "")


def _text(name: str, error: grpc.aio.AioRpcError) -> str:
    if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
        return f"{name} was not answered in time"
    return f"{name} failed: {error.code().name}: {error.details()}"
