"""SchedulingService: turn calls into the author's functions and their answers into packed replies."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from operator import index
from typing import Any, TypeVar

import msgspec
import numpy as np
from google.protobuf.duration_pb2 import Duration
from numpy.typing import NDArray
from opentelemetry import trace

from berth_plugin_proto import common_pb2
from berth_plugin_proto import scheduling_pb2 as pb
from berth_sdk.errors import ContractError
from berth_sdk.failure_log import FailureLog
from berth_sdk.nodes import Nodes
from berth_sdk.objects import Node, Pod
from berth_sdk.outcomes import (
    SUCCESS,
    Code,
    CycleOutcome,
    MetadataPatch,
    Nomination,
    Points,
    Reason,
    Scores,
    Status,
    Verdicts,
    Wait,
    status_of,
)
from berth_sdk.packing import (
    checked,
    fill_scores,
    numbered,
    pack_status,
    pack_verdicts,
    unpack_verdicts,
    verdicts_of,
)
from berth_sdk.plugin import Plugin, overrides
from berth_sdk.session import Session, key_of
from berth_sdk.waiting import in_task

log = logging.getLogger(__name__)

FAILURES = FailureLog(log)
Chosen = TypeVar("Chosen", pb.ReserveRequest, pb.PermitRequest, pb.PreBindRequest, pb.BindRequest)


async def pre_enqueue(session: Session, request: pb.PreEnqueueRequest) -> pb.PreEnqueueResponse:
    """Answer whether the pod may enter the queue."""
    status = await verdict(session.plugin.pre_enqueue, session.pod(request.call.pod))
    return pb.PreEnqueueResponse(status=pack_status(status))


async def filter_pod(session: Session, request: pb.FilterRequest) -> pb.FilterResponse:
    """Answer for the pod, then for all nodes."""
    call, response = request.call, pb.FilterResponse()
    await session.catch_up(call)
    candidates = request.candidates if request.HasField("candidates") else None
    await filtered(session, call, session.pod(call.pod), candidates, response)
    return response


async def score_pod(session: Session, request: pb.ScoreRequest) -> pb.ScoreResponse:
    """Score all nodes."""
    call, response = request.call, pb.ScoreResponse()
    await session.catch_up(call)
    pod = session.pod(call.pod)
    candidates = request.candidates if request.HasField("candidates") else None
    await scored(session.plugin, pod, session.nodes(call, candidates), response)
    return response


async def filter_score(session: Session, request: pb.FilterScoreRequest) -> pb.FilterScoreResponse:
    """Filter, and score what passed."""
    call, response = request.call, pb.FilterScoreResponse()
    await session.catch_up(call)
    pod = session.pod(call.pod)
    candidates = request.candidates if request.HasField("candidates") else None
    # The parts are written where they will be sent from: to take in a message that is whole copies it twice.
    passing = await filtered(session, call, pod, candidates, response.filter)
    if passing is not None:
        await scored(session.plugin, pod, passing, response.score)
    return response


async def post_filter(session: Session, request: pb.PostFilterRequest) -> pb.PostFilterResponse:
    """Ask for room after no node was left."""
    await session.catch_up(request.call)
    pod, nodes = session.pod(request.call.pod), session.nodes(request.call)
    table = tuple(Reason(each.text, Code(each.code)) for each in request.verdicts.reasons)
    verdicts = unpack_verdicts(request.verdicts, table, len(nodes))
    try:
        answer = await ask(session.plugin.post_filter, pod, nodes, verdicts)
        if isinstance(answer, Nomination):
            return pb.PostFilterResponse(
                status=pack_status(SUCCESS),
                nominated_node_name=answer.node_name,
                victim_uids=answer.victim_uids,
            )
        return pb.PostFilterResponse(status=pack_status(status_of(answer)))
    except ContractError as error:
        return pb.PostFilterResponse(status=failure(session.plugin, "post_filter", error))


async def reserve(session: Session, request: pb.ReserveRequest) -> pb.ReserveResponse:
    """Set aside what the pod will use."""
    pod, node = await chosen(session, request)
    if node is None:
        return pb.ReserveResponse(status=pack_status(gone(request)))
    try:
        answer = await ask(session.plugin.reserve, pod, node)
        if isinstance(answer, MetadataPatch):
            return pb.ReserveResponse(status=pack_status(SUCCESS), metadata_patch=_merge_patch(answer))
        idle = not overrides(session.plugin, "pre_bind")
        return pb.ReserveResponse(status=pack_status(status_of(answer)), skip_pre_bind=idle)
    except ContractError as error:
        return pb.ReserveResponse(status=failure(session.plugin, "reserve", error))


async def unreserve(session: Session, request: pb.UnreserveRequest) -> pb.UnreserveResponse:
    """Give it back."""
    await tell(session.plugin.unreserve, key_of(request.call.pod), request.node_name)
    return pb.UnreserveResponse()


async def permit(session: Session, request: pb.PermitRequest) -> pb.PermitResponse:
    """Let the pod go on, stop it, or make it wait."""
    pod, node = await chosen(session, request)
    if node is None:
        return pb.PermitResponse(status=pack_status(gone(request)))
    try:
        answer = await ask(session.plugin.permit, pod, node)
        if isinstance(answer, Wait):
            timeout = Duration(seconds=int(answer.seconds), nanos=int(answer.seconds % 1 * 1e9))
            return pb.PermitResponse(status=common_pb2.Status(code=Code.WAIT.value), timeout=timeout)
        return pb.PermitResponse(status=pack_status(status_of(answer)))
    except ContractError as error:
        return pb.PermitResponse(status=failure(session.plugin, "permit", error))


async def pre_bind(session: Session, request: pb.PreBindRequest) -> pb.PreBindResponse:
    """Prepare the binding."""
    pod, node = await chosen(session, request)
    if node is None:
        return pb.PreBindResponse(status=pack_status(gone(request)))
    try:
        answer = await ask(session.plugin.pre_bind, pod, node)
        if isinstance(answer, MetadataPatch):
            return pb.PreBindResponse(status=pack_status(SUCCESS), metadata_patch=_merge_patch(answer))
        return pb.PreBindResponse(status=pack_status(status_of(answer)))
    except ContractError as error:
        return pb.PreBindResponse(status=failure(session.plugin, "pre_bind", error))


async def bind(session: Session, request: pb.BindRequest) -> pb.BindResponse:
    """Let the plugin write the binding."""
    pod, node = await chosen(session, request)
    if node is None:
        return pb.BindResponse(status=pack_status(Status(Code.ERROR, gone(request).reasons)))
    status = await verdict(session.plugin.bind, pod, node, dict(request.annotations))
    return pb.BindResponse(status=pack_status(status))


async def post_bind(session: Session, request: pb.PostBindRequest) -> pb.PostBindResponse:
    """Tell of the binding."""
    await tell(session.plugin.post_bind, key_of(request.call.pod), request.node_name)
    return pb.PostBindResponse()


async def cycle_done(session: Session, request: pb.CycleDoneRequest) -> pb.CycleDoneResponse:
    """Tell what became of the attempt; a pod that will not be asked about again is forgotten."""
    outcome = CycleOutcome(request.outcome)
    node_name = request.node_name if request.HasField("node_name") else None
    await tell(session.plugin.cycle_done, key_of(request.call.pod), outcome, node_name)
    if outcome in {CycleOutcome.BOUND, CycleOutcome.ABORTED}:
        session.pods.pop(request.call.pod.uid, None)
    return pb.CycleDoneResponse()


async def filtered(
    session: Session,
    call: common_pb2.Call,
    pod: Pod,
    candidates: pb.Candidates | None,
    response: pb.FilterResponse,
) -> Nodes | None:
    """Write the reply, and return the nodes that passed, None if none is left to score."""
    plugin = session.plugin
    try:
        status = SUCCESS
        if overrides(plugin, "pre_filter"):
            status = status_of(await ask(plugin.pre_filter, pod))
        nodes = session.nodes(call, candidates)
        response.generation = session.mirror.generation
        if status.code is not Code.SUCCESS:
            response.status.CopyFrom(pack_status(status))
            return nodes if status.code is Code.SKIP and not nodes.all_ruled_out else None
        verdicts = await node_verdicts(plugin, pod, nodes)
        response.verdicts.CopyFrom(pack_verdicts(verdicts, nodes.wanted))
        response.status.code = common_pb2.CODE_SUCCESS
    except ContractError as error:
        response.status.CopyFrom(failure(plugin, "filter", error))
        response.generation = session.mirror.generation
        return None
    passing = nodes.those(verdicts.codes == 0)
    passed = passing.wanted_count
    _count(session, passed, nodes.wanted_count - passed)
    return passing if passed else None


async def node_verdicts(plugin: Plugin, pod: Pod, nodes: Nodes) -> Verdicts:
    """Return the verdicts by whichever form the author chose, one for each entry of the answer.

    Raises: ContractError: what came back can't be sent.
    """
    if overrides(plugin, "filter_nodes"):
        answer = await ask(plugin.filter_nodes, pod, nodes)
        verdicts = verdicts_of(answer, plugin.reasons, len(nodes))
        return verdicts if nodes.listed is None else Verdicts(verdicts.codes[nodes.listed], verdicts.reasons)
    if overrides(plugin, "filter"):
        each: Verdicts = await ask(filter_each_node, plugin, pod, nodes, name="filter")
        return each
    return Verdicts(np.zeros(nodes.entry_count, np.uint8), ())


def filter_each_node(plugin: Plugin, pod: Pod, nodes: Nodes) -> Verdicts:
    """Return the verdicts of the per-node form, with a table of the reasons met."""
    codes = np.zeros(nodes.entry_count, np.uint8)
    table: dict[Reason, int] = {}
    for number, node in nodes.entries():
        answer = plugin.filter(pod, node)
        if answer is not None:
            codes[number] = numbered(table, answer)
    return Verdicts(codes, tuple(table))


def score_each_node(plugin: Plugin, pod: Pod, nodes: Nodes) -> NDArray[np.int64]:
    """Return the scores of the per-node form.

    Raises: ContractError: one of them is no integer of 64 bits.
    """
    points = np.zeros(nodes.entry_count, np.int64)
    for number, node in nodes.entries():
        answer = plugin.score(pod, node)
        try:
            points[number] = index(answer)
        except (TypeError, OverflowError):
            raise ContractError(f"score answers an integer of 64 bits, not {answer!r}") from None
    return points


async def scored(plugin: Plugin, pod: Pod, nodes: Nodes, response: pb.ScoreResponse) -> None:
    """Write the scores into the reply, by whichever form the author chose."""
    response.generation = nodes.mirror.generation
    try:
        scores = await _scores(plugin, pod, nodes)
        if scores is None:
            response.status.code = common_pb2.CODE_SKIP
            return
        fill_scores(response.scores, scores, nodes.wanted, nodes.entry_count)
        response.status.code = common_pb2.CODE_SUCCESS
    except ContractError as error:
        response.status.CopyFrom(failure(plugin, "score", error))


async def _scores(plugin: Plugin, pod: Pod, nodes: Nodes) -> Scores | None:
    """Return the author's scores, one for each entry of the answer.

    Raises: ContractError: what came back can't be sent.
    """
    if overrides(plugin, "score_nodes"):
        answer: Points | Scores | None = await ask(plugin.score_nodes, pod, nodes)
        if answer is None:
            return None
        scores = answer if isinstance(answer, Scores) else Scores(answer, plugin.normalization)
        if nodes.listed is None:
            return scores
        return Scores(checked(scores.points, len(nodes))[nodes.listed], scores.normalization)
    if overrides(plugin, "score"):
        return Scores(await ask(score_each_node, plugin, pod, nodes, name="score"), plugin.normalization)
    return None


async def chosen(session: Session, request: Chosen) -> tuple[Pod, Node | None]:
    """Return the pod and the node it was given, None if the node is gone."""
    await session.catch_up(request.call)
    return session.pod(request.call.pod), session.node(request.node_name)


async def verdict(function: Callable[..., Any], *arguments: Any) -> Status:
    """Return the author's verdict on the pod; a failure is one too."""
    try:
        return status_of(await ask(function, *arguments))
    except ContractError as error:
        FAILURES.failed(function.__name__, error)
        return Status(Code.ERROR, (str(error),))


async def tell(function: Callable[..., Any], *arguments: Any) -> None:
    """Tell the author something; a failure is logged and nothing else."""
    try:
        await ask(function, *arguments)
    except ContractError as error:
        FAILURES.failed(function.__name__, error)


async def ask(function: Callable[..., Any], *arguments: Any, name: str = "") -> Any:
    """Return what the author's function returns; by that name it is known to the author.

    Raises: ContractError: it failed.
    """
    try:
        answer = function(*arguments)
        if not hasattr(answer, "__await__"):
            return answer
        try:
            await in_task()
        except asyncio.CancelledError:
            # Its deadline was over before it began: Python would warn that it was never awaited.
            if isinstance(answer, Coroutine):
                answer.close()
            raise
        return await answer
    except ContractError:
        raise
    except Exception as error:
        name = name or getattr(function, "__name__", "function")
        raise ContractError(f"{name}: {type(error).__name__}: {error}") from error


def gone(request: Chosen) -> Status:
    """Return the verdict on a node that went away between choice and call."""
    return Status(Code.UNSCHEDULABLE, (f"node {request.node_name} is gone",))


def failure(plugin: Plugin, function: str, error: ContractError) -> common_pb2.Status:
    """Return the status of an author's failure, which is logged: the scheduler may go on without it."""
    FAILURES.failed(function, error)
    return common_pb2.Status(code=Code.ERROR.value, reasons=[f"{plugin.name}: {error}"])


def _count(session: Session, passed: int, rejected: int) -> None:
    session.meter.verdicts(passed, rejected)
    if not session.traced:
        return
    span = trace.get_current_span()
    if span.is_recording():
        span.set_attributes({"berth.nodes.passed": passed, "berth.nodes.rejected": rejected})


def _merge_patch(patch: MetadataPatch) -> bytes:
    parts = {"annotations": dict(patch.annotations), "labels": dict(patch.labels)}
    return msgspec.json.encode({name: part for name, part in parts.items() if part})
