"""State.Sync: full transfers."""

import asyncio
from contextlib import suppress

import grpc
import grpc.aio

from berth.conformance.answers import decided, filtered, picture, same
from berth.conformance.check import check, expect
from berth.conformance.host_state import HostState, Stream, configured, shown
from berth.conformance.samples import renamed
from berth.conformance.subject import PluginUnderTest, refused
from berth_plugin_proto import state_pb2

CLAUSE = "State"


@check(
    "sync/many-nodes",
    "a large cluster comes in chunks, and is answered for",
    CLAUSE,
    needs=("nodes",),
)
async def many_nodes(subject: PluginUnderTest) -> None:
    """A message stays below 4 MiB, a cluster does not."""
    await configured(subject)
    nodes = subject.nodes(6)
    many = [
        {**nodes[i % 6], "metadata": {**nodes[i % 6]["metadata"], "name": f"n{i}"}}
        for i in range(subject.options.many_nodes)
    ]
    host = await HostState(subject, many).shown()
    for pod in subject.pods[:2]:
        await decided(host, pod)


@check("sync/no-nodes", "an empty cluster is a cluster", CLAUSE, needs=("nodes",))
async def no_nodes(subject: PluginUnderTest) -> None:
    """A scheduler may start before its nodes."""
    await decided(await shown(subject, 0), subject.pods[0])


@check("sync/one-node", "one node is enough", CLAUSE, needs=("nodes",))
async def one_node(subject: PluginUnderTest) -> None:
    """Its vectors have one entry."""
    await decided(await shown(subject, 1), subject.pods[0])


@check("sync/empty-chunk", "an empty chunk is harmless", CLAUSE)
async def empty_chunk(subject: PluginUnderTest) -> None:
    """A host need not count what it sends."""
    host = await shown(subject)
    host.generation += 1
    await host.begin()
    await host.stream.write(chunk=state_pb2.Chunk())
    await host.stream.write(commit=host.commit())
    await host.stream.acked(host.generation)


@check(
    "sync/until-commit",
    "until the commit answers come from what was held",
    CLAUSE,
    needs=("FILTER",),
)
async def until_commit(subject: PluginUnderTest) -> None:
    """A transfer replaces everything at its commit, in one step."""
    host = await shown(subject)
    before = await filtered(host, subject.pods[0])
    coming = HostState(subject, host.nodes[:2], host.epoch)
    coming.stream, coming.generation = host.stream, host.generation + 1
    await coming.begin()
    same(before, await filtered(host, subject.pods[0]), "the answer of the state that is held")
    await host.stream.write(commit=coming.commit())
    await host.stream.acked(coming.generation)


@check(
    "sync/replaces",
    "a transfer leaves nothing of what was held",
    CLAUSE,
    needs=("nodes",),
    after=("sync/until-commit",),
)
async def replaces(subject: PluginUnderTest) -> None:
    """Nodes and pods that it does not bring are gone."""
    fresh = await picture(await shown(subject, 3))
    host = await shown(subject)
    for number, name in enumerate(host.names[:3]):
        await host.step(host.put_pod(renamed(subject.pods[-1], f"there-{number}"), name))
    fewer = HostState(subject, subject.nodes(3), host.epoch)
    fewer.stream, fewer.generation = host.stream, host.generation + 1
    await fewer.transfer()
    same(fresh, await picture(fewer), "the answers of a plugin that never held more")


@check(
    "sync/new-epoch",
    "a new epoch takes over, with generations of its own",
    CLAUSE,
    needs=("FILTER",),
)
async def new_epoch(subject: PluginUnderTest) -> None:
    """Another run of the scheduler counts anew; the old one's calls are refused."""
    old = HostState(subject, subject.nodes())
    old.generation = 1000
    await old.shown()
    await shown(subject)
    call = old.ask("Filter", subject.pods[0])
    await refused(call, grpc.StatusCode.FAILED_PRECONDITION, "NOT_SYNCED", what="a call of the old epoch")


@check("sync/newest-stream", "the stream opened last counts, an older one ends", CLAUSE)
async def newest_stream(subject: PluginUnderTest) -> None:
    """Two hosts' steps must not mix."""
    old = await shown(subject)
    new = await shown(subject)
    with suppress(asyncio.InvalidStateError, grpc.aio.AioRpcError):  # where it ended already
        await old.stream.write(
            delta=state_pb2.Delta(base_generation=1, generation=2, node_count=len(old.nodes))
        )
    expect(await old.stream.ended(), "the end of the older stream", "neither an end nor an error")
    await new.step()


@check("sync/lost-chunk", "a commit that counts other nodes is refused", CLAUSE, needs=("nodes",))
async def lost_chunk(subject: PluginUnderTest) -> None:
    """A lost chunk can't go unnoticed."""
    host = await shown(subject)
    await host.begin()
    await host.stream.write(commit=state_pb2.Commit(generation=5, node_count=len(host.nodes) + 1))
    await host.stream.nacked(state_pb2.NACK_REASON_MISMATCH)


@check("sync/bad-object", "an object that can't be decoded is refused", CLAUSE, needs=("nodes",))
async def bad_object(subject: PluginUnderTest) -> None:
    """It must not be passed over: the plugin would hold something else than the host."""
    host = await shown(subject)
    bad = state_pb2.NodeUpsert(index=len(host.nodes), name="bad", object=b'{"metadata":')
    delta = host.delta(state_pb2.Change(node_upsert=bad))
    delta.node_count += 1
    await host.stream.write(delta=delta)
    await host.stream.nacked(state_pb2.NACK_REASON_BAD_OBJECT)


@check("sync/out-of-order", "a message that does not belong there is refused", CLAUSE)
async def out_of_order(subject: PluginUnderTest) -> None:
    """A chunk needs a Begin."""
    stream = await Stream(subject).opened()
    await stream.write(chunk=state_pb2.Chunk())
    await stream.nacked(state_pb2.NACK_REASON_OUT_OF_ORDER)
