"""QueueingService: hints for many events and pods at once, and the plugin's own wishes."""

from collections.abc import AsyncIterator, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from berth_sdk._generated import common_pb2
from berth_sdk._generated import queueing_pb2 as pb
from berth_sdk.errors import CallError
from berth_sdk.objects import Pod
from berth_sdk.outcomes import Action, ClusterEvent
from berth_sdk.packing import pack_bits
from berth_sdk.plugin import Plugin, overrides
from berth_sdk.scheduling import ask
from berth_sdk.session import Session


async def queueing_hints(session: Session, request: pb.QueueingHintsRequest) -> pb.QueueingHintsResponse:
    """Fill in the table; pods that aren't remembered are queued and named.

    Raises: ContractError: the plugin failed, which the host takes for: queue them.
    """
    pods = [_known(session, ref) for ref in request.pods]
    missing = np.array([pod is None for pod in pods], np.bool_)
    events = [_event(event) for event in request.events]
    table = np.ones((len(events), len(pods)), np.bool_)
    present = [pod for pod in pods if pod is not None]
    if present:
        table[:, ~missing] = await _hints(session.plugin, present, events)
    return pb.QueueingHintsResponse(
        hints=[_row(row) for row in table], unknown_pods=pack_bits(missing) if missing.any() else None
    )


async def requeue(session: Session, request: pb.RequeueRequest) -> AsyncIterator[pb.RequeueResponse]:
    """Pass on what the plugin says, until the host hangs up."""
    del request
    async for message in session.plugin.requeue.listen():
        yield message


async def _hints(plugin: Plugin, pods: Sequence[Pod], events: Sequence[ClusterEvent]) -> NDArray[np.bool_]:
    if overrides(plugin, "queueing_hints"):
        table: NDArray[np.bool_] = await ask(plugin.queueing_hints, pods, events)
        return table
    if not overrides(plugin, "queueing_hint"):
        return np.ones((len(events), len(pods)), np.bool_)
    rows = [[await ask(plugin.queueing_hint, pod, event) for pod in pods] for event in events]
    return np.array(rows, np.bool_).reshape(len(events), len(pods))


def _known(session: Session, ref: common_pb2.PodRef) -> Pod | None:
    if not ref.HasField("object"):
        return session.remembered(ref.uid)
    try:
        return session.pod(ref)
    except (CallError, ValueError, msgspec.MsgspecError):
        return None


def _event(event: pb.ClusterEvent) -> ClusterEvent:
    old = event.old_object if event.HasField("old_object") else None
    new = event.new_object if event.HasField("new_object") else None
    return ClusterEvent(event.resource, Action(event.action), old, new)


def _row(row: NDArray[np.bool_]) -> pb.Hint:
    if row.all() or not row.any():
        return pb.Hint(all=bool(row.all()))
    return pb.Hint(pods=pack_bits(row))
