"""`berth live` prints where the page is, or what is wrong."""

import asyncio
import socket
import sys

from click.testing import CliRunner

from berth.cli.main import main
from tests.suite import PATIENCE_SECONDS


async def test_the_address_is_printed():
    """And served until the end."""
    command = (sys.executable, "-m", "berth.cli", "live", "--server", "https://127.0.0.1:1", "--token", "t")
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            line = (await process.stdout.readline()).decode().strip()
        assert line.startswith("http://127.0.0.1:")
        assert line.endswith("/live")
    finally:
        process.kill()
        await process.communicate()


def test_a_port_that_is_taken():
    """Names the flag and what to do."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = CliRunner().invoke(main, ["live", "--port", str(port), "--token", "t"])

    assert 2 == done.exit_code
    assert done.output.startswith(f"Error: --port {port}: ")
    assert done.output.endswith("choose another one, or 0\n")
