"""How much a piece of code works and what it keeps, in numbers that no other process changes."""

import cProfile
import gc
import tracemalloc
from collections.abc import Callable


def calls(work: Callable[[], object]) -> int:
    """Count the Python and C functions that `work` calls, none of them for what earlier work left behind."""
    profile = cProfile.Profile(subcalls=False)
    gc.disable()  # Collecting would call finalizers of other tests' objects.
    profile.enable()
    try:
        work()
    finally:
        profile.disable()
        gc.enable()
    return sum(each.callcount for each in profile.getstats())


TIMES = 3


def kept_bytes(work: Callable[[], object], *, enough: float = 0, times: int = TIMES) -> int:
    """Count the bytes that are still allocated once `work` has returned and its result is dropped.

    The least of so many times that it is done: a table that was there before, and is made anew for its next
    entry, counts whole, for what it was is not known. Less than `enough` ends it: no further time is needed.
    Once is for work that keeps other things the next time. NumPy's arrays count. Caches that `work` fills for
    the first time count, too: run it once before.
    """
    gc.collect(1)  # Older garbage was not traced: its end counts nowhere.
    tracemalloc.start()
    try:
        least = _kept_once(work)
        for _ in range(times - 1):
            if least < enough:
                break
            least = min(least, _kept_once(work))
        return least
    finally:
        tracemalloc.stop()


def _kept_once(work: Callable[[], object]) -> int:
    before = tracemalloc.get_traced_memory()[0]
    work()
    gc.collect()
    return tracemalloc.get_traced_memory()[0] - before


def growth(work: Callable[[int], Callable[[], object]], size: int, factor: int = 4) -> float:
    """How many times as many calls `factor` times the size takes, divided by `factor`: 1 is linear.

    `work(n)` sets a case of that size up and returns what is to be measured.
    """
    return calls(work(size * factor)) / calls(work(size)) / factor
