"""PlacementGenerate and PlacementScore of a sidecar.

Placements come as bitmaps over the nodes of a generation, scores as one number for each placement. The
group's pods are sent without their objects; a proposed placement refers to them by index.

Source: docs/protocol.md "Placements of pod groups".
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from berth.config.catalogue import ExtensionPoint
from berth.framework.attempts.cycle_record import CycleRecord
from berth.framework.attempts.cycle_state import CycleState
from berth.framework.interface import (
    Placement,
    PlacementGeneratePlugin,
    PlacementScorePlugin,
    PlacementsResult,
    ProposedPlacement,
    Scores,
)
from berth.framework.status import failed
from berth.objects.pods.pod import Pod
from berth.out_of_tree.calls import Caller
from berth.out_of_tree.errors import ProtocolError, SidecarError
from berth.out_of_tree.limits import NAME_BYTES, PLACEMENT_NAME_BYTES, PLACEMENTS
from berth.out_of_tree.packing import bitmap, bits_of, normalized, scores_of, status_of, succeeded
from berth.out_of_tree.plugin_text import bounded
from berth.out_of_tree.points.sidecar_point import SidecarPoint
from berth.plugins.pod_group_lookup import group_states
from berth.snapshot.pod_group_states import AnyKey
from berth.snapshot.snapshot import Snapshot
from berth_plugin_proto import common_pb2, identity_pb2, placement_pb2, scheduling_pb2

PLACEMENT_GENERATE = identity_pb2.EXTENSION_POINT_PLACEMENT_GENERATE
PLACEMENT_SCORE = identity_pb2.EXTENSION_POINT_PLACEMENT_SCORE
PODS_OF_A_GROUP = 8000
"""Pods that are sent of a group: some 350 bytes each stay below gRPC's 4 MiB."""
PROPOSED_BYTES = 2 << 20
"""What the placements of one ScorePlacements may come to, beside the group."""


class PlacementPoint(SidecarPoint, PlacementGeneratePlugin, PlacementScorePlugin):
    """PlacementGenerate and PlacementScore."""

    async def generate_placements(
        self, state: CycleState, group: AnyKey, nodes: Snapshot, parent: Placement
    ) -> PlacementsResult:
        """The plugin's placements within the parent; the parent where it has no opinion."""
        caller, pod = self._answers(state).caller, state.read(CycleRecord).pod
        unasked = PlacementsResult(placements=(parent,))
        if not self._offers(caller, PLACEMENT_GENERATE):
            return unasked
        within = scheduling_pb2.Candidates(bitmap=bitmap(parent.rows, len(nodes)))
        request = placement_pb2.GeneratePlacementsRequest(
            call=caller.head(state, pod),
            group=group_message(group, self._waiting(state, group)),
            candidates=within if parent.rows.size < len(nodes) else None,
        )
        read = partial(self._placements, caller, request, parent, nodes)
        try:
            return await caller.ask("GeneratePlacements", request, state, read)
        except SidecarError as error:
            if self._ignored(state, ExtensionPoint.PLACEMENT_GENERATE, pod, error):
                return unasked
            return PlacementsResult(failed(error))

    def _placements(
        self,
        caller: Caller,
        request: placement_pb2.GeneratePlacementsRequest,
        parent: Placement,
        nodes: Snapshot,
        response: placement_pb2.GeneratePlacementsResponse,
    ) -> PlacementsResult:
        """The response's placements. Raises: SidecarError."""
        status = status_of(self.name, response.status)
        caller.check_generation(request, response.generation)
        if status.rejected:
            return PlacementsResult(status)
        if status.skip:
            return PlacementsResult(placements=(parent,))
        succeeded(self.name, "GeneratePlacements", status)
        return PlacementsResult(placements=tuple(placements_of(self.name, response, parent, len(nodes))))

    async def score_placements(
        self, state: CycleState, group: AnyKey, nodes: Snapshot, proposed: Sequence[ProposedPlacement]
    ) -> Scores:
        """The plugin's scores, from 0 to 100; zero where it has no opinion. Shapes: result int64 (k,)."""
        caller, pod = self._answers(state).caller, state.read(CycleRecord).pod
        nothing: Scores = np.zeros(len(proposed), dtype=np.int64)
        if not self._offers(caller, PLACEMENT_SCORE):
            return nothing
        try:
            scores = await self._ask_scores(caller, state, group, nodes, proposed)
        except SidecarError as error:
            if not self._ignored(state, ExtensionPoint.PLACEMENT_SCORE, pod, error):
                raise
            return nothing
        return nothing if scores is None else scores

    async def _ask_scores(
        self,
        caller: Caller,
        state: CycleState,
        group: AnyKey,
        nodes: Snapshot,
        proposed: Sequence[ProposedPlacement],
    ) -> Scores | None:
        """The scores, in as few calls as messages hold; None for no opinion. Raises: SidecarError."""
        waiting, call = self._waiting(state, group), caller.head(state, state.read(CycleRecord).pod)
        number, about = {each.uid: i for i, each in enumerate(waiting)}, group_message(group, waiting)
        raw: list[Scores] = []
        ways: set[int] = set()
        for part in _parts(_proposed(one, nodes, number) for one in proposed):
            request = placement_pb2.ScorePlacementsRequest(call=call, group=about, proposed=part)
            read = partial(self._scores, caller, request)
            answer = await caller.ask("ScorePlacements", request, state, read)
            if answer is None:
                return None
            raw.append(answer[0])
            ways.add(answer[1])
        if len(ways) > 1:
            raise ProtocolError(self.name, "scores of one group's placements are normalized in several ways")
        return normalized(self.name, np.concatenate(raw), ways.pop())

    def _scores(
        self,
        caller: Caller,
        request: placement_pb2.ScorePlacementsRequest,
        response: placement_pb2.ScorePlacementsResponse,
    ) -> tuple[Scores, int] | None:
        """Raw scores and their normalization; None for no opinion. Raises: SidecarError."""
        status = status_of(self.name, response.status)
        caller.check_generation(request, response.generation)
        if status.skip:
            return None
        succeeded(self.name, "ScorePlacements", status)
        raw = scores_of(self.name, response.scores, len(request.proposed))
        return raw, response.scores.normalization

    def _waiting(self, state: CycleState, group: AnyKey) -> list[Pod]:
        """The group's pods without a node, up to the limit of a message."""
        return group_states(self._handle, state).known(group).unscheduled[:PODS_OF_A_GROUP]


def placements_of(
    plugin: str, response: placement_pb2.GeneratePlacementsResponse, parent: Placement, n: int
) -> Iterator[Placement]:
    """The placements over n nodes, each within the parent. Raises: ProtocolError."""
    if len(response.placements) > PLACEMENTS:
        raise ProtocolError(plugin, f"{len(response.placements)} placements, at most {PLACEMENTS} are tried")
    within = np.zeros(n, dtype=bool)
    within[parent.rows] = True
    named: set[str] = set()
    for each in response.placements:
        name = bounded(each.name, NAME_BYTES)
        if not each.name or len(each.name.encode()) > PLACEMENT_NAME_BYTES:
            raise ProtocolError(
                plugin, f"a placement needs a name of 1 to {PLACEMENT_NAME_BYTES} bytes: {name}"
            )
        if each.name in named:
            raise ProtocolError(plugin, f"two placements are named {name}")
        named.add(each.name)
        chosen = bits_of(plugin, each.bitmap, n)
        if not chosen.any() or (chosen & ~within).any():
            raise ProtocolError(plugin, f"placement {name} has no node, or one that was not asked about")
        yield Placement(bounded(each.name), np.flatnonzero(chosen))


def group_message(group: AnyKey, waiting: Sequence[Pod]) -> placement_pb2.PodGroup:
    """The group, and its pods without their objects."""
    refs = [common_pb2.PodRef(uid=pod.uid, namespace=pod.namespace, name=pod.name) for pod in waiting]
    return placement_pb2.PodGroup(namespace=group.namespace, name=group.name, pods=refs)


def _proposed(
    one: ProposedPlacement, nodes: Snapshot, number: Mapping[str, int]
) -> placement_pb2.ProposedPlacement:
    sent = [(number[pod.uid], nodes.row_of[name]) for pod, name in one.assignments if pod.uid in number]
    return placement_pb2.ProposedPlacement(
        placement=placement_pb2.Placement(
            name=one.placement.name, bitmap=bitmap(one.placement.rows, len(nodes))
        ),
        pod_indices=[index for index, _ in sent],
        node_indices=[row for _, row in sent],
    )


def _parts(
    proposed: Iterable[placement_pb2.ProposedPlacement],
) -> Iterator[list[placement_pb2.ProposedPlacement]]:
    """The placements in order, in batches of one message."""
    part: list[placement_pb2.ProposedPlacement] = []
    size = 0
    for each in proposed:
        if part and size + each.ByteSize() > PROPOSED_BYTES:
            yield part
            part, size = [], 0
        part.append(each)
        size += each.ByteSize()
    yield part
