"""`/debug/pprof`: where the process is and what it spends its time on, in words.

The paths are those of kube-scheduler's profiles; the contents are Python's: a profile is what cProfile saw of
the event loop's thread, goroutines are tasks. Heap and mutex profiles have no counterpart.

Source: spec/core.md 8.4.
"""

import asyncio
import cProfile
import io
import pstats
import sys
import traceback
from collections.abc import Mapping

from aiohttp import web

from berth.scheduler.serving import Page

MOST_SECONDS = 300.0
SHOWN_FUNCTIONS = 80


def profiling_pages() -> Mapping[str, Page]:
    """The pages by path."""
    pages: dict[str, Page] = {
        "/debug/pprof/cmdline": _command_line,
        "/debug/pprof/goroutine": _tasks,
        "/debug/pprof/profile": _profile,
    }
    return {"/debug/pprof": _index, "/debug/pprof/": _index, **pages}


async def _index(_request: web.Request) -> web.Response:
    lines = (
        "cmdline    the command line, its arguments separated by zero bytes",
        "goroutine  the stack of every thread and task",
        "profile    functions by time; ?seconds=30 says for how long to look",
    )
    return web.Response(text="".join(f"{line}\n" for line in lines))


async def _command_line(_request: web.Request) -> web.Response:
    return web.Response(text="\0".join(sys.argv))


async def _tasks(_request: web.Request) -> web.Response:
    out = io.StringIO()
    for number, frame in sys._current_frames().items():  # noqa: SLF001 - the documented way to see all threads
        out.write(f"thread {number}\n{''.join(traceback.format_stack(frame))}\n")
    for task in asyncio.all_tasks():
        task.print_stack(file=out)
        out.write("\n")
    return web.Response(text=out.getvalue())


async def _profile(request: web.Request) -> web.Response:
    try:
        seconds = float(request.query.get("seconds", "30"))
    except ValueError:
        return web.Response(status=400, text="seconds: a number is wanted\n")
    profile = cProfile.Profile()
    try:
        profile.enable()
    except ValueError:
        return web.Response(status=500, text="Could not enable CPU profiling: it is in use already\n")
    try:
        await asyncio.sleep(min(seconds, MOST_SECONDS))
    finally:
        profile.disable()
    out = io.StringIO()
    pstats.Stats(profile, stream=out).sort_stats("cumulative").print_stats(SHOWN_FUNCTIONS)
    return web.Response(text=out.getvalue())
