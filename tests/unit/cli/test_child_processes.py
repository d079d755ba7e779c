"""Programs that a process starts while it makes calls over gRPC run, all of them."""

import os
import subprocess
import sys

import pytest

from tests.suite import PATIENCE_SECONDS

PROGRAM = """
import asyncio, sys, tempfile
import {module}
import grpc, grpc.aio, uvloop

async def echo(request, _context):
    return request

async def main():
    handler = grpc.unary_unary_rpc_method_handler(echo)
    server = grpc.aio.server()
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("s.S", {{"Echo": handler}}),))
    with tempfile.TemporaryDirectory(prefix="berth-") as folder:
        server.add_insecure_port(f"unix:{{folder}}/s")
        await server.start()
        async with grpc.aio.insecure_channel(f"unix:{{folder}}/s") as channel:
            calls = asyncio.gather(*(calling(channel.unary_unary("/s.S/Echo")) for _ in range(4)))
            ended = {{await child() for _ in range(120)}}
            calls.cancel()
        await server.stop(0)
    print(sorted(ended))

async def calling(call):
    while True:
        await call(b"x")

async def child():
    return await (await asyncio.create_subprocess_exec(sys.executable, "-S", "-E", "-c", "")).wait()

uvloop.run(main())
"""


@pytest.mark.parametrize("module", ["berth.cli.main", "berth_sdk"])
def test_child_processes_run_while_calls_are_made(module):
    """gRPC's own preparation for uvloop's forks ended one in twenty before its program ran, six of 120."""
    environment = {key: value for key, value in os.environ.items() if key != "GRPC_ENABLE_FORK_SUPPORT"}
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(module=module)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
    )

    assert (0, "[0]") == (ended.returncode, ended.stdout.strip()), ended.stderr[-2000:]
