"""Pod groups as a whole: whether one may go, and which pods could be evicted for it."""

from collections.abc import Sequence

from berth_plugin_proto import group_pb2 as pb
from berth_plugin_proto import placement_pb2
from berth_sdk.errors import ContractError
from berth_sdk.outcomes import (
    SUCCESS,
    Code,
    GroupPreemption,
    PlacementProgress,
    PodGroup,
    Reason,
    status_of,
)
from berth_sdk.packing import pack_status, unpack_verdicts
from berth_sdk.scheduling import ask, failure
from berth_sdk.session import Session, key_of


async def placement_feasible(
    session: Session, request: pb.PlacementFeasibleRequest
) -> pb.PlacementFeasibleResponse:
    """Judge the group by each number of pods."""
    pod, plugin, group = session.pod(request.call.pod), session.plugin, group_of(request.group)
    verdicts = []
    for each in request.progress:
        progress = PlacementProgress(each.remaining, each.scheduled)
        try:
            answer = await ask(plugin.placement_feasible, group, pod, progress)
            verdicts.append(pack_status(status_of(answer)))
        except ContractError as error:
            verdicts.append(failure(plugin, "placement_feasible", error))
    return pb.PlacementFeasibleResponse(verdicts=verdicts)


async def pod_group_post_filter(
    session: Session, request: pb.PodGroupPostFilterRequest
) -> pb.PodGroupPostFilterResponse:
    """Ask for victims, after the group was found unschedulable."""
    await session.catch_up(request.call)
    pod, plugin, nodes = session.pod(request.call.pod), session.plugin, session.nodes(request.call)
    generation, proposals = session.mirror.generation, []
    table = tuple(Reason(each.text, Code(each.code)) for each in request.verdicts.reasons)
    verdicts = unpack_verdicts(request.verdicts, table, len(nodes))
    try:
        answer = await ask(plugin.pod_group_post_filter, group_of(request.group), pod, nodes, verdicts)
        if isinstance(answer, Sequence) and not isinstance(answer, str):
            proposals = [_packed(each) for each in answer]
            status = pack_status(SUCCESS)
        else:
            status = pack_status(status_of(answer))
    except ContractError as error:
        status, proposals = failure(plugin, "pod_group_post_filter", error), []
    return pb.PodGroupPostFilterResponse(generation=generation, status=status, proposals=proposals)


def group_of(message: placement_pb2.PodGroup) -> PodGroup:
    """Return the group that a message is about."""
    return PodGroup(message.namespace, message.name, tuple(map(key_of, message.pods)))


def _packed(proposal: object) -> pb.GroupPreemption:
    if not isinstance(proposal, GroupPreemption) or not proposal.victim_uids:
        raise ContractError(f"expected a GroupPreemption with victims, got {proposal!r}")
    return pb.GroupPreemption(victim_uids=proposal.victim_uids)
