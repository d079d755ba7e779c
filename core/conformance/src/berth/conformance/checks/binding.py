"""Permit, PreBind, Bind, PostBind, CycleDone and PostFilter."""

from typing import Any

import msgspec

from berth.config.out_of_tree.pod_metadata import is_reserved
from berth.conformance.check import check, expect
from berth.conformance.checks.reserving import Hold, reservable
from berth.conformance.host_state import HostState, shown
from berth.conformance.subject import PluginUnderTest, brief
from berth.out_of_tree.packing import status_of
from berth.out_of_tree.points.metadata_patch import read_patch
from berth_plugin_proto import common_pb2 as pb
from berth_plugin_proto import scheduling_pb2

CLAUSE = "Scheduling calls"
LIMITS = "Limits"
REFUSALS = {pb.CODE_UNSCHEDULABLE, pb.CODE_UNSCHEDULABLE_AND_UNRESOLVABLE, pb.CODE_ERROR}
PERMIT = {pb.CODE_SUCCESS, pb.CODE_WAIT, *REFUSALS}
PRE_BIND = {pb.CODE_SUCCESS, pb.CODE_PENDING, *REFUSALS}
BIND = {pb.CODE_SUCCESS, pb.CODE_SKIP, pb.CODE_ERROR}
POST_FILTER = {pb.CODE_SUCCESS, *REFUSALS}


async def _ready_to_bind(host: HostState) -> Hold:
    """A pod and its node, reserved where the plugin reserves."""
    if host.subject.offers("RESERVE"):
        return await reservable(host)
    return Hold(host.subject.pods[0], (host.names or ["node-0"])[0], 1)


async def _ask(host: HostState, name: str, hold: Hold) -> Any:
    return await host.ask(name, hold.pod, node_name=hold.node, of_call={"attempt": hold.attempt})


async def _verdict(host: HostState, name: str, allowed: set[Any]) -> Any:
    """The answer of that call, its status checked."""
    hold = await _ready_to_bind(host)
    response = await _ask(host, name, hold)
    status_of("under test", response.status)
    codes = ", ".join(sorted(pb.Code.Name(code) for code in allowed))
    expect(response.status.code in allowed, f"one of {codes}", brief(response))
    return response


@check(
    "permit/answer",
    "Permit lets the pod go on, stops it or makes it wait",
    CLAUSE,
    needs=("PERMIT",),
)
async def permit(subject: PluginUnderTest) -> None:
    """Nothing else is a leave."""
    await _verdict(await shown(subject), "Permit", PERMIT)


@check(
    "permit/timeout",
    "a wait has a timeout",
    CLAUSE,
    needs=("PERMIT",),
    after=("permit/answer",),
)
async def permit_timeout(subject: PluginUnderTest) -> None:
    """After that the attempt fails."""
    response = await _verdict(await shown(subject), "Permit", PERMIT)
    if response.status.code == pb.CODE_WAIT:
        expect(response.timeout.ToNanoseconds() > 0, "a timeout with WAIT", brief(response))


@check(
    "permit/repeated",
    "a repeated Permit has the same status",
    CLAUSE,
    needs=("PERMIT",),
    after=("permit/answer",),
)
async def permit_repeated(subject: PluginUnderTest) -> None:
    """The answer to the first may be lost."""
    host = await shown(subject)
    hold = await _ready_to_bind(host)
    first, second = [(await _ask(host, "Permit", hold)).status for _ in range(2)]
    expect(first.code == second.code, f"again {brief(first)}", brief(second))


@check("pre-bind/answer", "PreBind accepts or turns down", CLAUSE, needs=("PRE_BIND",))
async def pre_bind(subject: PluginUnderTest) -> None:
    """It is the last call before the binding is written."""
    await _verdict(await shown(subject), "PreBind", PRE_BIND)


@check(
    "pre-bind/patch",
    "PreBind's patch changes labels and annotations only",
    CLAUSE,
    needs=("PRE_BIND",),
    after=("pre-bind/answer",),
)
async def pre_bind_patch(subject: PluginUnderTest) -> None:
    """It is a merge patch of the pod's metadata."""
    response = await _verdict(await shown(subject), "PreBind", PRE_BIND)
    _check_patch(response)


@check(
    "reserve/patch",
    "Reserve's patch changes labels and annotations only",
    CLAUSE,
    needs=("RESERVE",),
    after=("reserve/answer",),
)
async def reserve_patch(subject: PluginUnderTest) -> None:
    """It is written in PreBind's place."""
    host = await shown(subject)
    hold = await reservable(host)
    _check_patch(await _ask(host, "Reserve", hold))


@check(
    "pre-bind/keys",
    "PreBind's patch writes keys and values that a plugin may write",
    LIMITS,
    needs=("PRE_BIND",),
    after=("pre-bind/patch",),
)
async def pre_bind_keys(subject: PluginUnderTest) -> None:
    """Plugins do not write Kubernetes' own keys, and an entry of the plugin list has to allow the others."""
    response = await _verdict(await shown(subject), "PreBind", PRE_BIND)
    _check_keys(response)


@check(
    "reserve/keys",
    "Reserve's patch writes keys and values that a plugin may write",
    LIMITS,
    needs=("RESERVE",),
    after=("reserve/patch",),
)
async def reserve_keys(subject: PluginUnderTest) -> None:
    """As PreBind's."""
    host = await shown(subject)
    _check_keys(await _ask(host, "Reserve", await reservable(host)))


def _check_keys(response: Any) -> None:
    if not response.HasField("metadata_patch"):
        return
    patch = read_patch("under test", response.metadata_patch)
    reserved = [key for changes in patch.values() for key in changes if is_reserved(key)]
    expect(not reserved, "no keys of Kubernetes and its controllers", reserved)


def _check_patch(response: Any) -> None:
    if not response.HasField("metadata_patch"):
        return
    wanted = '{"annotations": {...}, "labels": {...}} with texts or null'
    try:
        patch = msgspec.json.decode(response.metadata_patch, type=dict[str, dict[str, str | None]])
    except msgspec.DecodeError as error:
        patch = {str(error): {}}
    expect(patch.keys() <= {"annotations", "labels"}, wanted, response.metadata_patch[:200])


@check(
    "pre-bind/repeated",
    "a repeated PreBind has the same answer",
    CLAUSE,
    needs=("PRE_BIND",),
    after=("pre-bind/answer",),
)
async def pre_bind_repeated(subject: PluginUnderTest) -> None:
    """The answer to the first may be lost."""
    host = await shown(subject)
    hold = await _ready_to_bind(host)
    first, second = [await _ask(host, "PreBind", hold) for _ in range(2)]
    expect(first == second, f"again {brief(first)}", brief(second))


@check("bind/answer", "Bind says SUCCESS, SKIP or ERROR", CLAUSE, needs=("BIND",))
async def bind(subject: PluginUnderTest) -> None:
    """It writes the binding, or it does not; the pod is the kit's own and on no API server."""
    await _verdict(await shown(subject), "Bind", BIND)


@check(
    "post-bind/any-generation",
    "PostBind does not ask which generation is held",
    CLAUSE,
    needs=("POST_BIND",),
)
async def post_bind(subject: PluginUnderTest) -> None:
    """Epoch and generation are not checked, and the pod may be left out."""
    host = await shown(subject)
    of_call = {"with_object": False, "generation": 77, "epoch": "bygone"}
    await host.ask("PostBind", subject.pods[0], node_name="node-0", of_call=of_call)


@check("cycle-done/outcomes", "every outcome of an attempt is heard", CLAUSE, needs=("CYCLE_DONE",))
async def outcomes(subject: PluginUnderTest) -> None:
    """Of attempts that the plugin was never asked about too."""
    host = await shown(subject)
    for outcome in sorted(set(scheduling_pb2.CycleOutcome.values()) - {0}):
        await host.ask("CycleDone", subject.pods[0], outcome=outcome, of_call={"with_object": False})


@check(
    "cycle-done/any-generation",
    "CycleDone does not ask which generation is held",
    CLAUSE,
    needs=("CYCLE_DONE",),
    after=("cycle-done/outcomes",),
)
async def cycle_done(subject: PluginUnderTest) -> None:
    """Epoch and generation are not checked."""
    host = await shown(subject)
    of_call = {"with_object": False, "generation": 77, "epoch": "bygone"}
    outcome = scheduling_pb2.CYCLE_OUTCOME_ABORTED
    await host.ask("CycleDone", subject.pods[0], outcome=outcome, of_call=of_call)


async def _made_room(subject: PluginUnderTest) -> tuple[HostState, list[Any]]:
    host = await shown(subject)
    reason = pb.Reason(code=pb.CODE_UNSCHEDULABLE, text="the kit turns all nodes down")
    verdicts = scheduling_pb2.Verdicts(all=1, reasons=[reason])
    return host, [await host.ask("PostFilter", pod, verdicts=verdicts) for pod in subject.pods]


@check(
    "post-filter/answer",
    "PostFilter helps, or says that it can't",
    CLAUSE,
    needs=("POST_FILTER",),
)
async def post_filter(subject: PluginUnderTest) -> None:
    """Its status decides whether another plugin is asked."""
    _, responses = await _made_room(subject)
    for response in responses:
        status_of("under test", response.status)
        expect(
            response.status.code in POST_FILTER, "SUCCESS, an unschedulable code or ERROR", brief(response)
        )


@check(
    "post-filter/victims",
    "victims are named with SUCCESS and a node, and are on nodes",
    CLAUSE,
    needs=("POST_FILTER",),
    after=("post-filter/answer",),
)
async def victims(subject: PluginUnderTest) -> None:
    """A pod that is on no node is a protocol error; here no pod is placed."""
    host, responses = await _made_room(subject)
    for response in responses:
        placed = sorted(host.placed)
        expect(
            set(response.victim_uids) <= set(placed), f"victims among {placed}", list(response.victim_uids)
        )


@check(
    "post-filter/node",
    "the nominated node is one that is there",
    CLAUSE,
    needs=("POST_FILTER", "nodes"),
    after=("post-filter/answer",),
)
async def nominated(subject: PluginUnderTest) -> None:
    """An empty name takes a nomination back."""
    host, responses = await _made_room(subject)
    for response in responses:
        known = response.nominated_node_name in ("", *host.names)
        expect(known, f"one of {', '.join(host.names)}", response.nominated_node_name)
