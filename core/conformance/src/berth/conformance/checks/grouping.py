"""PlacementFeasible and PodGroupPostFilter: whether a pod group may go, and who could be evicted for it."""

from collections.abc import Sequence
from typing import Any

from berth.conformance.answers import same
from berth.conformance.check import check, expect
from berth.conformance.checks.placing import group
from berth.conformance.host_state import HostState, shown
from berth.conformance.subject import PluginUnderTest
from berth.out_of_tree.limits import GROUP_PROPOSALS
from berth.out_of_tree.packing import status_of
from berth.out_of_tree.points.group_points import group_verdicts_of
from berth_plugin_proto import common_pb2, group_pb2, scheduling_pb2

CLAUSE = "Pod groups as a whole"
JUDGES, PROPOSES = ("PLACEMENT_FEASIBLE",), ("POD_GROUP_POST_FILTER", "nodes")
PROGRESS = ((3, 0), (2, 1), (1, 2), (0, 3), (0, 0))
CODES = frozenset(
    {
        common_pb2.CODE_SUCCESS,
        common_pb2.CODE_UNSCHEDULABLE,
        common_pb2.CODE_UNSCHEDULABLE_AND_UNRESOLVABLE,
        common_pb2.CODE_ERROR,
    }
)


async def judged(host: HostState, numbers: Sequence[tuple[int, int]], *, stub: Any = None) -> list[Any]:
    """The verdict at each (remaining, scheduled)."""
    progress = [group_pb2.PlacementProgress(remaining=r, scheduled=s) for r, s in numbers]
    response = await host.ask(
        "PlacementFeasible", host.subject.pods[0], group=group(host), progress=progress, stub=stub
    )
    return list(response.verdicts)


async def occupied(subject: PluginUnderTest) -> HostState:
    """A plugin that holds a small cluster with a pod on its first node."""
    host = await shown(subject)
    pod = subject.pods[-1]
    other = {**pod, "metadata": {**pod["metadata"], "name": "placed", "uid": "placed"}}
    await host.step(host.put_pod(other, host.names[0]))
    return host


async def proposed(host: HostState, *, stub: Any = None) -> Any:
    """The answer about the group of the sample pods."""
    reason = common_pb2.Reason(code=common_pb2.CODE_UNSCHEDULABLE, text="the kit turns all nodes down")
    verdicts = scheduling_pb2.Verdicts(all=1, reasons=[reason])
    pod = host.subject.pods[0]
    return await host.ask("PodGroupPostFilter", pod, group=group(host), verdicts=verdicts, stub=stub)


@check(
    "placement-feasible/answer",
    "there is a verdict on each number of pods that was asked about",
    CLAUSE,
    needs=JUDGES,
)
async def verdicts(subject: PluginUnderTest) -> None:
    """SUCCESS, WAIT, UNSCHEDULABLE; the host takes ERROR for a failed call."""
    response = group_pb2.PlacementFeasibleResponse(verdicts=await judged(await shown(subject), PROGRESS))
    group_verdicts_of("under test", len(PROGRESS), response)


@check(
    "placement-feasible/one-by-one",
    "a number of pods has the verdict that it has alone",
    CLAUSE,
    needs=JUDGES,
    after=("placement-feasible/answer",),
)
async def verdicts_alone(subject: PluginUnderTest) -> None:
    """The host asks about what may come in one call, and in another where a pod finds no node."""
    host = await shown(subject)
    together = await judged(host, PROGRESS)
    alone = [(await judged(host, [each]))[0] for each in reversed(PROGRESS)]
    same(together, alone[::-1], "the verdicts as asked together")


@check(
    "pod-group-post-filter/answer",
    "PodGroupPostFilter helps, or says that it can't",
    CLAUSE,
    needs=PROPOSES,
)
async def proposals(subject: PluginUnderTest) -> None:
    """Its status decides whether another plugin is asked; proposals come with SUCCESS only."""
    response = await proposed(await occupied(subject))
    status_of("under test", response.status)
    code = response.status.code
    expect(code in CODES, "SUCCESS, an unschedulable code or ERROR", common_pb2.Code.Name(code))
    many = len(response.proposals)
    expect(not many or code == common_pb2.CODE_SUCCESS, "no proposals", f"{many} of them")
    expect(many <= GROUP_PROPOSALS, f"at most {GROUP_PROPOSALS} proposals", many)


@check(
    "pod-group-post-filter/victims",
    "victims of a proposal are on nodes, and named once",
    CLAUSE,
    needs=PROPOSES,
    after=("pod-group-post-filter/answer",),
)
async def group_victims(subject: PluginUnderTest) -> None:
    """A proposal without victims would change nothing."""
    host = await occupied(subject)
    for each in (await proposed(host)).proposals:
        named = list(each.victim_uids)
        expect(bool(named) and len(set(named)) == len(named), "victims, each once", named)
        expect(set(named) <= set(host.placed), f"victims among {sorted(host.placed)}", named)


@check(
    "pod-group-post-filter/generation",
    "the answer says which generation its proposals are about",
    "Scheduling calls",
    needs=PROPOSES,
    after=("pod-group-post-filter/answer",),
)
async def proposals_generation(subject: PluginUnderTest) -> None:
    """As for Filter."""
    host = await occupied(subject)
    came = (await proposed(host)).generation
    expect(came == host.generation, f"generation {host.generation}", came)
