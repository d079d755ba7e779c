"""What a plugin says it does not read, found out by changing just that."""

from collections.abc import Iterator

import msgspec

from berth.conformance.answers import decided, same
from berth.conformance.check import check
from berth.conformance.checks.reserving import reservable
from berth.conformance.host_state import shown
from berth.conformance.samples import OTHER_VALUES, Document, changed, renamed
from berth.conformance.subject import PluginUnderTest
from berth.out_of_tree.cluster_state.pod_fields import PodFields

CLAUSE = "Equal pods"


def _variants(pod: Document) -> Iterator[tuple[str, Document]]:
    for pointer, value in OTHER_VALUES.items():
        yield pointer, changed(pod, pointer, value, f"{pod['metadata']['name']}-other")


@check(
    "equal-pods/fields",
    "pods that differ in undeclared fields have the same answer",
    CLAUSE,
    needs=("pod_fields", "nodes"),
)
async def fields(subject: PluginUnderTest) -> None:
    """The host takes them for one question."""
    read = PodFields(subject.capabilities.pod_fields.paths)
    host = await shown(subject)
    for pod in subject.pods:
        declared, before = read.of(msgspec.json.encode(pod)), await decided(host, pod)
        for pointer, variant in _variants(pod):
            if read.of(msgspec.json.encode(variant)) == declared:
                same(before, await decided(host, variant), f"the same answer with another {pointer}")


@check(
    "equal-pods/other-nodes-pods",
    "pods on other nodes change no node's answer",
    CLAUSE,
    needs=("node_local", "nodes", "pods"),
)
async def other_nodes_pods(subject: PluginUnderTest) -> None:
    """The host asks again only about nodes to which something happened."""
    host = await shown(subject)
    rows = list(range(1, len(host.nodes)))
    before = [await decided(host, pod, rows) for pod in subject.pods]
    for number, pod in enumerate(subject.pods):
        await host.step(host.put_pod(renamed(pod, f"another-{number}"), host.names[0]))
    same(
        before,
        [await decided(host, pod, rows) for pod in subject.pods],
        "the answers for the other nodes as before",
    )


@check(
    "equal-pods/other-reservations",
    "a reservation on another node changes no node's answer",
    CLAUSE,
    needs=("node_local", "nodes", "RESERVE"),
    after=(
        "reserve/answer",
        "unreserve/gives-back",
    ),
)
async def other_reservations(subject: PluginUnderTest) -> None:
    """The host asks again only about the node that the call named."""
    host = await shown(subject)
    before = {
        name: [await decided(host, pod, [row]) for pod in subject.pods] for row, name in enumerate(host.names)
    }
    node = (await reservable(host)).node
    for row, name in enumerate(host.names):
        if name != node:
            same(
                before[name],
                [await decided(host, pod, [row]) for pod in subject.pods],
                f"the answers for {name} as before",
            )
