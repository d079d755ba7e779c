"""Each call by its name, and what becomes of it: the author's functions in a span, counted; errors as codes.

serving.py brings calls over gRPC, one each or on a stream; ttrpc.py those in ttrpc's frames.
"""

import time
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import grpc
from google.protobuf.message import Message
from opentelemetry.trace import Span

from berth_plugin_proto import group_pb2, identity_pb2, placement_pb2, queueing_pb2, scheduling_pb2
from berth_sdk import groups, identity, overlays, placements, queueing, scheduling
from berth_sdk.errors import CallError, ContractError
from berth_sdk.metrics import code_of
from berth_sdk.plugin import Call, answering
from berth_sdk.session import Session, key_of
from berth_sdk.tracing import Metadata, Tracing

Unary = Callable[[Session, Any], Awaitable[Message]]

UNARY: dict[str, dict[str, tuple[Unary, type[Message]]]] = {
    "IdentityService": {
        "Handshake": (identity.handshake, identity_pb2.HandshakeRequest),
        "Configure": (identity.configure, identity_pb2.ConfigureRequest),
    },
    "SchedulingService": {
        "PreEnqueue": (scheduling.pre_enqueue, scheduling_pb2.PreEnqueueRequest),
        "Filter": (scheduling.filter_pod, scheduling_pb2.FilterRequest),
        "Score": (scheduling.score_pod, scheduling_pb2.ScoreRequest),
        "FilterScore": (scheduling.filter_score, scheduling_pb2.FilterScoreRequest),
        "PostFilter": (scheduling.post_filter, scheduling_pb2.PostFilterRequest),
        "Reserve": (scheduling.reserve, scheduling_pb2.ReserveRequest),
        "Unreserve": (scheduling.unreserve, scheduling_pb2.UnreserveRequest),
        "Permit": (scheduling.permit, scheduling_pb2.PermitRequest),
        "PreBind": (scheduling.pre_bind, scheduling_pb2.PreBindRequest),
        "Bind": (scheduling.bind, scheduling_pb2.BindRequest),
        "FilterOverlays": (overlays.filter_overlays, scheduling_pb2.FilterOverlaysRequest),
        "PostBind": (scheduling.post_bind, scheduling_pb2.PostBindRequest),
        "CycleDone": (scheduling.cycle_done, scheduling_pb2.CycleDoneRequest),
    },
    "PlacementService": {
        "GeneratePlacements": (placements.generate_placements, placement_pb2.GeneratePlacementsRequest),
        "ScorePlacements": (placements.score_placements, placement_pb2.ScorePlacementsRequest),
    },
    "GroupService": {
        "PlacementFeasible": (groups.placement_feasible, group_pb2.PlacementFeasibleRequest),
        "PodGroupPostFilter": (groups.pod_group_post_filter, group_pb2.PodGroupPostFilterRequest),
    },
    "QueueingService": {
        "QueueingHints": (queueing.queueing_hints, queueing_pb2.QueueingHintsRequest),
        "SortKeys": (queueing.sort_keys, queueing_pb2.SortKeysRequest),
    },
}
_FULL_NAMES = {
    method: f"berth.plugin.v1.{service}/{method}" for service, methods in UNARY.items() for method in methods
}
_OK = grpc.StatusCode.OK.name


class Failure(NamedTuple):
    """Why a call has no answer: a gRPC code, `berth-reason` where there is one, and the same in words."""

    code: grpc.StatusCode
    reason: str
    text: str


LONGEST_ERROR = 512  # characters; at worst, percent-encoded, 6 of the 8 KiB of trailers that the host reads
TOO_LATE = Failure(grpc.StatusCode.DEADLINE_EXCEEDED, "", "no answer in time")


def failure_of(error: Exception) -> Failure:
    """Return what an error means to the host; one that means nothing is raised again."""
    text = str(error)[:LONGEST_ERROR]
    match error:
        case CallError():
            return Failure(grpc.StatusCode.FAILED_PRECONDITION, error.cause.value, text)
        case ContractError():
            return Failure(grpc.StatusCode.INTERNAL, "", text)
        case ValueError():
            return Failure(grpc.StatusCode.INVALID_ARGUMENT, "", text)
        case TimeoutError():
            return TOO_LATE
    raise error


class Dispatch:
    """Answers the calls of one plugin."""

    def __init__(self, session: Session, tracing: Tracing) -> None:
        self._session = session
        self._plugin = session.plugin
        self._tracing = tracing
        session.traced = tracing.on

    async def call(
        self, name: str, function: Unary, request: Any, metadata: Metadata, system: str = "grpc"
    ) -> Message:
        """Return the answer of the plugin, asked over that RPC system, within a span of its own.

        Raises: CallError, ContractError, ValueError: what `failure_of` knows.
        """
        code, started = _OK, time.perf_counter()
        try:
            if hasattr(request, "call"):
                call = request.call
                profile = call.profile
                answering.set(Call(profile, key_of(call.pod), self._plugin.in_shadow(profile)))
            if self._tracing.on:
                return await self._in_a_span(name, function, request, metadata, system)
            return await function(self._session, request)
        except BaseException as error:
            code = code_of(type(error))
            raise
        finally:
            self._session.meter.answered(name, code, time.perf_counter() - started)

    async def _in_a_span(
        self, name: str, function: Unary, request: Any, metadata: Metadata, system: str
    ) -> Message:
        with self._tracing.span(f"{self._plugin.name}/{name}", metadata) as span:
            try:
                response = await function(self._session, request)
            except BaseException as error:
                self._describe(span, system, name, code_of(type(error)))
                raise
            self._describe(span, system, name, _OK)
            return response

    def _describe(self, span: Span, system: str, name: str, code: str) -> None:
        """Say on the span what was called, and what came of it."""
        if not span.is_recording():
            return
        span.set_attributes(
            {
                # By OpenTelemetry's semantic conventions 1.44 for RPC servers.
                "rpc.system.name": system,
                "rpc.method": _FULL_NAMES[name],
                "rpc.response.status_code": code,
                "berth.plugin": self._plugin.name,
                "berth.generation": self._session.mirror.generation,
                **({} if code == _OK else {"error.type": code}),
            }
        )
