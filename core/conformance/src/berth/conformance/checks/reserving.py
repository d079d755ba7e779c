"""Reserve and Unreserve: what is held for an attempt is held once, and given back by that attempt alone."""

from contextlib import suppress
from itertools import product
from typing import Any, NamedTuple

import grpc.aio

from berth.conformance.answers import Comparable, filtered, passing, picture, same
from berth.conformance.check import check, expect
from berth.conformance.host_state import HostState, shown
from berth.conformance.samples import Document
from berth.conformance.subject import PluginUnderTest, brief, skip
from berth.out_of_tree.packing import status_of
from berth_plugin_proto import common_pb2

CLAUSE = "Scheduling calls"
SHOWS_WITH_ROOM = 2
CUT_OFF_SECONDS = 0.2
NEEDS = ("RESERVE",)
ALLOWED = frozenset(common_pb2.Code.values()) - {
    common_pb2.CODE_UNSPECIFIED,
    common_pb2.CODE_SKIP,
    common_pb2.CODE_WAIT,
}


async def reserve(host: HostState, pod: Document, node: str, attempt: int = 1) -> Any:
    """Reserve's answer."""
    return await host.ask("Reserve", pod, node_name=node, of_call={"attempt": attempt})


async def unreserve(host: HostState, pod: Document, node: str, attempt: int = 1) -> None:
    """Take it back, as the host does: without the pod's object."""
    await host.ask("Unreserve", pod, node_name=node, of_call={"attempt": attempt, "with_object": False})


class Hold(NamedTuple):
    """What is reserved: the pod, its node, and the attempt."""

    pod: Document
    node: str
    attempt: int


async def reservable(host: HostState, attempt: int = 1) -> Hold:
    """Something that was just reserved: if there is such, it shows and leaves room for another.

    Tries pods and nodes, each in an attempt of its own.
    """
    before = await picture(host)
    best: tuple[int, Hold] | None = None
    nodes = host.names or [node["metadata"]["name"] for node in host.subject.nodes()]
    for pod, name in product(reversed(host.subject.pods), nodes):
        hold = Hold(pod, name, attempt)
        if (await reserve(host, *hold)).status.code == common_pb2.CODE_SUCCESS:
            rank = await _rank(host, hold, before)
            if rank == SHOWS_WITH_ROOM:
                return hold
            if best is None or rank > best[0]:
                best = rank, hold
        await unreserve(host, *hold)
        attempt += 1
    if best is None:
        raise skip("no sample pod could be reserved; give some with --pods and --nodes")
    hold = best[1]._replace(attempt=attempt)
    await reserve(host, *hold)
    return hold


async def _rank(host: HostState, hold: Hold, before: list[Comparable]) -> int:
    """How much can be seen of the reservation."""
    if await picture(host) == before:
        return 0
    if host.subject.offers("FILTER") and hold.node in host.names:
        row = host.names.index(hold.node)
        return 1 + (row in passing(await filtered(host, hold.pod), len(host.nodes)))
    return 1


@check(
    "reserve/answer",
    "Reserve accepts or turns down",
    CLAUSE,
    needs=NEEDS,
)
async def answer(subject: PluginUnderTest) -> None:
    """SUCCESS, an unschedulable code, PENDING or ERROR."""
    host = await shown(subject)
    for pod in subject.pods:
        response = await reserve(host, pod, host.names[0] if host.names else "node-0")
        status_of("under test", response.status)
        expect(response.status.code in ALLOWED, "SUCCESS or a refusal", brief(response))
        await unreserve(host, pod, host.names[0] if host.names else "node-0")


@check(
    "reserve/repeated",
    "a repeated Reserve takes nothing more",
    CLAUSE,
    needs=NEEDS,
    after=("reserve/answer",),
)
async def repeated(subject: PluginUnderTest) -> None:
    """The host may not know whether the first one arrived."""
    host = await shown(subject)
    hold = await reservable(host)
    once = await picture(host)
    again = await reserve(host, *hold)
    expect(again.status.code == common_pb2.CODE_SUCCESS, "SUCCESS again", brief(again))
    same(once, await picture(host), "the answers as after one Reserve")


@check(
    "reserve/same-answer",
    "a repeated Reserve has the same answer",
    CLAUSE,
    needs=NEEDS,
    after=(
        "reserve/answer",
        "reserve/repeated",
    ),
)
async def same_answer(subject: PluginUnderTest) -> None:
    """What was chosen for the attempt stays chosen."""
    host = await shown(subject)
    hold = await reservable(host)
    first, second = await reserve(host, *hold), await reserve(host, *hold)
    expect(first == second, f"again {brief(first)}", brief(second))


@check(
    "unreserve/gives-back",
    "Unreserve gives back what Reserve took",
    CLAUSE,
    needs=NEEDS,
    after=("reserve/answer",),
)
async def gives_back(subject: PluginUnderTest) -> None:
    """Nothing is left of the attempt."""
    host = await shown(subject)
    before = await picture(host)
    hold = await reservable(host)
    await unreserve(host, *hold)
    same(before, await picture(host), "the answers as before Reserve")


@check(
    "unreserve/repeated",
    "a repeated Unreserve gives back nothing more",
    CLAUSE,
    needs=NEEDS,
    after=(
        "reserve/answer",
        "unreserve/gives-back",
    ),
)
async def unreserved_again(subject: PluginUnderTest) -> None:
    """It can't fail, and may be repeated."""
    host = await shown(subject)
    before = await picture(host)
    hold = await reservable(host)
    for _ in range(2):
        await unreserve(host, *hold)
    same(before, await picture(host), "the answers as before Reserve")


@check(
    "unreserve/unknown",
    "an Unreserve of what was never reserved is harmless",
    CLAUSE,
    needs=NEEDS,
    after=("reserve/answer",),
)
async def unknown(subject: PluginUnderTest) -> None:
    """The host sends it for a Reserve that never arrived."""
    host = await shown(subject)
    before = await picture(host)
    for pod in subject.pods:
        await unreserve(host, pod, "nowhere")
    same(before, await picture(host), "the answers as before")


@check(
    "unreserve/old-attempt",
    "an Unreserve of an old attempt frees nothing of a newer one",
    CLAUSE,
    needs=NEEDS,
    after=(
        "reserve/answer",
        "unreserve/gives-back",
    ),
)
async def old_attempt(subject: PluginUnderTest) -> None:
    """It may be late."""
    host = await shown(subject)
    hold = await reservable(host, attempt=2)
    held = await picture(host)
    await unreserve(host, hold.pod, hold.node, hold.attempt - 1)
    same(held, await picture(host), "the answers as the newer attempt left them")


@check(
    "unreserve/cut-off",
    "a Reserve that was cut off takes nothing once it is unreserved",
    CLAUSE,
    needs=(*NEEDS, "nodes"),
    after=("unreserve/gives-back", "calls/waits"),
)
async def cut_off(subject: PluginUnderTest) -> None:
    """It waited for a generation when its deadline came; the generation comes later."""
    host = await shown(subject)
    hold = await reservable(host)
    await unreserve(host, *hold)
    before, again = await picture(host), hold._replace(attempt=hold.attempt + 1)
    of_call = {"attempt": again.attempt, "generation": host.generation + 1}
    request = host.request("Reserve", again.pod, node_name=again.node, of_call=of_call)
    with suppress(grpc.aio.AioRpcError):
        await subject.scheduling.Reserve(request, timeout=CUT_OFF_SECONDS)
    await unreserve(host, *again)
    await host.step()
    same(before, await picture(host), "the answers as before the call")


@check(
    "unreserve/any-generation",
    "Unreserve does not ask which generation is held",
    CLAUSE,
    needs=NEEDS,
    after=("reserve/answer",),
)
async def any_generation(subject: PluginUnderTest) -> None:
    """Epoch and generation are not checked: it can't fail."""
    host = await shown(subject)
    of_call = {"with_object": False, "generation": 77, "epoch": "bygone"}
    await host.ask("Unreserve", subject.pods[0], node_name="node-0", of_call=of_call)


@check(
    "reserve/new-epoch",
    "a new epoch voids all reservations",
    "State",
    needs=NEEDS,
    after=(
        "reserve/answer",
        "unreserve/gives-back",
    ),
)
async def new_epoch(subject: PluginUnderTest) -> None:
    """Another run of the scheduler knows nothing of them."""
    host = await shown(subject)
    before = await picture(host)
    await reservable(host)
    same(before, await picture(await shown(subject)), "the answers as before Reserve")


@check(
    "reserve/resync",
    "a transfer of the same epoch keeps reservations",
    "State",
    needs=NEEDS,
    after=(
        "reserve/answer",
        "reserve/new-epoch",
    ),
)
async def resync(subject: PluginUnderTest) -> None:
    """The attempt goes on."""
    host = await shown(subject)
    hold = await reservable(host)
    host.generation += 1
    await host.transfer()
    again = await reserve(host, *hold)
    expect(again.status.code == common_pb2.CODE_SUCCESS, "SUCCESS again", brief(again))


@check(
    "reserve/node-gone",
    "Reserve on a node that is gone is answered",
    CLAUSE,
    needs=NEEDS,
    after=("reserve/answer",),
)
async def node_gone(subject: PluginUnderTest) -> None:
    """The choice outlives the generation it was made in."""
    host = await shown(subject)
    response = await reserve(host, subject.pods[-1], "nowhere")
    await unreserve(host, subject.pods[-1], "nowhere")
    expect(response.status.code in ALLOWED, "a verdict", brief(response))
