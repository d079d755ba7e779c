"""What became of a queue's pods is counted: placed, evicted, and how long they waited."""

from berth_queues.tally import MAX_TALLIES, Tallies
from berth_queues.waiting import WaitingPod


def waiting(name="p", since=0.0, placed_at=None, queue="a"):
    return WaitingPod(name, "ns", queue, "", 0, 0, {}, since=since, placed_at=placed_at)


def test_a_pod_counts_once():
    """However often it is heard that it has its node, and not at all where it has none."""
    tallies, pod = Tallies(), waiting(since=10.0, placed_at=25.0)

    for each in (pod, pod, waiting(since=3.0)):
        tallies.placed(each)

    found = tallies.by_queue["a"]
    assert (1, 15.0, 15.0) == (found.placed, found.waited_seconds, found.longest_seconds)


def test_tallies_are_bounded():
    """The queue goes to whose pods nothing happened for longest."""
    tallies = Tallies()
    for number in range(MAX_TALLIES):
        tallies.evicted(f"q{number}")
    tallies.evicted("q0")

    tallies.evicted("one more")

    assert MAX_TALLIES == len(tallies.by_queue)
    assert (True, False) == ("q0" in tallies.by_queue, "q1" in tallies.by_queue)
