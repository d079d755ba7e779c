"""Placements of pod groups: the author's sets of nodes as bitmaps, the author's scores packed."""

from collections.abc import Iterator, Mapping

import numpy as np

from berth_plugin_proto import placement_pb2 as pb
from berth_sdk.errors import ContractError
from berth_sdk.groups import group_of
from berth_sdk.nodes import Nodes
from berth_sdk.outcomes import SKIP, SUCCESS, Placements, PodGroup, ProposedPlacement, Scores, status_of
from berth_sdk.packing import pack_bits, pack_scores, pack_status, unpack_bits
from berth_sdk.scheduling import ask, failure
from berth_sdk.session import Session


async def generate_placements(
    session: Session, request: pb.GeneratePlacementsRequest
) -> pb.GeneratePlacementsResponse:
    """Say which sets of nodes the group may go to."""
    await session.catch_up(request.call)
    pod, plugin = session.pod(request.call.pod), session.plugin
    nodes = session.nodes(request.call, request.candidates if request.HasField("candidates") else None)
    try:
        answer = await ask(plugin.generate_placements, group_of(request.group), pod, nodes)
        placements = list(_packed(answer, nodes)) if isinstance(answer, Mapping) else []
        status = pack_status(SUCCESS if isinstance(answer, Mapping) else status_of(answer))
    except ContractError as error:
        status, placements = failure(plugin, "generate_placements", error), []
    return pb.GeneratePlacementsResponse(
        generation=session.mirror.generation, status=status, placements=placements
    )


async def score_placements(
    session: Session, request: pb.ScorePlacementsRequest
) -> pb.ScorePlacementsResponse:
    """Score the placements in which the group fits."""
    await session.catch_up(request.call)
    pod, plugin, group = session.pod(request.call.pod), session.plugin, group_of(request.group)
    nodes = session.nodes(request.call)
    proposed = [_proposed(each, group, len(nodes)) for each in request.proposed]
    generation = session.mirror.generation
    try:
        answer = await ask(plugin.score_placements, group, pod, nodes, proposed)
        if answer is None:
            return pb.ScorePlacementsResponse(generation=generation, status=pack_status(SKIP))
        scores = answer if isinstance(answer, Scores) else Scores(np.asarray(answer), plugin.normalization)
        packed = pack_scores(scores, None, len(proposed))
    except ContractError as error:
        return pb.ScorePlacementsResponse(
            generation=generation, status=failure(plugin, "score_placements", error)
        )
    return pb.ScorePlacementsResponse(generation=generation, status=pack_status(SUCCESS), scores=packed)


def _packed(placements: Placements, nodes: Nodes) -> Iterator[pb.Placement]:
    """Each set as a bitmap, without what was not asked about; an empty one is none.

    Raises: ContractError: a set is not for this many nodes, or has no name.
    """
    for name, given in placements.items():
        mask = np.asarray(given)
        if not name or mask.shape != (len(nodes),) or mask.dtype != np.bool_:
            raise ContractError(f"placement {name!r}: expected a name and {len(nodes)} of bool")
        chosen = mask if nodes.candidates is None else mask & nodes.candidates
        if chosen.any():
            yield pb.Placement(name=name, bitmap=pack_bits(chosen))


def _proposed(message: pb.ProposedPlacement, group: PodGroup, count: int) -> ProposedPlacement:
    """Raises: ValueError: the message is not about this group and this many nodes."""
    indices = list(zip(message.pod_indices, message.node_indices, strict=True))
    if any(pod >= len(group.pods) or node >= count for pod, node in indices):
        raise ValueError(f"a proposal names pods or nodes that are not there: {len(group.pods)}, {count}")
    return ProposedPlacement(
        message.placement.name,
        unpack_bits(message.placement.bitmap, count),
        tuple((group.pods[pod], node) for pod, node in indices),
    )
