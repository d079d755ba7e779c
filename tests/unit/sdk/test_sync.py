"""The state stream: what a mirror holds, and what it refuses to hold."""

import asyncio

import grpc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth_plugin_proto import scheduling_pb2
from berth_plugin_proto import state_pb2 as pb
from berth_sdk import Plugin
from berth_sdk.session import Session
from berth_sdk.state import Mirror, decode
from berth_sdk.sync import Stream
from berth_sdk.testing import Cluster, Host, make_node, make_pod, running


class Columns(Plugin):
    """Keeps names by index with the hooks, as a vector plugin would."""

    name = "columns"

    def __init__(self):
        self.column = []
        self.placed = set()
        self.resets = []

    def state_reset(self, *, epoch_changed):
        self.column.clear()
        self.placed.clear()
        self.resets.append(epoch_changed)

    def node_upserted(self, index, node):
        self.column[index : index + 1] = [node.name]

    def node_removed(self, index, last):
        self.column[index] = self.column[last]
        self.column.pop()

    def pod_upserted(self, placed):
        self.placed.add((placed.uid, placed.node_name))

    def pod_removed(self, placed):
        self.placed.remove((placed.uid, placed.node_name))

    def pre_filter(self, _pod):
        return None


NAMES = st.sampled_from([f"n{i}" for i in range(6)])
PODS = st.sampled_from([f"p{i}" for i in range(6)])
ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("node"), NAMES, PODS),
        st.tuples(st.just("no node"), NAMES, PODS),
        st.tuples(st.just("pod"), NAMES, PODS),
        st.tuples(st.just("no pod"), NAMES, PODS),
        st.tuples(st.just("step"), NAMES, PODS),
    )
)


@given(actions=ACTIONS)
def test_deltas_lead_where_a_transfer_leads(actions):
    """Following deltas holds the same nodes at the same indices, and the same pods, as the host."""
    columns, cluster = Columns(), Cluster()
    mirror = Mirror(columns)
    mirror.replace("e", pb.Commit(generation=1, node_count=0), [])
    for kind, node, pod in [*actions, ("step", "", "")]:
        if kind == "node":
            cluster.put_node(make_node(node))
        elif kind == "no node" and node in cluster.nodes:
            cluster.remove_node(node)
        elif kind == "pod":
            cluster.put_pod(make_pod(pod), node)
        elif kind == "no pod":
            cluster.remove_pod(f"pod-default-{pod}")
        elif kind == "step":
            mirror.follow(cluster.step())

    assert cluster.names == [node.name for node in mirror.nodes] == columns.column
    assert {name: i for i, name in enumerate(cluster.names)} == mirror.index
    assert {(uid, pod.node_name) for uid, pod in cluster.pods.items()} == columns.placed
    assert set(mirror.pods) == {uid for there in mirror.on_node.values() for uid in there}


async def session_with(*names, epoch="e"):
    """Return a session that holds these nodes, its stream, and the host's side."""
    session, cluster = Session(Columns()), Cluster()
    for name in names:
        cluster.put_node(make_node(name))
    stream = Stream(session)
    for message in cluster.transfer(epoch):
        await stream.answer(message)
    return session, stream, cluster


async def test_transfer_is_acknowledged():
    """A commit is answered with its generation."""
    _, stream, cluster = await session_with("a", "b")
    cluster.put_node(make_node("c"))

    assert (await stream.answer(pb.SyncRequest(delta=cluster.step()))).ack.generation == 2


async def test_known_steps_are_skipped():
    """A step that came with a call already is acknowledged and changes nothing."""
    session, stream, cluster = await session_with("a")
    cluster.put_node(make_node("b"))
    delta = cluster.step()
    session.mirror.follow(delta)

    assert (await stream.answer(pb.SyncRequest(delta=delta))).ack.generation == 2
    assert len(session.mirror.nodes) == 2


def node_at(index, name):
    return pb.Change(node_upsert=pb.NodeUpsert(index=index, name=name, object=b'{"metadata":{"name":"x"}}'))


BAD_POD = pb.PodUpsert(uid="u", node_name="a", stage=pb.POD_STAGE_PLACED, object=b"[]")


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        pytest.param(pb.SyncRequest(delta=pb.Delta(base_generation=5, generation=6)), pb.NACK_REASON_GAP),
        pytest.param(pb.SyncRequest(chunk=pb.Chunk()), pb.NACK_REASON_OUT_OF_ORDER, id="chunk without begin"),
        pytest.param(pb.SyncRequest(), pb.NACK_REASON_OUT_OF_ORDER, id="empty"),
        pytest.param(
            pb.SyncRequest(begin=pb.Begin(epoch="x", resume_generation=1)), pb.NACK_REASON_CANNOT_RESUME
        ),
        pytest.param(
            pb.SyncRequest(begin=pb.Begin(epoch="e", resume_generation=2)), pb.NACK_REASON_CANNOT_RESUME
        ),
        pytest.param(
            pb.SyncRequest(delta=pb.Delta(base_generation=1, generation=2, node_count=2)),
            pb.NACK_REASON_MISMATCH,
            id="node count",
        ),
        pytest.param(
            pb.SyncRequest(
                delta=pb.Delta(base_generation=1, generation=2, node_count=1, changes=[node_at(0, "b")])
            ),
            pb.NACK_REASON_MISMATCH,
            id="another node's index",
        ),
        pytest.param(
            pb.SyncRequest(
                delta=pb.Delta(
                    base_generation=1,
                    generation=2,
                    node_count=0,
                    changes=[pb.Change(node_remove=pb.NodeRemove(index=0, name="b"))],
                )
            ),
            pb.NACK_REASON_MISMATCH,
            id="removal under another name",
        ),
        pytest.param(
            pb.SyncRequest(
                delta=pb.Delta(
                    base_generation=1, generation=2, node_count=1, changes=[pb.Change(pod_upsert=BAD_POD)]
                )
            ),
            pb.NACK_REASON_BAD_OBJECT,
            id="no pod",
        ),
    ],
)
async def test_nack_holds_nothing(message, reason):
    """What does not fit is refused with its reason, and nothing is held afterwards."""
    session, stream, _ = await session_with("a")

    assert reason == (await stream.answer(message)).nack.reason
    assert (session.mirror.generation, session.mirror.nodes, session.mirror.epoch) == (0, [], "")


async def test_transfer_after_nack():
    """A full transfer heals a stream that was refused."""
    session, stream, cluster = await session_with("a")
    await stream.answer(pb.SyncRequest())
    for message in cluster.transfer("e"):
        answer = await stream.answer(message)

    assert (answer.ack.generation, session.plugin.column) == (1, ["a"])


async def test_epoch_change_is_reported():
    """Columns learn whether a transfer belongs to the scheduler they know."""
    session, stream, cluster = await session_with("a")
    for epoch in ("e", "f"):
        await stream.answer(pb.SyncRequest())  # what is held is lost, whose it was is not
        for message in cluster.transfer(epoch):
            await stream.answer(message)

    assert session.plugin.resets == [True, False, True]


async def test_resume_over_a_new_connection():
    """A host that comes back goes on from what the plugin holds."""
    async with running(columns := Columns(), make_node("a")) as host:
        host._stream.cancel()
        await host.resume()
        host.cluster.put_node(make_node("b"))
        await host.update()

    assert (columns.column, columns.resets) == (["a", "b"], [True])


async def test_the_newest_stream_counts():
    """A second host takes over, and the first one's stream ends."""
    async with running(Columns(), make_node("a")) as first:
        second = Host(first.address)
        await second.connect()
        first.cluster.put_node(make_node("b"))
        await first._stream.write(pb.SyncRequest(delta=first.cluster.step()))

        assert await first._stream.read() == grpc.aio.EOF
        await second.close()


async def test_call_waits_for_its_generation():
    """A call that is ahead of the stream is answered when the stream has caught up."""
    async with running(Columns(), make_node("a")) as host:
        host.cluster.put_node(make_node("b"))
        delta = host.cluster.step()
        asking = asyncio.create_task(_filter(host))
        await host.handshake()
        assert not asking.done()
        await host.send(pb.SyncRequest(delta=delta))

        assert (await asking).generation == 2


async def test_call_brings_its_own_steps():
    """A call may carry the steps that the stream has not brought yet."""
    async with running(Columns(), make_node("a")) as host:
        host.cluster.put_node(make_node("b"))
        delta = host.cluster.step()
        call = host.call(make_pod("p"))
        call.deltas.append(delta)
        answer = await host.scheduling.Filter(scheduling_pb2.FilterRequest(call=call))
        late = await host.send(pb.SyncRequest(delta=delta))

    assert (answer.generation, late.ack.generation) == (2, 2)


async def test_call_for_moved_nodes_is_refused():
    """Indices end with the generation in which nodes moved; unmoved ones serve on."""
    async with running(Columns(), make_node("a"), make_node("b")) as host:
        old = scheduling_pb2.FilterRequest(call=host.call(make_pod("p")))
        host.cluster.put_node(make_node("a", labels={"x": "y"}))
        await host.update()
        assert (await host.scheduling.Filter(old)).generation == 2

        host.cluster.remove_node("a")
        await host.update()
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await host.scheduling.Filter(old)
    assert dict(refused.value.trailing_metadata())["berth-reason"] == "GENERATION_GONE"


def test_unknown_change_is_refused():
    """A change of a kind this SDK doesn't know is not skipped silently."""
    with pytest.raises(Exception, match="unknown kind"):
        decode([pb.Change()], lambda _: None)


async def _filter(host):
    return await host.scheduling.Filter(scheduling_pb2.FilterRequest(call=host.call(make_pod("p"))))
