"""What it costs to put pods into the queue and to take them out."""

import gc

from berth.config import load
from berth.event_handlers.pods import lister
from berth.framework.clock import SystemClock
from berth.framework.mirrors.listers import Store
from berth.plugins.priority_sort import PrioritySort
from berth.queue.requeueing.queue_profile import QueueProfile
from berth.queue.scheduling_queue import SchedulingQueue
from tests.benchmarks.tables import Table, timed
from tests.benchmarks.workloads import pod_template, read_pod


def run(_):
    """A table for a short and a long queue."""
    table = Table("queue, CPU µs", ["operation", "waiting", "p50", "p90", "p99"])
    for waiting in (1_000, 20_000):
        measure(table, waiting)
    table.show()


def measure(table, waiting):
    profile, unassigned = load(None).profiles[0].scheduler_name, Store()
    order = PrioritySort(None, None)
    queue = SchedulingQueue(
        order.less,
        {profile: QueueProfile()},
        SystemClock(),
        pod_lister=lister(unassigned),
        sort_key=order.sort_key,
    )
    template = pod_template()
    pods = [read_pod(template.bytes(i)) for i in range(waiting)]
    for pod in pods:
        unassigned.put(pod)
    popped = []
    gc.collect()
    gc.freeze()
    table.add("add", f"{waiting:,}", *timed(pods, queue.add))
    table.add("pop", f"{waiting:,}", *timed(pods, lambda _: popped.append(queue.pop())))
    table.add(
        "back as unschedulable",
        f"{waiting:,}",
        *timed(popped, queue.add_unschedulable_if_not_present),
    )
    gc.unfreeze()
