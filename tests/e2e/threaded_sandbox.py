"""An API server in memory, served by a thread of this process: to start a process takes 0.4 CPU seconds."""

import asyncio
import os
from concurrent.futures import Future
from contextlib import contextmanager
from threading import Thread

from berth.sandbox import serve
from tests.suite import LOOP_VARIABLE, LOOPS, PATIENCE_SECONDS


@contextmanager
def threaded_sandbox(kubeconfig, documents=()):
    """A sandbox with these objects, and its kubeconfig in that file, until the block ends; gives its URL."""
    ready = Future()

    async def serving():
        stop = asyncio.Event()
        async with await serve() as sandbox:
            sandbox.load(documents)
            sandbox.write_kubeconfig(kubeconfig)
            ready.set_result((sandbox.url, asyncio.get_running_loop(), stop))
            await stop.wait()

    def run():
        try:
            with asyncio.Runner(loop_factory=LOOPS[os.environ.get(LOOP_VARIABLE, "asyncio")]) as runner:
                runner.run(serving())
        except BaseException as error:
            if ready.done():
                raise
            ready.set_exception(error)

    thread = Thread(target=run)
    thread.start()
    url, loop, stop = ready.result(PATIENCE_SECONDS)
    try:
        yield url
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(PATIENCE_SECONDS)
