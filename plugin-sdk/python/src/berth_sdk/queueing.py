"""QueueingService: hints for many events and pods at once, and the plugin's own wishes."""

import logging
from collections.abc import AsyncIterator, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from berth_plugin_proto import common_pb2
from berth_plugin_proto import queueing_pb2 as pb
from berth_sdk.errors import CallError, Cause, ContractError
from berth_sdk.objects import Pod
from berth_sdk.outcomes import Action, ClusterEvent
from berth_sdk.packing import pack_bits, pack_sort_key
from berth_sdk.plugin import Plugin, overrides
from berth_sdk.scheduling import ask, tell
from berth_sdk.session import Session

log = logging.getLogger(__name__)


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


async def sort_keys(session: Session, request: pb.SortKeysRequest) -> pb.SortKeysResponse:
    """Say where pods stand in the queue; one that the plugin fails for has the key 0.

    Raises: CallError: the profile was not configured.
    """
    plugin = session.plugin
    if request.profile not in session.profiles:
        raise CallError(Cause.NOT_CONFIGURED, f"profile {request.profile!r} was not configured")
    if request.anew:
        await tell(plugin.queue_reset, request.profile)
    if request.left_uids:
        await tell(plugin.pods_left, tuple(request.left_uids))
    return pb.SortKeysResponse(keys=[await _sort_key(session, ref) for ref in request.pods])


async def _sort_key(session: Session, ref: common_pb2.PodRef) -> pb.SortKey:
    pod = _known(session, ref)
    if pod is None:
        return pb.SortKey()
    try:
        return pack_sort_key(await ask(session.plugin.sort_key, pod))
    except ContractError as error:
        log.warning("pod without a sort key pod=%s err=%s", f"{ref.namespace}/{ref.name}", error)
        return pb.SortKey()


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
