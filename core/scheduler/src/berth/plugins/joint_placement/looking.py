"""What the engine says of each kind of pods: alone, and beside one pod more."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from berth.framework.group_plans import PlanningGround
from berth.framework.node_scores import NodeScores
from berth.objects.pods.pod import Pod
from berth.plugins.joint_placement.candidates import candidates
from berth.plugins.joint_placement.model import Counts, PodKind
from berth.plugins.joint_placement.rules import Rule, alone, room_of
from berth.snapshot.columns.growing import Ints, Mask, Rows
from berth.snapshot.pod_info import PodInfo
from berth.snapshot.snapshot import Snapshot

MAX_COSTED = 8
"""Of so many kinds, the largest, the engine is asked what one pod more on a node costs."""

NOTHING = NodeScores(np.zeros(0, dtype=np.intp), np.zeros(0, dtype=np.int64))


async def seen_alone(
    alike: Sequence[Sequence[Pod]], rules: Sequence[Rule], begun: Counts, ground: PlanningGround
) -> list[PodKind]:
    """The kinds with no pod of the group placed; rows that pods began on are among theirs.

    Raises: PluginError where a plugin fails.
    """
    many = sum(len(pods) for pods in alike)
    largest = sorted(range(len(alike)), key=lambda i: -len(alike[i]))[:MAX_COSTED]
    kinds: list[PodKind] = []
    for i, pods in enumerate(alike):
        one = alone(pods[0])
        scores = await ground.scores(one) or NOTHING
        wanted = frozenset(row for kind, row in begun if kind == i)
        at = candidates(i, len(pods), many, scores, rules=rules, wanted=wanted)
        rows, totals, requests = scores.rows[at], scores.totals[at], PodInfo(one).requests
        most, drops = _room(requests, rows, len(pods), ground.nodes), np.full(rows.size, np.nan)
        if i in largest and rows.size:
            drops, fits = await _with_one_more(one, rows, totals, ground)
            most = np.where(fits, most, 1)
        kinds.append(PodKind(pods, requests, rows, totals, most, drops))
    return kinds


def _found(rows: Rows, scores: NodeScores) -> tuple[Rows, Mask]:
    """Where each row is in the scores, and whether it is there. Shapes: rows, both results (k,)."""
    places: Rows = np.searchsorted(scores.rows, rows)
    there = np.zeros(rows.size, dtype=bool)
    inside = places < scores.rows.size
    there[inside] = scores.rows[places[inside]] == rows[inside]
    return places, there


def _room(requests: Mapping[str, int], rows: Rows, many: int, nodes: Snapshot) -> Ints:
    """How many such pods fit on each row, by their requests. Shapes: rows, result (k,)."""
    most: Ints = np.minimum(nodes.allowed_pods[rows] - nodes.pod_count[rows], many)
    for place, name in enumerate(nodes.resource_names):
        asked = requests.get(name, 0)
        if asked > 0:
            fit = (nodes.allocatable[place, rows] - nodes.requested[place, rows]) // asked
            # The engine says that one fits: where the columns say otherwise, it does not go by them.
            most = np.where(fit > 0, np.minimum(most, fit), most)
    room: Ints = np.maximum(most, 1)
    return room


async def _with_one_more(
    pod: Pod, rows: Rows, totals: Ints, ground: PlanningGround
) -> tuple[NDArray[np.float64], Mask]:
    """How much less the pod scores on a row with one such pod more, and whether it fits there then.

    Shapes: rows, totals, both results (k,).
    """
    names = ground.nodes.names
    more = (room_of(pod, f"one-more-{row}").placed_on(names[row]) for row in rows.tolist())
    await ground.place(map(PodInfo, more))
    after = await ground.scores(pod) or NOTHING
    await ground.take_back()
    places, fits = _found(rows, after)
    drops = np.full(rows.size, np.nan)
    drops[fits] = totals[fits] - after.totals[places[fits]]
    return drops, fits
