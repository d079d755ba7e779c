"""FilterOverlays: Filter on nodes without or with some pods, for preemption."""

import grpc

from berth.conformance.answers import Comparable, filtered, picture, same, verdicts_in
from berth.conformance.check import check
from berth.conformance.samples import Document, renamed
from berth.conformance.subject import Subject, refused
from berth.conformance.world import PLACED, World, pod_upsert, shown
from berth.out_of_tree._generated import scheduling_pb2, state_pb2

CLAUSE = "Scheduling calls"
NEEDS = ("FILTER", "FILTER_OVERLAYS", "nodes")


async def _overlaid(world: World, pod: Document, overlays: list[scheduling_pb2.Overlay]) -> Comparable:
    return verdicts_in(await world.ask("FilterOverlays", pod, overlays=overlays), len(overlays))


def _bare(world: World) -> list[scheduling_pb2.Overlay]:
    return [scheduling_pb2.Overlay(node_index=row) for row in range(len(world.nodes))]


@check(
    "overlays/answer",
    "there is one verdict for each overlay",
    CLAUSE,
    needs=NEEDS,
)
async def answer(subject: Subject) -> None:
    """In the same order; a node may appear in several, or in none."""
    world = await shown(subject)
    for pod in subject.pods:
        for count in (0, 1, 2 * len(world.nodes)):
            await _overlaid(world, pod, (_bare(world) * 2)[:count])


@check(
    "overlays/empty",
    "an overlay that changes nothing has Filter's verdict",
    CLAUSE,
    needs=NEEDS,
    after=("overlays/answer",),
)
async def empty(subject: Subject) -> None:
    """Node by node."""
    world = await shown(subject)
    for pod in subject.pods:
        same(await filtered(world, pod), await _overlaid(world, pod, _bare(world)), "Filter's verdicts")


@check(
    "overlays/removed",
    "a pod that is thought away is as one that is gone",
    CLAUSE,
    needs=(*NEEDS, "pods"),
    after=(
        "overlays/answer",
        "overlays/empty",
        "sync/pod-removal",
    ),
)
async def removed(subject: Subject) -> None:
    """Evicting it would lead there."""
    world = await shown(subject)
    victims = await _crowded(world)
    overlays = [
        scheduling_pb2.Overlay(node_index=row, removed_pod_uids=victims.get(name, []))
        for row, name in enumerate(world.names)
    ]
    thought = [await _overlaid(world, pod, overlays) for pod in subject.pods]
    for uid in list(world.placed):
        await world.step(world.drop_pod(uid))
    same(
        [await filtered(world, pod) for pod in subject.pods],
        thought,
        "Filter's verdicts once the pods are gone",
    )


@check(
    "overlays/added",
    "a pod that is thought to be there is as one that is",
    CLAUSE,
    needs=(*NEEDS, "pods"),
    after=(
        "overlays/answer",
        "overlays/empty",
    ),
)
async def added(subject: Subject) -> None:
    """Nominated pods are added."""
    world = await shown(subject)
    newcomers = {name: renamed(subject.pods[-1], f"added-{name}") for name in world.names}
    overlays = [
        scheduling_pb2.Overlay(node_index=row, added_pods=[pod_upsert(newcomers[name], name, PLACED)])
        for row, name in enumerate(world.names)
    ]
    thought = [await _overlaid(world, pod, overlays) for pod in subject.pods]
    if not subject.capabilities.node_local:
        return
    for name, pod in newcomers.items():
        await world.step(world.put_pod(pod, name))
    same(
        [await filtered(world, pod) for pod in subject.pods],
        thought,
        "Filter's verdicts once the pods are there",
    )


@check(
    "overlays/nothing-remembered",
    "nothing of an overlay is remembered",
    CLAUSE,
    needs=(*NEEDS, "pods"),
    after=("overlays/answer",),
)
async def nothing_remembered(subject: Subject) -> None:
    """It was only thought up."""
    world = await shown(subject)
    victims = await _crowded(world)
    before = await picture(world)
    stage = state_pb2.POD_STAGE_NOMINATED
    overlays = []
    for row, name in enumerate(world.names):
        newcomer = pod_upsert(renamed(subject.pods[-1], f"thought-{row}"), name, stage)
        overlays += [
            scheduling_pb2.Overlay(node_index=row, added_pods=[newcomer]),
            scheduling_pb2.Overlay(node_index=row, removed_pod_uids=victims.get(name, [])),
        ]
    for pod in subject.pods:
        await _overlaid(world, pod, overlays)
    same(before, await picture(world), "the answers as before")


@check(
    "overlays/wrong-index",
    "an overlay of a node that is not there is refused",
    CLAUSE,
    needs=NEEDS,
    after=("overlays/answer",),
)
async def wrong_index(subject: Subject) -> None:
    """Indices are those of the call's generation."""
    world = await shown(subject)
    overlays = [scheduling_pb2.Overlay(node_index=len(world.nodes))]
    call = world.ask("FilterOverlays", subject.pods[0], overlays=overlays)
    await refused(call, grpc.StatusCode.INVALID_ARGUMENT, what="an overlay of a node beyond the end")


async def _crowded(world: World) -> dict[str, list[str]]:
    """Put a pod on each node; their UIDs by node."""
    victims: dict[str, list[str]] = {}
    for number, name in enumerate(world.names):
        pod = renamed(world.subject.pods[number % len(world.subject.pods)], f"victim-{name}")
        if (change := world.put_pod(pod, name)) is not None:
            await world.step(change)
            victims[name] = [pod["metadata"]["uid"]]
    return victims
