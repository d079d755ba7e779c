"""The sandbox behind two HTTP engines: its own protocol on httptools, and aiohttp's low-level server.

    python -m tests.benchmarks.sandbox_http [--pods 5000] [--list-pods 50000]

Each engine runs in a process of its own and answers the same requests from the same API: pods of about 3 KB
are created, bound (two watches running), read and listed. Printed: requests a second as a client on eight
connections sees them, and the CPU time that the server's process spends on one.
"""

import argparse
import asyncio
import contextlib
import os
import resource
import subprocess
import sys
import time

import click
import msgspec
from aiohttp import web

from berth.sandbox import SandboxOptions, serve
from berth.sandbox.request import CompleteAnswer, ReceivedRequest

CONNECTIONS = 8
ENGINES = ("httptools", "aiohttp")
FILLER = {f"example.com/filler-{i}": "x" * 100 for i in range(18)}


def pod_document(number):
    """A pod that is about 3 KB once the server has filled in its defaults."""
    container = {
        "name": "main",
        "image": "registry.example.com/team/app:1.2.3",
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}},
    }
    metadata = {"name": f"pod-{number:06}", "labels": {"app": f"app-{number % 100}"}, "annotations": FILLER}
    return {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": {"containers": [container]}}


def cpu_seconds():
    """User and system time of this process so far."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


async def serve_engine(engine):
    """Serve until standard input ends; `/debug/cpu` shows the process's CPU seconds."""
    sandbox = await serve(SandboxOptions(kubelets=False))
    handle = sandbox.api.handle

    def answer(request):
        if request.path == "/debug/cpu":
            return CompleteAnswer(200, [str(cpu_seconds()).encode()])
        return handle(request)

    sandbox.api.handle = answer
    url = sandbox.url if engine == "httptools" else await serve_aiohttp(answer)
    click.echo(url)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    os._exit(0)


async def serve_aiohttp(answer):
    """The same API behind aiohttp.web.Server, the barest that aiohttp offers."""

    async def handler(raw):
        headers = {key.lower(): value for key, value in raw.headers.items()}
        request = ReceivedRequest(raw.method, raw.path, dict(raw.query), headers, await raw.read())
        found = answer(request)
        if isinstance(found, CompleteAnswer):
            body = b"".join(found.parts)
            return web.Response(status=found.status, body=body, content_type="application/json")
        return await stream(raw, found)

    async def stream(raw, found):
        response = web.StreamResponse()
        response.content_type = "application/json"
        response.enable_chunked_encoding()
        await response.prepare(raw)
        changed = asyncio.Event()
        found.subscribe(changed.set)
        while True:
            await changed.wait()
            changed.clear()
            while parts := found.pull():
                await response.write(b"".join(parts))

    runner = web.ServerRunner(web.Server(handler))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    return f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}"


class Client:
    """One keep-alive connection that spends as little as it can."""

    def __init__(self, reader, writer):
        self.reader, self.writer = reader, writer

    @classmethod
    async def open(cls, url):
        host, port = url.removeprefix("http://").split(":")
        return cls(*await asyncio.open_connection(host, int(port), limit=1 << 26))

    async def call(self, method, path, body=b""):
        head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        self.writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        answer = await self.reader.readuntil(b"\r\n\r\n")
        length = int(answer.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
        content = await self.reader.readexactly(length)
        assert answer[9] == ord("2"), content[:500]
        return content

    async def drain_watch(self, path):
        self.writer.write(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        while await self.reader.read(1 << 20):
            pass


async def measure(url, requests):
    """Send the requests over several connections; give (requests a second, server CPU µs for one)."""
    clients = [await Client.open(url) for _ in range(CONNECTIONS)]
    before = float(await clients[0].call("GET", "/debug/cpu"))
    start = time.perf_counter()
    pending = iter(requests)

    async def work(client):
        for request in pending:
            await client.call(*request)

    await asyncio.gather(*(work(client) for client in clients))
    elapsed = time.perf_counter() - start
    cpu = float(await clients[0].call("GET", "/debug/cpu")) - before
    for client in clients:
        client.writer.close()
    return len(requests) / elapsed, cpu / len(requests) * 1e6


async def run_engine(engine, pods, list_pods):
    """Start the engine's server, send the work, print the figures."""
    command = [sys.executable, "-m", "tests.benchmarks.sandbox_http", "--serve", engine]
    pipe = subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe)
    url = (await process.stdout.readline()).decode().strip()
    base = "/api/v1/namespaces/default/pods"
    encode = msgspec.json.encode
    names = [f"pod-{number:06}" for number in range(pods)]
    target = {"kind": "Node", "name": "node-1"}
    # The first pod has the server read its schemas; that is not what is compared.
    await measure(url, [("POST", base, encode(pod_document(pods + list_pods)))])
    work = {
        "create": [("POST", base, encode(pod_document(number))) for number in range(pods)],
        "bind": [
            ("POST", f"{base}/{name}/binding", encode({"metadata": {"name": name}, "target": target}))
            for name in names
        ],
        "get": [("GET", f"{base}/{name}") for name in names],
        "healthz": [("GET", "/healthz") for _ in names],
    }
    for title, requests in work.items():
        watches = []
        if title == "bind":
            watchers = [await Client.open(url) for _ in range(2)]
            watches = [asyncio.create_task(one.drain_watch(f"{base}?watch=1")) for one in watchers]
            await asyncio.sleep(0.5)
        rate, micros = await measure(url, requests)
        click.echo(f"{engine:10} {title:8} {rate:8.0f} requests/s {micros:8.0f} µs CPU each")
        for task in watches:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
    more = [("POST", base, encode(pod_document(number))) for number in range(pods, list_pods)]
    await measure(url, more)
    await time_list(engine, url)
    process.stdin.close()
    await process.wait()


async def time_list(engine, url):
    """Time one list of everything."""
    client = await Client.open(url)
    before = float(await client.call("GET", "/debug/cpu"))
    start = time.perf_counter()
    size = len(await client.call("GET", "/api/v1/pods"))
    elapsed = time.perf_counter() - start
    cpu = float(await client.call("GET", "/debug/cpu")) - before
    click.echo(f"{engine:10} list     {elapsed:8.2f} s for {size / 1e6:.0f} MB, {cpu:.2f} s CPU")


def run(_):
    """As one of many benchmarks: fewer pods."""
    main(["--pods", "1000", "--list-pods", "5000"])


def main(options=None):
    """Run both engines, or serve as one."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--serve", choices=ENGINES)
    parser.add_argument("--pods", type=int, default=5_000)
    parser.add_argument("--list-pods", type=int, default=50_000)
    arguments = parser.parse_args(options)
    if arguments.serve:
        asyncio.run(serve_engine(arguments.serve))
        return
    for engine in ENGINES:
        asyncio.run(run_engine(engine, arguments.pods, arguments.list_pods))


if __name__ == "__main__":
    main()
