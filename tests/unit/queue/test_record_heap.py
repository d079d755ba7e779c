"""The heap under activeQ and backoffQ."""

from hypothesis import given
from hypothesis import strategies as st

from berth.framework.queueing.queued_pod import QueuedPodInfo
from berth.plugins.priority_sort import PrioritySort
from berth.queue.pools.queue_order import queue_order
from berth.queue.pools.record_heap import RecordHeap
from tests.unit.queue.kit import a_pod

SORT = PrioritySort(None, None)


def a_heap():
    return RecordHeap(queue_order(SORT.less))


def a_record(name, priority=0, timestamp=0.0):
    return QueuedPodInfo(a_pod(name, priority=priority), timestamp)


def drained(heap):
    return [record.pod.name for record in iter(heap.pop, None)]


def test_higher_priority_first_then_first_come():
    """2.3: priority decides, then the time in the queue; a missing priority counts as 0."""
    heap = a_heap()
    for record in (
        a_record("late", 5, 2.0),
        a_record("low", -1, 0.0),
        a_record("none", None, 1.0),
        a_record("early", 5, 1.0),
    ):
        heap.put(record.pod.name, record)

    assert ["early", "late", "none", "low"] == drained(heap)


@given(
    priorities=st.lists(st.integers(0, 3), max_size=20),
    gone=st.sets(st.integers(0, 19)),
    most=st.integers(0, 25),
)
def test_upcoming_records_are_those_that_are_popped_next(priorities, gone, most):
    """Entries of records that left count among those that are looked at, and nothing is taken out."""
    heap = a_heap()
    for i, priority in enumerate(priorities):
        heap.put(f"p{i}", a_record(f"p{i}", priority, float(i)))
    for i in gone:
        heap.remove(f"p{i}")
    upcoming = [record.pod.name for record in heap.upcoming(most)]
    left = drained(heap)

    assert left[: len(upcoming)] == upcoming
    assert len(upcoming) >= min(most, len(priorities)) - len(gone)


def test_a_changed_record_is_put_again():
    """A record whose order changed stands where it belongs after another put."""
    heap, record = a_heap(), a_record("a", 0)
    heap.put("a", record)
    heap.put("b", a_record("b", 1))
    record.pod = a_pod("a", priority=2)

    assert not heap.put("a", record)
    assert ["a", "b"] == drained(heap)


def test_a_record_that_left_may_change():
    """What left the heap does not disturb what stays, whatever becomes of it."""
    heap, gone = a_heap(), a_record("gone", 9)
    heap.put("gone", gone)
    for number in range(20):
        heap.put(f"p{number}", a_record(f"p{number}", number % 7))
    heap.remove("gone")
    gone.pod = a_pod("gone", priority=-9)

    priorities = [record.pod.priority for record in iter(heap.pop, None)]
    assert sorted(priorities, reverse=True) == priorities


def test_memory_follows_the_records():
    """Records that are put again and again do not pile up."""
    heap = a_heap()
    for number in range(1000):
        heap.put("p", a_record("p", number))

    assert len(heap._heaps[""]) < 100


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 3) | st.none())))
def test_heap_as_a_dictionary(steps):
    """Puts, replacements and removals leave what a dictionary would hold, in order."""
    heap, model = a_heap(), {}
    for name, priority in steps:
        if priority is None:
            assert heap.remove(name) is model.pop(name, None)
        else:
            record = a_record(name, priority)
            assert heap.put(name, record) == (name not in model)
            model[name] = record

    assert set(model) == {record.pod.name for record in heap}
    assert len(model) == len(heap)
    popped = list(iter(heap.pop, None))
    assert sorted(-r.pod.priority for r in model.values()) == [-r.pod.priority for r in popped]


@given(st.lists(st.tuples(st.integers(-2, 2) | st.none(), st.sampled_from([0.0, 1.0, 2.0]))))
def test_a_sort_key_is_the_order_of_less(ranks):
    """2.3: PrioritySort's key puts records where its comparison puts them."""
    by_less, by_key = a_heap(), RecordHeap(queue_order(SORT.less, SORT.sort_key))
    for number, (priority, timestamp) in enumerate(ranks):
        for heap in (by_less, by_key):
            heap.put(f"p{number}", a_record(f"p{number}", priority, timestamp))

    assert drained(by_less) == drained(by_key)


def test_each_shard_has_an_order_of_its_own():
    """What is popped of one shard does not depend on what others hold; keys are those of all."""
    heap = RecordHeap(queue_order(SORT.less), lambda record: record.pod.name[0])
    for name, priority in (("a1", 1), ("b9", 9), ("a5", 5)):
        heap.put(name, a_record(name, priority))

    assert ["a5", "a1", None] == [record and record.pod.name for record in (heap.pop("a") for _ in range(3))]
    assert "b9" in heap
    assert "b9" == heap.pop("b").pod.name


def test_memory_follows_the_records_of_all_shards():
    heap = RecordHeap(queue_order(SORT.less), lambda record: record.pod.name[0])
    for priority in range(1000):
        for name in "ab":
            heap.put(name, a_record(name, priority))

    assert sum(map(len, heap._heaps.values())) < 100
    assert ["a", "b"] == [heap.pop(shard).pod.name for shard in "ab"]
