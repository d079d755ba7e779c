"""`/debug/pprof`: where the process is and what it spends its time on, in words.

The paths are those of kube-scheduler's profiles; the contents are Python's: a profile is samples of the
scheduling loop's thread, goroutines are its tasks. Heap and mutex profiles have no counterpart. Everything is
made in worker threads: neither loop waits for it.

Source: staging/src/k8s.io/apiserver/pkg/server/routes/profiling.go (Kubernetes v1.36).
"""

import asyncio
import io
import sys
import threading
import traceback
from collections.abc import Mapping

from aiohttp import web

from berth.serving.endpoints import Page
from berth.serving.stack_samples import StackSamples

MAX_SECONDS = 300.0


def profiling_pages(loop: asyncio.AbstractEventLoop, thread: int) -> Mapping[str, Page]:
    """The pages by path, about the event loop of that thread."""
    profiling = _Profiling(loop, thread)
    pages: dict[str, Page] = {
        "/debug/pprof/cmdline": _command_line,
        "/debug/pprof/goroutine": profiling.tasks,
        "/debug/pprof/profile": profiling.profile,
    }
    return {"/debug/pprof": _index, "/debug/pprof/": _index, **pages}


async def _index(_request: web.Request) -> web.Response:
    lines = (
        "cmdline    the command line, its arguments separated by zero bytes",
        "goroutine  the stack of every thread and task",
        "profile    functions by time, I/O a little too high; ?seconds=30: for how long",
    )
    return web.Response(text="".join(f"{line}\n" for line in lines))


async def _command_line(_request: web.Request) -> web.Response:
    return web.Response(text="\0".join(sys.argv))


class _Profiling:
    """Looks at one loop; takes one profile at a time."""

    def __init__(self, loop: asyncio.AbstractEventLoop, thread: int) -> None:
        self._loop = loop
        self._thread = thread
        self._taking = False
        self._listing = asyncio.Lock()

    async def tasks(self, _request: web.Request) -> web.Response:
        async with self._listing:
            return web.Response(text=await asyncio.to_thread(self._stacks))

    def _stacks(self) -> str:
        out = io.StringIO()
        for number, frame in sys._current_frames().items():  # noqa: SLF001 - the documented way to see all threads
            out.write(f"thread {number}\n{''.join(traceback.format_stack(frame))}\n")
        for task in asyncio.all_tasks(self._loop):
            task.print_stack(file=out)
            out.write("\n")
        return out.getvalue()

    async def profile(self, request: web.Request) -> web.Response:
        try:
            seconds = float(request.query.get("seconds", "30"))
        except ValueError:
            seconds = -1.0
        # A number that is none is not above anything.
        if not seconds > 0:
            return web.Response(status=400, text="seconds: a number above 0 is wanted\n")
        if self._taking:
            return web.Response(status=500, text="Could not enable CPU profiling: it is in use already\n")
        self._taking, stop, samples = True, threading.Event(), StackSamples()
        try:
            await asyncio.to_thread(samples.take, self._thread, min(seconds, MAX_SECONDS), stop)
        finally:
            self._taking = False
            stop.set()
        return web.Response(text=samples.text())
