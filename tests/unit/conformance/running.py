"""Plugins as processes of their own, to be put to the kit."""

import asyncio
import tempfile
from contextlib import asynccontextmanager
from pathlib import Path

from berth.conformance import VerifyOptions
from tests.reaper import marks
from tests.sockets import served


@asynccontextmanager
async def process(*command, **environment):
    """A plugin in a process of its own, and the options to verify it to its end."""
    with tempfile.TemporaryDirectory(prefix="berth-") as folder:
        path, spans = Path(folder, "p.sock"), Path(folder, "spans")
        environment |= {"BERTH_PLUGIN_ADDRESS": f"unix:{path}", "BERTH_TRACE_FILE": str(spans), **marks()}
        started = await asyncio.create_subprocess_exec(
            *command,
            env=environment,
            stderr=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
        )
        await served(path, started)

        async def stop():
            started.terminate()
            await started.wait()

        try:
            yield VerifyOptions(f"unix:{path}", many_nodes=500, trace_file=spans, stop=stop)
        finally:
            if started.returncode is None:
                started.kill()
            await started.wait()
