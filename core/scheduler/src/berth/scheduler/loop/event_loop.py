"""How the process is run: on the quicker event loop where there is one, with a calmer garbage collector."""

import asyncio
import ctypes
import gc
import os
import sys
from collections.abc import Callable, Coroutine
from typing import Any

from berth.serving.errors import StartError

LOOP_VARIABLE = "BERTH_EVENT_LOOP"
ALLOCATIONS_BEFORE_A_LOOK = 50_000
LOOKS_BEFORE_THE_NEXT_GENERATION = 20
GIVE_BACK_SECONDS = 20.0
SWITCH_SECONDS = 0.001
"""How long a thread that computes keeps the others from doing so.

The scheduling loop and the control thread wait for each other each time they come back from a system call
while the other computes: five milliseconds, as is Python's default, add up to a stop.
"""


def run(main: Coroutine[Any, Any, None]) -> None:
    """Run to the end, on uvloop where that is installed, or on the loop that BERTH_EVENT_LOOP names.

    Raises: StartError where that is none.
    """
    sys.setswitchinterval(SWITCH_SECONDS)
    try:
        factory = _loop_factory(os.environ.get(LOOP_VARIABLE, ""))
    except StartError:
        main.close()
        raise
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(main)


def _loop_factory(wanted: str) -> Callable[[], asyncio.AbstractEventLoop] | None:
    if wanted == "asyncio":
        return None
    if wanted not in {"", "uvloop"}:
        raise StartError(
            f"{LOOP_VARIABLE}: {wanted!r} is no event loop: set asyncio or uvloop, or leave it out"
        )
    try:
        import uvloop  # noqa: PLC0415 - has no wheel for every platform
    except ImportError:
        if wanted:
            raise StartError(
                f"{LOOP_VARIABLE}: uvloop is not installed: install it, or set asyncio"
            ) from None
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


def collect_seldom() -> None:
    """Look for garbage seldom, from the start on: modules and API objects stay, and objects hold no cycles.

    A collection over 50,000 pods stops the loop for 100 ms and more; with Python's defaults a start spends a
    tenth of its CPU on them.
    """
    gc.set_threshold(
        ALLOCATIONS_BEFORE_A_LOOK, LOOKS_BEFORE_THE_NEXT_GENERATION, LOOKS_BEFORE_THE_NEXT_GENERATION
    )


def leave_alone_what_there_is() -> None:
    """Never look at the objects of the first lists again: they live as long as the process does."""
    gc.freeze()


async def give_back_regularly(every_seconds: float = GIVE_BACK_SECONDS) -> None:
    """Return what is free from time to time: an object of many MiB leaves its memory between what stays.

    glibc gives back by itself only what is free at the end of its heap, or was mapped apart. Mapping apart
    whatever is larger than a fixed size (mallopt) would do the same for columns of large clusters, in each
    cycle. Another thread waits for the allocator, and the event loop only where it needs more than 512 bytes.
    """
    while True:
        await asyncio.sleep(every_seconds)
        await asyncio.to_thread(give_back_what_is_free)


def give_back_what_is_free() -> None:
    """Return to the system what C's allocator keeps of memory that was freed.

    After the first lists of 50,000 pods that is 10 MiB. Cost: some milliseconds. C libraries other than glibc
    have no such call.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
