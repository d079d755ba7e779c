"""Reserve and Unreserve: what is held for an attempt is held once, and given back by that attempt alone."""

from contextlib import suppress
from itertools import product
from typing import Any, NamedTuple

import grpc.aio

from berth.conformance.answers import Comparable, filtered, passing, picture, same
from berth.conformance.check import check, expect
from berth.conformance.samples import Document
from berth.conformance.subject import Subject, brief, skip
from berth.conformance.world import World, shown
from berth.out_of_tree._generated import common_pb2
from berth.out_of_tree.packing import status_of

CLAUSE = "Scheduling calls"
SHOWS_WITH_ROOM = 2
CUT_OFF_SECONDS = 0.2
NEEDS = ("RESERVE",)
ALLOWED = frozenset(common_pb2.Code.values()) - {
    common_pb2.CODE_UNSPECIFIED,
    common_pb2.CODE_SKIP,
    common_pb2.CODE_WAIT,
}


async def reserve(world: World, pod: Document, node: str, attempt: int = 1) -> Any:
    """Reserve's answer."""
    return await world.ask("Reserve", pod, node_name=node, of_call={"attempt": attempt})


async def unreserve(world: World, pod: Document, node: str, attempt: int = 1) -> None:
    """Take it back, as the host does: without the pod's object."""
    await world.ask("Unreserve", pod, node_name=node, of_call={"attempt": attempt, "with_object": False})


class Hold(NamedTuple):
    """What is reserved: the pod, its node, and the attempt."""

    pod: Document
    node: str
    attempt: int


async def reservable(world: World, attempt: int = 1) -> Hold:
    """Something that was just reserved: if there is such, it shows and leaves room for another.

    Tries pods and nodes, each in an attempt of its own.
    """
    before = await picture(world)
    best: tuple[int, Hold] | None = None
    nodes = world.names or [node["metadata"]["name"] for node in world.subject.nodes()]
    for pod, name in product(reversed(world.subject.pods), nodes):
        hold = Hold(pod, name, attempt)
        if (await reserve(world, *hold)).status.code == common_pb2.CODE_SUCCESS:
            rank = await _rank(world, hold, before)
            if rank == SHOWS_WITH_ROOM:
                return hold
            if best is None or rank > best[0]:
                best = rank, hold
        await unreserve(world, *hold)
        attempt += 1
    if best is None:
        raise skip("no sample pod could be reserved; give some with --pods and --nodes")
    hold = best[1]._replace(attempt=attempt)
    await reserve(world, *hold)
    return hold


async def _rank(world: World, hold: Hold, before: list[Comparable]) -> int:
    """How much can be seen of the reservation."""
    if await picture(world) == before:
        return 0
    if world.subject.offers("FILTER") and hold.node in world.names:
        row = world.names.index(hold.node)
        return 1 + (row in passing(await filtered(world, hold.pod), len(world.nodes)))
    return 1


@check(
    "reserve/answer",
    "Reserve accepts or turns down",
    CLAUSE,
    needs=NEEDS,
)
async def answer(subject: Subject) -> None:
    """SUCCESS, an unschedulable code, PENDING or ERROR."""
    world = await shown(subject)
    for pod in subject.pods:
        response = await reserve(world, pod, world.names[0] if world.names else "node-0")
        status_of("under test", response.status)
        expect(response.status.code in ALLOWED, "SUCCESS or a refusal", brief(response))
        await unreserve(world, pod, world.names[0] if world.names else "node-0")


@check(
    "reserve/repeated",
    "a repeated Reserve takes nothing more",
    CLAUSE,
    needs=NEEDS,
    after=("reserve/answer",),
)
async def repeated(subject: Subject) -> None:
    """The host may not know whether the first one arrived."""
    world = await shown(subject)
    hold = await reservable(world)
    once = await picture(world)
    again = await reserve(world, *hold)
    expect(again.status.code == common_pb2.CODE_SUCCESS, "SUCCESS again", brief(again))
    same(once, await picture(world), "the answers as after one Reserve")


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
async def same_answer(subject: Subject) -> None:
    """What was chosen for the attempt stays chosen."""
    world = await shown(subject)
    hold = await reservable(world)
    first, second = await reserve(world, *hold), await reserve(world, *hold)
    expect(first == second, f"again {brief(first)}", brief(second))


@check(
    "unreserve/gives-back",
    "Unreserve gives back what Reserve took",
    CLAUSE,
    needs=NEEDS,
    after=("reserve/answer",),
)
async def gives_back(subject: Subject) -> None:
    """Nothing is left of the attempt."""
    world = await shown(subject)
    before = await picture(world)
    hold = await reservable(world)
    await unreserve(world, *hold)
    same(before, await picture(world), "the answers as before Reserve")


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
async def unreserved_again(subject: Subject) -> None:
    """It can't fail, and may be repeated."""
    world = await shown(subject)
    before = await picture(world)
    hold = await reservable(world)
    for _ in range(2):
        await unreserve(world, *hold)
    same(before, await picture(world), "the answers as before Reserve")


@check(
    "unreserve/unknown",
    "an Unreserve of what was never reserved is harmless",
    CLAUSE,
    needs=NEEDS,
    after=("reserve/answer",),
)
async def unknown(subject: Subject) -> None:
    """The host sends it for a Reserve that never arrived."""
    world = await shown(subject)
    before = await picture(world)
    for pod in subject.pods:
        await unreserve(world, pod, "nowhere")
    same(before, await picture(world), "the answers as before")


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
async def old_attempt(subject: Subject) -> None:
    """It may be late."""
    world = await shown(subject)
    hold = await reservable(world, attempt=2)
    held = await picture(world)
    await unreserve(world, hold.pod, hold.node, hold.attempt - 1)
    same(held, await picture(world), "the answers as the newer attempt left them")


@check(
    "unreserve/cut-off",
    "a Reserve that was cut off takes nothing once it is unreserved",
    CLAUSE,
    needs=(*NEEDS, "nodes"),
    after=("unreserve/gives-back", "calls/waits"),
)
async def cut_off(subject: Subject) -> None:
    """It waited for a generation when its deadline came; the generation comes later."""
    world = await shown(subject)
    hold = await reservable(world)
    await unreserve(world, *hold)
    before, again = await picture(world), hold._replace(attempt=hold.attempt + 1)
    of_call = {"attempt": again.attempt, "generation": world.generation + 1}
    request = world.request("Reserve", again.pod, node_name=again.node, of_call=of_call)
    with suppress(grpc.aio.AioRpcError):
        await subject.scheduling.Reserve(request, timeout=CUT_OFF_SECONDS)
    await unreserve(world, *again)
    await world.step()
    same(before, await picture(world), "the answers as before the call")


@check(
    "unreserve/any-generation",
    "Unreserve does not ask which generation is held",
    CLAUSE,
    needs=NEEDS,
    after=("reserve/answer",),
)
async def any_generation(subject: Subject) -> None:
    """Epoch and generation are not checked: it can't fail."""
    world = await shown(subject)
    of_call = {"with_object": False, "generation": 77, "epoch": "bygone"}
    await world.ask("Unreserve", subject.pods[0], node_name="node-0", of_call=of_call)


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
async def new_epoch(subject: Subject) -> None:
    """Another run of the scheduler knows nothing of them."""
    world = await shown(subject)
    before = await picture(world)
    await reservable(world)
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
async def resync(subject: Subject) -> None:
    """The attempt goes on."""
    world = await shown(subject)
    hold = await reservable(world)
    world.generation += 1
    await world.transfer()
    again = await reserve(world, *hold)
    expect(again.status.code == common_pb2.CODE_SUCCESS, "SUCCESS again", brief(again))


@check(
    "reserve/node-gone",
    "Reserve on a node that is gone is answered",
    CLAUSE,
    needs=NEEDS,
    after=("reserve/answer",),
)
async def node_gone(subject: Subject) -> None:
    """The choice outlives the generation it was made in."""
    world = await shown(subject)
    response = await reserve(world, subject.pods[-1], "nowhere")
    await unreserve(world, subject.pods[-1], "nowhere")
    expect(response.status.code in ALLOWED, "a verdict", brief(response))
