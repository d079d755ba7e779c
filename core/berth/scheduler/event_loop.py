"""How the process is run: the quicker event loop where it is installed, and a calmer garbage collector."""

import asyncio
import gc
from collections.abc import Callable, Coroutine
from typing import Any

ALLOCATIONS_BEFORE_A_LOOK = 50_000
LOOKS_BEFORE_THE_NEXT_GENERATION = 20


def run(main: Coroutine[Any, Any, None]) -> None:
    """Run to the end, on uvloop where that is installed."""
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(main)


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop  # noqa: PLC0415 - optional
    except ImportError:
        return None
    factory: Callable[[], asyncio.AbstractEventLoop] = uvloop.new_event_loop
    return factory


def collect_less_often() -> None:
    """Leave the objects of the first lists alone: they live as long as the process does.

    A collection over 50,000 pods stops the loop for 100 ms and more and finds nothing: API objects hold no
    cycles.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(
        ALLOCATIONS_BEFORE_A_LOOK, LOOKS_BEFORE_THE_NEXT_GENERATION, LOOKS_BEFORE_THE_NEXT_GENERATION
    )
