"""Steps of the state on their way to a plugin: several in one message are the steps themselves."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from berth.out_of_tree.cluster_state import state_stream
from berth.out_of_tree.cluster_state.state_stream import coalesce
from berth_plugin_proto import state_pb2


def step(generation, names):
    """A step to that generation, after which there are so many nodes."""
    upserts = [state_pb2.NodeUpsert(index=i, name=name) for i, name in enumerate(names)]
    changes = [state_pb2.Change(node_upsert=upsert) for upsert in upserts]
    return state_pb2.Delta(
        base_generation=generation - 1, generation=generation, changes=changes, node_count=generation
    )


@given(
    steps=st.lists(st.lists(st.text("ab", max_size=9), max_size=3), max_size=9),
    most=st.integers(0, 60),
    carried_to=st.integers(0, 16),
)
def test_fewer_steps_say_the_same(steps, most, carried_to):
    """From the same generation to the same one, with the same changes in order, none of them too large.

    A plugin that a call has brought to any generation can go on from there.
    """
    deltas = [step(5 + i, names) for i, names in enumerate(steps)]
    chunk, state_stream.CHUNK_BYTES = state_stream.CHUNK_BYTES, most
    try:
        fewer = list(coalesce(deltas, carried_to))
    finally:
        state_stream.CHUNK_BYTES = chunk

    assert [c for delta in deltas for c in delta.changes] == [c for delta in fewer for c in delta.changes]
    assert [4 for _ in deltas[:1]] == [delta.base_generation for delta in fewer[:1]]
    assert all(a.generation == b.base_generation for a, b in itertools.pairwise(fewer))
    assert [(d.generation, d.node_count) for d in deltas[-1:]] == [
        (d.generation, d.node_count) for d in fewer[-1:]
    ]
    assert not any(d.base_generation < held < d.generation for d in fewer for held in range(carried_to + 1))
    assert all(delta.ByteSize() <= most or delta.generation - delta.base_generation == 1 for delta in fewer)


def test_many_small_steps_are_one_message():
    """Steps in which nothing concerns the plugin cost next to nothing."""
    (only,) = coalesce([step(generation, ()) for generation in range(5, 500)], 4)

    assert (4, 499, 499) == (only.base_generation, only.generation, only.node_count)
