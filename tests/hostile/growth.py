"""How the cost of an object grows with each of its fields that may repeat, in counted work: the growth table.

Work is function calls, bytes written out as JSON to weigh, to compare or to send, the most memory in use, and
what of it is kept. It is counted at n, 2n and 4n: `growth` is how many times as much each further entry costs
from 2n to 4n as from n to 2n, and of memory how many times as much an entry takes at 4n as at n. 1 is linear.
The rows are in growth_rows/.
"""

import gc
import time
import tracemalloc
from contextlib import contextmanager

from berth.objects.pods import pod_template
from berth.snapshot import bounded_cache
from tests.hostile.work import calls

MAX_GROWTH = 1.35
"""Above this an entry costs more, the more there are; tables that grow in steps cause what is below."""
LITTLE = {"calls": 200, "bytes": 2_000, "memory": 100_000, "kept": 100_000}
"""Work that is less from n to 4n says nothing about growth."""
FEW = 40
"""The least that is counted: fixed costs matter below."""
WORK = ("calls", "bytes")
MEMORY = ("memory", "kept")
"""Tables that double in steps are a part of it: the difference of two sizes says little."""


def memory_of(step):
    """How many bytes more than before are in use at most, and once the step's result is dropped."""
    gc.collect(1)  # Older garbage was not traced: its end counts nowhere.
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        step()
        gc.collect()
        kept, peak = tracemalloc.get_traced_memory()
        return max(peak - before, 0), max(kept - before, 0)
    finally:
        tracemalloc.stop()


@contextmanager
def counting_bytes(found):
    """Adds up what is written out as JSON to be weighed, hashed or compared."""
    before = bounded_cache._encode, pod_template._encode

    def counting(encode):
        def write(value):
            data = encode(value)
            found.append(len(data))
            return data

        return write

    bounded_cache._encode, pod_template._encode = map(counting, before)
    try:
        yield
    finally:
        bounded_cache._encode, pod_template._encode = before


def memory(row, n):
    """The memory of each stage at that size."""
    return {stage: memory_of(step) for stage, step in row.stages(n).items()}


def once(row, n):
    """Take each stage once: what is remembered of such objects is known then, as it is at other sizes."""
    for step in row.stages(n).values():
        step()


def work(row, n):
    """The calls of each stage at that size, and the bytes that it writes, where it was taken before."""
    found = {}
    for stage, step in row.stages(n).items():
        written = []
        with counting_bytes(written):
            number = calls(step)
        if stage == "message":
            written.append(step())
        found[stage] = (number, sum(written))
    return found


def growths(row, n):
    """By stage and measure, how many times as much an entry costs from 2n to 4n as from n to 2n."""
    small, one = memory(row, n), work(row, n)
    once(row, 2 * n)
    two = work(row, 2 * n)
    large, four = memory(row, 4 * n), work(row, 4 * n)
    found = {}
    for stage in one:
        for measure, few, more, most in zip(WORK, one[stage], two[stage], four[stage], strict=True):
            grows = most - few >= LITTLE[measure] and more > few
            found[stage, measure] = (most - more) / 2 / (more - few) if grows else 1.0
    used = memory_growths(small, large)
    if max(used.values()) > MAX_GROWTH:
        # Python's table of interned strings, 2 MB, is made anew for its next entry once in a while.
        again = memory_growths(small, memory(row, 4 * n))
        used = {where: min(growth, again[where]) for where, growth in used.items()}
    return found | used


def memory_growths(small, large):
    """By stage and measure, how many times as much an entry takes at the larger size."""
    return {
        (stage, measure): most / 4 / max(few, LITTLE[measure] / 4) if most >= LITTLE[measure] else 1.0
        for stage in small
        for measure, few, most in zip(MEMORY, small[stage], large[stage], strict=True)
    }


MILLISECONDS = {
    "decoding": ("decoding",),
    "own cycle": ("its own cycle", "taken over"),
    "others": ("others' cycles",),
    "explain": ("explain",),
    "simulate": ("simulate",),
}
"""What the table's columns show: the first of these stages that a row has."""
HEADINGS = ["kind", "field", "entries", "bound", "growth", *MILLISECONDS, "message KiB", "kept KiB"]


def at_the_limit(row):
    """The table's row: as many entries as the API server takes; growth up to an eighth of them."""
    n = row.at_the_limit()
    worst = max(growths(row, max(n // 32, FEW)).values())
    steps = row.stages(n)
    sent = steps.pop("message")()
    took = {stage: cpu_of(step) for stage, step in steps.items()}
    shown = [
        next((f"{1000 * took[stage]:.0f}" for stage in stages if stage in took), "")
        for stages in MILLISECONDS.values()
    ]
    taken_over = row.stages(n).get("taken over")
    kept = "" if taken_over is None else f"{memory_of(taken_over)[1] >> 10}"
    return [row.kind, row.field, str(n), row.bound, f"{worst:.2f}", *shown, f"{sent >> 10}", kept]


def cpu_of(step):
    """Seconds of CPU, once."""
    before = time.process_time()
    step()
    return time.process_time() - before
