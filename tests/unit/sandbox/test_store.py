import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.sandbox.store import Compacted, EventType, SandboxStore

KEYS = st.sampled_from(["a/x", "a/y", "b/x", "c"])
WRITES = st.lists(st.tuples(st.sampled_from(["put", "delete"]), KEYS), max_size=40)


def document(mark):
    return {"kind": "Thing", "apiVersion": "v1", "metadata": {"name": "x"}, "mark": mark}


def write(collection, writes):
    for number, (action, key) in enumerate(writes):
        if action == "put":
            collection.put(key, document(number))
        elif collection.get(key) is not None:
            collection.delete(key, document(number))


def replay(state, events):
    for event in events:
        if event.type is EventType.DELETED:
            del state[event.entry.key]
        else:
            state[event.entry.key] = event.entry.body
    return state


@given(before=WRITES, after=WRITES)
def test_replay(before, after):
    """A list plus the history after its revision is the list now."""
    store = SandboxStore()
    things = store.collection("things")
    write(things, before)
    listed, revision = {entry.key: entry.body for entry in things.entries()}, store.revision
    write(things, after)

    now = {entry.key: entry.body for entry in things.entries()}

    assert now == replay(listed, things.read(things.position_after(revision)))


@given(writes=WRITES)
def test_event_types(writes):
    """An event says ADDED exactly when there was no object before."""
    things = SandboxStore().collection("things")
    write(things, writes)

    for event in things.read(0):
        assert (event.type is EventType.ADDED) == (event.previous is None)


@given(writes=WRITES)
def test_revisions_rise(writes):
    """Each write has a higher revision than all before it, in every collection."""
    store = SandboxStore()
    write(store.collection("things"), writes)
    write(store.collection("others"), writes)
    events = store.collection("things").read(0) + store.collection("others").read(0)
    revisions = [event.entry.revision for event in events]

    assert revisions == sorted(set(revisions))


@given(writes=WRITES, prefix=st.sampled_from(["", "a/", "b/", "d/"]))
def test_prefix(writes, prefix):
    """A prefix selects exactly the keys that start with it, in order."""
    things = SandboxStore().collection("things")
    write(things, writes)
    everything = [entry.key for entry in things.entries()]

    assert [key for key in everything if key.startswith(prefix)] == [e.key for e in things.entries(prefix)]
    assert sorted(everything) == everything


@given(writes=WRITES, limit=st.integers(1, 8))
def test_bounded_history(writes, limit):
    """A watch gets all writes after its revision, or the error that they are gone."""
    store = SandboxStore(history_limit=limit)
    things = store.collection("things")
    write(things, writes)
    for revision in range(store.revision + 1):
        try:
            events = things.read(things.position_after(revision))
        except Compacted:
            continue
        expected = sum(1 for later in range(revision + 1, store.revision + 1) if later > 1)

        assert expected == len(events)


def test_compacted_position():
    """A watcher whose position was trimmed away gets that error."""
    things = SandboxStore().collection("things")
    start = things.end_position()
    things.put("x", document(1))
    things.compact()

    with pytest.raises(Compacted):
        things.read(start)


def test_listener():
    """A listener hears each write until it unsubscribes."""
    things = SandboxStore().collection("things")
    heard = []
    stop = things.subscribe(lambda: heard.append(1))
    things.put("x", document(1))
    stop()
    things.put("x", document(2))

    assert 1 == len(heard)
