"""Real time beside virtual time: a loop on a thread of its own, which goes on only while it is waited for.

    simulation --run--> its thread waits --> connections, sockets, deadlines --> result

Both threads never run at once, so what they share needs no locks. No virtual time passes while a
call is on its way, and answers come in the order of the questions.

Called by: outside_plugins.py.
"""

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Self, TypeVar

T = TypeVar("T")


class Outside:
    """Runs coroutines in real time; to be closed by `with`.

    Tasks that a coroutine leaves behind go on whenever another one runs.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="plugins of a simulation")
        self._runner = asyncio.Runner()
        self.runs = 0
        """How many coroutines were run."""

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """What comes of it. Raises: what it raises."""
        self.runs += 1
        return self._thread.submit(self._runner.run, work).result()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Cancel what is left."""
        self._thread.submit(self._runner.close).result()
        self._thread.shutdown()
