"""State.Sync: steps from one generation to the next."""

import random

import grpc

from berth.conformance.answers import picture, same
from berth.conformance.check import check
from berth.conformance.host_state import ASSUMED, NOMINATED, PLACED, HostState, shown
from berth.conformance.samples import renamed
from berth.conformance.subject import PluginUnderTest, refused
from berth_plugin_proto import state_pb2

CLAUSE = "State"
STEPS = 12


@check("sync/repeated-delta", "a delta that is behind is skipped", CLAUSE)
async def repeated_delta(subject: PluginUnderTest) -> None:
    """What is held stays, and is acknowledged again."""
    host = await shown(subject)
    first = await host.step()
    await host.step()
    await host.stream.write(delta=first)
    await host.stream.acked(host.generation)


@check("sync/gap", "a delta that starts after what is held is refused", CLAUSE)
async def gap(subject: PluginUnderTest) -> None:
    """A step is missing."""
    host = await shown(subject)
    host.delta()
    await host.stream.write(delta=host.delta())
    await host.stream.nacked(state_pb2.NACK_REASON_GAP)


@check("sync/wrong-index", "a node beyond the end is refused", CLAUSE, needs=("nodes",))
async def wrong_index(subject: PluginUnderTest) -> None:
    """Indices are dense."""
    host = await shown(subject)
    change = host.put_node(renamed(host.nodes[0], "beyond"))
    if change is not None:
        change.node_upsert.index += 1
    await host.stream.write(delta=host.delta(change))
    await host.stream.nacked(state_pb2.NACK_REASON_MISMATCH)


@check("sync/wrong-name", "a removal that names another node is refused", CLAUSE, needs=("nodes",))
async def wrong_name(subject: PluginUnderTest) -> None:
    """Names are sent along and checked."""
    host = await shown(subject)
    change = host.drop_node(0)
    if change is not None:
        change.node_remove.name = "another-node"
    await host.stream.write(delta=host.delta(change))
    await host.stream.nacked(state_pb2.NACK_REASON_MISMATCH)


@check("sync/wrong-count", "a delta that counts other nodes is refused", CLAUSE, needs=("nodes",))
async def wrong_count(subject: PluginUnderTest) -> None:
    """Counts are sent along and checked."""
    host = await shown(subject)
    step = host.delta()
    step.node_count += 1
    await host.stream.write(delta=step)
    await host.stream.nacked(state_pb2.NACK_REASON_MISMATCH)


@check(
    "sync/after-nack",
    "a full transfer on the same stream helps after a Nack",
    CLAUSE,
    after=("sync/gap",),
)
async def after_nack(subject: PluginUnderTest) -> None:
    """Nothing else does, and that does."""
    host = await _refused_a_delta(subject)
    await host.transfer()
    await host.step()


@check(
    "sync/nothing-held",
    "after a Nack nothing is held",
    "Scheduling calls",
    needs=("FILTER",),
    after=("sync/gap",),
)
async def nothing_held(subject: PluginUnderTest) -> None:
    """A call is refused, never answered by what was held before."""
    host = await _refused_a_delta(subject)
    call = host.ask("Filter", subject.pods[0], of_call={"generation": 1})
    await refused(call, grpc.StatusCode.FAILED_PRECONDITION, "NOT_SYNCED", what="a call after a Nack")


async def _refused_a_delta(subject: PluginUnderTest) -> HostState:
    host = await shown(subject)
    host.delta()
    await host.stream.write(delta=host.delta())
    await host.stream.nacked(state_pb2.NACK_REASON_GAP)
    return host


@check("sync/unknown-removals", "removals of what is not there are ignored", CLAUSE)
async def unknown_removals(subject: PluginUnderTest) -> None:
    """Pods and watched objects that the plugin was never sent."""
    host = await shown(subject)
    key = state_pb2.ObjectKey(version="v1", resource="nothings", name="missing")
    await host.step(
        state_pb2.Change(pod_remove=state_pb2.PodRemove(uid="missing")),
        state_pb2.Change(object_remove=state_pb2.ObjectRemove(key=key)),
    )


@check(
    "sync/node-removal",
    "the last row moves into a removed one's place",
    CLAUSE,
    needs=("nodes",),
)
async def node_removal(subject: PluginUnderTest) -> None:
    """Node indices are dense."""
    host = await shown(subject)
    await host.step(host.drop_node(0))
    await _equals_transfer(host)


@check("sync/node-update", "a node that changes is seen as it is now", CLAUSE, needs=("nodes",))
async def node_update(subject: PluginUnderTest) -> None:
    """Its row is replaced."""
    host = await shown(subject)
    node = host.nodes[0]
    other = {
        **node,
        "metadata": {
            **node["metadata"],
            "labels": {**host.nodes[-1]["metadata"]["labels"], "team": "green"},
        },
    }
    await host.step(host.put_node({**other, "status": host.nodes[-1]["status"]}))
    await _equals_transfer(host)


@check(
    "sync/pod-stages",
    "an assumed pod that is placed counts once",
    CLAUSE,
    needs=("pods", "nodes"),
)
async def pod_stages(subject: PluginUnderTest) -> None:
    """Its placed form follows without a removal in between."""
    host = await shown(subject)
    pod = renamed(subject.pods[-1], "staged")
    await host.step(host.put_pod(pod, host.names[1], ASSUMED, 1))
    await host.step(host.put_pod(pod, host.names[1], PLACED))
    await _equals_transfer(host)


@check("sync/pod-removal", "a pod that is removed counts nowhere", CLAUSE, needs=("pods", "nodes"))
async def pod_removal(subject: PluginUnderTest) -> None:
    """When an attempt fails, or a pod ends, its room is free again."""
    host = await shown(subject)
    before = await picture(host)
    pod = renamed(subject.pods[-1], "passing")
    await host.step(host.put_pod(pod, host.names[1], ASSUMED, 1))
    await host.step(host.drop_pod(pod["metadata"]["uid"]))
    same(before, await picture(host), "the answers as before the pod came")


@check(
    "sync/nominated",
    "a nominated pod counts on the node that it is nominated to, once",
    CLAUSE,
    needs=("nominations", "nodes"),
    after=("sync/pod-stages", "sync/pod-removal"),
)
async def nominated(subject: PluginUnderTest) -> None:
    """Where it was nominated before it counts no more."""
    host = await shown(subject)
    pod = renamed(subject.pods[-1], "promised")
    for name in host.names[:2]:
        await host.step(host.put_pod(pod, name, NOMINATED))
    await _equals_transfer(host)


@check(
    "sync/nomination-gone",
    "a nomination that is taken back leaves nothing",
    CLAUSE,
    needs=("nominations", "nodes"),
    after=("sync/pod-removal",),
)
async def nomination_gone(subject: PluginUnderTest) -> None:
    """The room is anybody's again."""
    host = await shown(subject)
    before = await picture(host)
    pod = renamed(subject.pods[-1], "promised")
    await host.step(host.put_pod(pod, host.names[1], NOMINATED))
    await host.step(host.drop_pod(pod["metadata"]["uid"]))
    same(before, await picture(host), "the answers as before the pod was nominated")


@check(
    "sync/random-steps",
    "after many steps the answers are those of a full transfer",
    CLAUSE,
    needs=("nodes",),
    after=(
        "sync/node-removal",
        "sync/node-update",
        "sync/pod-stages",
        "sync/pod-removal",
    ),
)
async def random_steps(subject: PluginUnderTest) -> None:
    """(epoch, generation) stands for exactly one state, however it came about."""
    chance = random.Random(subject.options.seed)
    host = await shown(subject)
    for number in range(STEPS):
        await host.step(_random_change(host, chance, number))
    await _equals_transfer(host)


def _random_change(host: HostState, chance: random.Random, number: int) -> state_pb2.Change | None:
    kind = chance.choice(("node", "pod", "pod", "no node", "no pod"))
    if kind == "node":
        return host.put_node(renamed(chance.choice(host.nodes), f"new-{number}"))
    if kind == "no node" and len(host.nodes) > 2:  # noqa: PLR2004 - some are left to be asked about
        return host.drop_node(chance.randrange(len(host.nodes)))
    if kind == "no pod" and host.placed:
        return host.drop_pod(chance.choice(sorted(host.placed)))
    return host.put_pod(
        renamed(chance.choice(host.subject.pods), f"placed-{number}"), chance.choice(host.names)
    )


async def _equals_transfer(host: HostState) -> None:
    """Raises: UnmetError unless the plugin decides as where it was given the present state at once."""
    came = await picture(host)
    fresh = HostState(host.subject, host.nodes)
    fresh.placed = dict(host.placed)
    await fresh.shown()
    same(await picture(fresh), came, "the answers of a plugin that was given this state at once")
