"""Stand-ins for etcd and kube-apiserver, which no package registry has.

The API server's takes the arguments of the real one that matter to a client, and serves the in-memory API
with that certificate on that port; etcd's only waits. Each notes its process, and when it is asked to end.
"""

import argparse
import asyncio
import os
import signal
import ssl
import stat
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
JOURNAL = "ended"


def install(folder, *names, last_words=None):
    """Put programs of these names into a folder; with last words they say so and fail at once."""
    folder.mkdir(exist_ok=True)
    for name in names:
        serving = f"-m tests.e2e.stand_in {name} '{folder / JOURNAL}'"
        line = f"PYTHONPATH='{ROOT}' exec '{sys.executable}' {serving} \"$@\""
        if last_words:
            line = f"echo starting; echo '{last_words}' >&2; exit 3"
        program = folder / name
        program.write_text(f"#!/bin/sh\n{line}\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return folder


async def serve(name, journal, arguments):
    """Serve until asked to end."""
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    if name == "kube-apiserver":
        await listen(arguments)
    journal.with_name(f"{name}.pid").write_text(str(os.getpid()))
    print("serving", flush=True)  # noqa: T201 (what a server says goes to its log)
    await stop.wait()
    with journal.open("a") as ended:
        ended.write(f"{name}\n")


async def listen(arguments):
    """Listen as the API server."""
    from berth.sandbox.api import SandboxApi  # noqa: PLC0415 (etcd's has no use for it)
    from berth.sandbox.http import HttpConnection  # noqa: PLC0415 (the same)
    from berth.sandbox.store import SandboxStore  # noqa: PLC0415 (the same)

    parser = argparse.ArgumentParser()
    for flag in ("bind-address", "secure-port", "tls-cert-file", "tls-private-key-file"):
        parser.add_argument(f"--{flag}", required=True)
    reported, _ = parser.parse_known_args(arguments)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(reported.tls_cert_file, reported.tls_private_key_file)
    api, connections = SandboxApi(SandboxStore(), time.time), set()
    await asyncio.get_running_loop().create_server(
        lambda: HttpConnection(api.handle, connections),
        reported.bind_address,
        int(reported.secure_port),
        ssl=tls,
    )


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], Path(sys.argv[2]), sys.argv[3:]))
