"""GeneratePlacements and ScorePlacements: where a pod group may go as a whole."""

from typing import Any

import numpy as np

from berth.conformance.answers import same
from berth.conformance.check import check, expect
from berth.conformance.host_state import HostState, shown
from berth.conformance.subject import PluginUnderTest
from berth.framework.interface import Placement
from berth.out_of_tree.packing import normalized, scores_of, status_of
from berth.out_of_tree.points.placement import placements_of
from berth_plugin_proto import common_pb2, placement_pb2

CLAUSE = "Placements of pod groups"
GENERATES, SCORES = ("PLACEMENT_GENERATE", "nodes"), ("PLACEMENT_SCORE", "nodes")
CODES = frozenset(
    {
        common_pb2.CODE_SUCCESS,
        common_pb2.CODE_SKIP,
        common_pb2.CODE_UNSCHEDULABLE,
        common_pb2.CODE_UNSCHEDULABLE_AND_UNRESOLVABLE,
        common_pb2.CODE_ERROR,
    }
)


def group(host: HostState) -> placement_pb2.PodGroup:
    """The sample pods as one group."""
    refs = [host.call(pod, with_object=False).pod for pod in host.subject.pods]
    return placement_pb2.PodGroup(namespace="default", name="group", pods=refs)


async def generated(
    host: HostState, rows: list[int] | None = None, *, stub: Any = None
) -> tuple[Any, list[Placement]]:
    """The answer, and its placements. Raises: ProtocolError."""
    candidates = None if rows is None else host.candidates(rows)
    response = await host.ask(
        "GeneratePlacements", host.subject.pods[0], group=group(host), candidates=candidates, stub=stub
    )
    n = len(host.nodes)
    parent = Placement("", np.arange(n) if rows is None else np.array(rows))
    return response, list(placements_of("under test", response, parent, n))


def as_lists(placements: list[Placement]) -> list[tuple[str, list[int]]]:
    """Names and rows, to compare."""
    return [(each.name, each.rows.tolist()) for each in placements]


async def scored(host: HostState, rows: list[int], *, stub: Any = None) -> Any:
    """The answer about a placement for each of these nodes, with the group's first pod on it."""
    proposed = [
        placement_pb2.ProposedPlacement(
            placement=placement_pb2.Placement(name=f"on-{row}", bitmap=host.candidates([row]).bitmap),
            pod_indices=[0],
            node_indices=[row],
        )
        for row in rows
    ]
    pod = host.subject.pods[0]
    return await host.ask("ScorePlacements", pod, group=group(host), proposed=proposed, stub=stub)


@check("placements/answer", "placements are sets of nodes with names of their own", CLAUSE, needs=GENERATES)
async def placements(subject: PluginUnderTest) -> None:
    """None is empty, and no two share a name."""
    await generated(await shown(subject))


@check(
    "placements/status",
    "placements come with SUCCESS only",
    CLAUSE,
    needs=GENERATES,
    after=("placements/answer",),
)
async def placements_status(subject: PluginUnderTest) -> None:
    """A group that may go nowhere has none."""
    response, found = await generated(await shown(subject))
    status_of("under test", response.status)
    code = response.status.code
    expect(code in CODES, "SUCCESS, SKIP, an unschedulable code or ERROR", common_pb2.Code.Name(code))
    expect(not found or code == common_pb2.CODE_SUCCESS, "no placements", f"{len(found)} of them")


@check(
    "placements/generation",
    "the answer says which generation its placements are about",
    "Scheduling calls",
    needs=GENERATES,
    after=("placements/answer",),
)
async def placements_generation(subject: PluginUnderTest) -> None:
    """As for Filter."""
    host = await shown(subject)
    came = (await generated(host))[0].generation
    expect(came == host.generation, f"generation {host.generation}", came)


@check(
    "placements/deterministic",
    "the same group has the same placements",
    CLAUSE,
    needs=GENERATES,
    after=("placements/answer",),
)
async def placements_deterministic(subject: PluginUnderTest) -> None:
    """In the same order: the first of equal ones is tried first."""
    host = await shown(subject)
    first = as_lists((await generated(host))[1])
    same(first, as_lists((await generated(host))[1]), "the same placements")


@check(
    "placements/candidates",
    "placements have no nodes but those asked about",
    CLAUSE,
    needs=GENERATES,
    after=("placements/answer",),
)
async def placements_candidates(subject: PluginUnderTest) -> None:
    """The host makes them of a part of the cluster."""
    host = await shown(subject)
    await generated(host, list(range(0, len(host.nodes), 2)))


@check(
    "placement-scores/answer",
    "each placement has a score that can be normalized as the answer says",
    CLAUSE,
    needs=SCORES,
)
async def scores(subject: PluginUnderTest) -> None:
    """0 to 100 without, not negative where the highest becomes 100."""
    host = await shown(subject)
    rows = list(range(len(host.nodes)))
    response = await scored(host, rows)
    if response.status.code == common_pb2.CODE_SUCCESS:
        raw = scores_of("under test", response.scores, len(rows))
        normalized("under test", raw, response.scores.normalization)


@check(
    "placement-scores/status",
    "scores of placements are there exactly when the status is SUCCESS",
    CLAUSE,
    needs=SCORES,
    after=("placement-scores/answer",),
)
async def scores_status(subject: PluginUnderTest) -> None:
    """SUCCESS, SKIP or ERROR: scores turn no group down."""
    response = await scored(await shown(subject), [0, 1])
    code = response.status.code
    allowed = (common_pb2.CODE_SUCCESS, common_pb2.CODE_SKIP, common_pb2.CODE_ERROR)
    expect(code in allowed, "SUCCESS, SKIP or ERROR", common_pb2.Code.Name(code))
    wanted = code == common_pb2.CODE_SUCCESS
    expect(response.HasField("scores") == wanted, f"scores: {wanted}", response.HasField("scores"))


@check(
    "placement-scores/one-by-one",
    "a placement has the score that it has alone",
    CLAUSE,
    needs=SCORES,
    after=("placement-scores/answer", "placement-scores/status"),
)
async def scores_alone(subject: PluginUnderTest) -> None:
    """The host asks in several calls where one message can't hold all."""
    host = await shown(subject)
    rows = list(range(len(host.nodes)))
    together = await scored(host, rows)
    if together.status.code != common_pb2.CODE_SUCCESS:
        return
    raw = scores_of("under test", together.scores, len(rows)).tolist()
    alone = [scores_of("under test", (await scored(host, [row])).scores, 1).tolist()[0] for row in rows]
    same(raw, alone, "the scores as asked together")
