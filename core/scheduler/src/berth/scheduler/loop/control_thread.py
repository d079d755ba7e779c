"""The thread that answers for the process while the scheduling loop is busy: lease, health and metrics.

    scheduling loop (main thread)                    control loop (this thread)
    queue, cache, snapshot, watches, writes          elector, secure port, access reviews
         ── run(): election, start of the server ──►
         ◄── turns: has it come round? LoopTurns.ask() for what pages show of it ──

Each loop owns its objects, and each of the two has connections and credentials of its own. What crosses over
is awaited on both sides, or is one value that one thread writes.
"""

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Self, TypeVar

from berth.scheduler.loop.loop_turns import LoopTurns
from berth.scheduler.loop.pauses import LoopPauses

T = TypeVar("T")


class ControlThread:
    """A thread with an event loop, while it is entered; follows the turns of the loop that enters.

    That loop pauses now and then, so that this thread has the interpreter when it needs it (pauses.py).
    """

    def __init__(self, turns: LoopTurns) -> None:
        self.turns = turns
        self._pauses = LoopPauses(turns.loop)
        # A daemon, so that a second SIGTERM or an error at the start never waits for it.
        self._thread = threading.Thread(target=self._work, name="control", daemon=True)
        self._started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def __aenter__(self) -> Self:
        self._thread.start()
        self._loop, self._over = await asyncio.wrap_future(self._started)
        self._pauses.begin()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._pauses.end()
        self._loop.call_soon_threadsafe(self._over.set)
        await asyncio.to_thread(self._thread.join)

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """What the work returns or raises, run by the control loop; cancelled there when cancelled here."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    def _work(self) -> None:
        # asyncio's own loop: there is too little to do here for a quicker one to matter.
        with asyncio.Runner() as runner:
            runner.run(self._until_over())

    async def _until_over(self) -> None:
        over = asyncio.Event()
        self._started.set_result((asyncio.get_running_loop(), over))
        watching = asyncio.create_task(self.turns.watch())
        await over.wait()
        watching.cancel()
