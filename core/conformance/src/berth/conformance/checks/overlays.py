"""FilterOverlays: Filter on nodes without or with some pods, for preemption."""

import grpc

from berth.conformance.answers import Comparable, filtered, picture, same, verdicts_in
from berth.conformance.check import check
from berth.conformance.host_state import PLACED, HostState, pod_upsert, shown
from berth.conformance.samples import Document, renamed
from berth.conformance.subject import PluginUnderTest, refused
from berth_plugin_proto import scheduling_pb2, state_pb2

CLAUSE = "Scheduling calls"
NEEDS = ("FILTER", "FILTER_OVERLAYS", "nodes")

Verdict = tuple[str, str, str]
"""Node, pod, and what is decided."""


async def _overlaid(host: HostState, pod: Document, overlays: list[scheduling_pb2.Overlay]) -> Comparable:
    return verdicts_in(await host.ask("FilterOverlays", pod, overlays=overlays), len(overlays))


def _bare(host: HostState) -> list[scheduling_pb2.Overlay]:
    return [scheduling_pb2.Overlay(node_index=row) for row in range(len(host.nodes))]


@check(
    "overlays/answer",
    "there is one verdict for each overlay",
    CLAUSE,
    needs=NEEDS,
)
async def answer(subject: PluginUnderTest) -> None:
    """In the same order; a node may appear in several, or in none."""
    host = await shown(subject)
    for pod in subject.pods:
        for count in (0, 1, 2 * len(host.nodes)):
            await _overlaid(host, pod, (_bare(host) * 2)[:count])


@check(
    "overlays/empty",
    "an overlay that changes nothing has Filter's verdict",
    CLAUSE,
    needs=NEEDS,
    after=("overlays/answer",),
)
async def empty(subject: PluginUnderTest) -> None:
    """Node by node."""
    host = await shown(subject)
    for pod in subject.pods:
        same(await filtered(host, pod), await _overlaid(host, pod, _bare(host)), "Filter's verdicts")


@check(
    "overlays/removed",
    "a pod simulated as removed counts as one that is gone",
    CLAUSE,
    needs=(*NEEDS, "pods"),
    after=(
        "overlays/answer",
        "overlays/empty",
        "sync/pod-removal",
    ),
)
async def removed(subject: PluginUnderTest) -> None:
    """Evicting it would lead there. Each node's pod goes alone: other nodes may share a domain with it."""
    host = await shown(subject)
    victims = await _crowded(host)
    overlays = [
        scheduling_pb2.Overlay(node_index=row, removed_pod_uids=_uids(victims, name))
        for row, name in enumerate(host.names)
    ]
    simulated = await _simulated(host, overlays)
    found: list[Verdict] = []
    for row, name in enumerate(host.names):
        await host.step(*map(host.drop_pod, _uids(victims, name)))
        found += await _decided_on(host, row)
        if name in victims:
            await host.step(host.put_pod(victims[name], name))
    same(found, simulated, "Filter's verdict once the pod on that node is gone, and no other")


@check(
    "overlays/added",
    "a pod simulated as added counts as one that is there",
    CLAUSE,
    needs=(*NEEDS, "pods"),
    after=(
        "overlays/answer",
        "overlays/empty",
    ),
)
async def added(subject: PluginUnderTest) -> None:
    """Nominated pods are added. Each comes alone: other nodes may share a domain with its node."""
    host = await shown(subject)
    newcomers = {name: renamed(subject.pods[-1], f"added-{name}") for name in host.names}
    overlays = [
        scheduling_pb2.Overlay(node_index=row, added_pods=[pod_upsert(newcomers[name], name, PLACED)])
        for row, name in enumerate(host.names)
    ]
    simulated = await _simulated(host, overlays)
    found: list[Verdict] = []
    for row, name in enumerate(host.names):
        await host.step(host.put_pod(newcomers[name], name))
        found += await _decided_on(host, row)
        await host.step(*map(host.drop_pod, _uids(newcomers, name)))
    same(found, simulated, "Filter's verdict once the pod on that node is there, and no other")


@check(
    "overlays/nothing-remembered",
    "nothing of an overlay is remembered",
    CLAUSE,
    needs=(*NEEDS, "pods"),
    after=("overlays/answer",),
)
async def nothing_remembered(subject: PluginUnderTest) -> None:
    """It existed in the overlay only."""
    host = await shown(subject)
    victims = await _crowded(host)
    before = await picture(host)
    stage = state_pb2.POD_STAGE_NOMINATED
    overlays = []
    for row, name in enumerate(host.names):
        newcomer = pod_upsert(renamed(subject.pods[-1], f"simulated-{row}"), name, stage)
        overlays += [
            scheduling_pb2.Overlay(node_index=row, added_pods=[newcomer]),
            scheduling_pb2.Overlay(node_index=row, removed_pod_uids=_uids(victims, name)),
        ]
    for pod in subject.pods:
        await _overlaid(host, pod, overlays)
    same(before, await picture(host), "the answers as before")


@check(
    "overlays/wrong-index",
    "an overlay of a node that is not there is refused",
    CLAUSE,
    needs=NEEDS,
    after=("overlays/answer",),
)
async def wrong_index(subject: PluginUnderTest) -> None:
    """Indices are those of the call's generation."""
    host = await shown(subject)
    overlays = [scheduling_pb2.Overlay(node_index=len(host.nodes))]
    call = host.ask("FilterOverlays", subject.pods[0], overlays=overlays)
    await refused(call, grpc.StatusCode.INVALID_ARGUMENT, what="an overlay of a node beyond the end")


async def _crowded(host: HostState) -> dict[str, Document]:
    """Put a pod on each node; those that the plugin is shown, by node."""
    victims: dict[str, Document] = {}
    for number, name in enumerate(host.names):
        pod = renamed(host.subject.pods[number % len(host.subject.pods)], f"victim-{name}")
        if (change := host.put_pod(pod, name)) is not None:
            await host.step(change)
            victims[name] = pod
    return victims


def _uids(pods: dict[str, Document], name: str) -> list[str]:
    return [pods[name]["metadata"]["uid"]] if name in pods else []


async def _simulated(host: HostState, overlays: list[scheduling_pb2.Overlay]) -> list[Verdict]:
    """Ask about one overlay for each node, in the order of rows."""
    answers = [(pod, await _overlaid(host, pod, overlays)) for pod in host.subject.pods]
    return [
        _verdict(host, row, pod, answer, row) for row in range(len(host.nodes)) for pod, answer in answers
    ]


async def _decided_on(host: HostState, row: int) -> list[Verdict]:
    """Ask Filter about one node."""
    return [_verdict(host, row, pod, await filtered(host, pod, [row]), 0) for pod in host.subject.pods]


def _verdict(host: HostState, row: int, pod: Document, answer: Comparable, position: int) -> Verdict:
    """Name what was asked about; SKIP is a Filter that every node passes."""
    status, reasons, texts = answer
    if status == "SUCCESS":
        text = texts[position]
    else:
        text = "" if status == "SKIP" else f"{status}: {', '.join(reasons)}"
    return host.names[row], pod["metadata"]["name"], text or "passes"
