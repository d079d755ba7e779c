"""Core 11.3: the flows that are not tested with their rule."""

from berth.framework.cluster_event import UNSCHEDULABLE_TIMEOUT
from tests.unit.queue.kit import NODE_ADD, a_bench


def test_order_of_pops_from_backoff():
    """11.3.1: p3's second comes first, then p2 before p1 by priority; the failed pod is not popped."""
    bench = a_bench()
    records = {
        name: bench.popped(name, priority=priority)
        for name, priority in (("p1", 1), ("p2", 9), ("p3", 0), ("e", 99))
    }
    bench.queue.move_all(NODE_ADD, None, None)
    bench.fail(records["p3"], "A")
    bench.clock.seconds += 1
    for name in ("p1", "p2"):
        bench.fail(records[name], "A")
    bench.fail(records["e"])

    assert bench.pop_names() == ["p3", "p2", "p1"]
    assert bench.where(records["e"].pod) == "error"


def test_a_failed_pod_waits_its_time():
    """11.3.12: after an error the next attempt comes only after the backoff, with nothing else to do."""
    bench = a_bench()
    record = bench.popped()
    bench.fail(record)
    assert bench.pop_names() == []
    bench.clock.seconds = bench.queue._sub_queues.backoff.next_completion()
    bench.queue.flush()

    assert bench.pop_names() == ["p0"]


def test_a_flush_during_an_attempt():
    """2.12 and 2.15: a pod that returns after a flush backs off, since the wildcard is for everybody."""
    bench = a_bench()
    record = bench.popped()
    bench.queue.move_all(UNSCHEDULABLE_TIMEOUT, None, None)
    bench.fail(record, "A")

    assert bench.where(record.pod) == "normal"
