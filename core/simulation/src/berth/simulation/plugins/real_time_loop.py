"""Real time next to virtual time: an event loop in a thread that runs only while the simulation waits for it.

    simulation --run--> its thread waits --> connections, sockets, deadlines --> result

The two threads never run at the same time, so shared state needs no locks. No virtual time passes while a
call is under way, and answers come in the order of the questions.

Called by: outside_plugins.py.
"""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self, TypeVar

T = TypeVar("T")


class RealTimeLoop:
    """Runs coroutines in real time; a context manager.

    Background tasks continue whenever another coroutine runs.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="plugins of a simulation")
        self._runner = asyncio.Runner()
        self.runs = 0
        """How many coroutines were run."""

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run it and return its result. Raises: whatever it raises."""
        self.runs += 1
        return self._thread.submit(self._runner.run, work).result()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Cancel the remaining tasks."""
        self._thread.submit(self._runner.close).result()
        self._thread.shutdown()
