"""What a POST of a binding costs the client, by HTTP engine.

    python -m tests.benchmarks.http_engine [--requests N] [--rounds N] [--uvloop]

Starts a server of its own in another process, so that the CPU time counted is the client's alone.
Engines take turns in every round; printed are CPU and wall time per request as median and range
over the rounds, and each engine's ratio to the first.
"""

import argparse
import asyncio
import multiprocessing
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import aiohttp
import httptools
import urllib3

from berth.client.endpoint import endpoint_of
from berth.client.transport import Transport

CONNECTIONS = 16
PATH = "/api/v1/namespaces/default/pods/some-pod-{}/binding"
BODY = (
    b'{"apiVersion":"v1","kind":"Binding","metadata":{"namespace":"default","name":"some-pod-12345",'
    b'"uid":"6b1d2c1e-9a57-4c43-a4c5-1f0f6a1c9d7e"},"target":{"kind":"Node","name":"node-0123456789"}}'
)
STATUS = b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","code":201}'
ANSWER = (
    b"HTTP/1.1 201 Created\r\nAudit-Id: 6b1d2c1e\r\nCache-Control: no-cache, private\r\n"
    b"Content-Type: application/json\r\nDate: Fri, 02 Jan 2026 03:04:05 GMT\r\n"
    b"Content-Length: %d\r\n\r\n%b" % (len(STATUS), STATUS)
)


class Server(asyncio.Protocol):
    """Answers every request with the status of a binding that landed."""

    def connection_made(self, transport):
        self.transport = transport
        self.parser = httptools.HttpRequestParser(self)

    def data_received(self, data):
        self.parser.feed_data(data)

    def on_message_complete(self):
        self.transport.write(ANSWER)


def serve(port):
    async def forever():
        loop = asyncio.get_running_loop()
        server = await loop.create_server(Server, "127.0.0.1", 0)
        port.put(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(forever())


async def spread(requests, one):
    """Run `one(i)` for every i, as many at a time as there are connections."""
    numbers = iter(range(requests))

    async def worker():
        for i in numbers:
            await one(i)

    await asyncio.gather(*(worker() for _ in range(CONNECTIONS)))


async def with_berth(url, requests):
    transport = Transport(endpoint_of(url), max_connections=CONNECTIONS)

    async def one(i):
        response = await transport.request("POST", PATH.format(i), BODY)
        assert response.status == 201

    await spread(CONNECTIONS, one)
    started = clocks()
    await spread(requests, one)
    spent = since(started)
    await transport.aclose()
    return spent


async def with_aiohttp(url, requests):
    headers = {"Content-Type": "application/json"}
    connector = aiohttp.TCPConnector(limit=CONNECTIONS)
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:

        async def one(i):
            async with session.post(url + PATH.format(i), data=BODY) as response:
                await response.read()
                assert response.status == 201

        await spread(CONNECTIONS, one)
        started = clocks()
        await spread(requests, one)
        return since(started)


async def with_urllib3(url, requests):
    headers = {"Content-Type": "application/json"}
    loop = asyncio.get_running_loop()
    with (
        urllib3.PoolManager(maxsize=CONNECTIONS) as pool,
        ThreadPoolExecutor(CONNECTIONS) as threads,
    ):

        def post(i):
            response = pool.request("POST", url + PATH.format(i), body=BODY, headers=headers)
            assert response.status == 201

        async def one(i):
            await loop.run_in_executor(threads, post, i)

        await spread(CONNECTIONS, one)
        started = clocks()
        await spread(requests, one)
        return since(started)


def clocks():
    return time.process_time(), time.perf_counter()


def since(started):
    cpu, wall = clocks()
    return cpu - started[0], wall - started[1]


ENGINES = {
    "asyncio.Protocol on httptools": with_berth,
    "aiohttp": with_aiohttp,
    "urllib3 in threads": with_urllib3,
}


def run_engine(engine, url, requests, *, uvloop):
    factory = None
    if uvloop:
        import uvloop as fast  # noqa: PLC0415 - optional

        factory = fast.new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        return runner.run(engine(url, requests))


def report(spent, requests):
    micro = {
        name: [[seconds * 1e6 / requests for seconds in times] for times in zip(*rounds, strict=True)]
        for name, rounds in spent.items()
    }
    base = statistics.median(next(iter(micro.values()))[0])
    lines = [f"{'engine':32}{'CPU µs':>8}{'(range)':>16}{'wall µs':>9}{'(range)':>16}{'CPU ratio':>11}"]
    for name, (cpu, wall) in micro.items():
        cells = [f"{statistics.median(v):.0f}" for v in (cpu, wall)]
        ranges = [f"({min(v):.0f} to {max(v):.0f})" for v in (cpu, wall)]
        ratio = statistics.median(cpu) / base
        lines.append(f"{name:32}{cells[0]:>8}{ranges[0]:>16}{cells[1]:>9}{ranges[1]:>16}{ratio:>11.1f}")
    sys.stdout.write("\n".join(lines) + "\n")


def run(_):
    """As one of many benchmarks."""
    main(["--rounds", "3"])


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=3000, help="in each round, for each engine")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--uvloop", action="store_true", help="run the asyncio engines on uvloop")
    options = parser.parse_args(arguments)
    context = multiprocessing.get_context("spawn")
    port = context.Queue()
    server = context.Process(target=serve, args=(port,), daemon=True)
    server.start()
    try:
        url = f"http://127.0.0.1:{port.get(timeout=30)}"
        spent = {name: [] for name in ENGINES}
        for _ in range(options.rounds):
            for name, engine in ENGINES.items():
                spent[name].append(run_engine(engine, url, options.requests, uvloop=options.uvloop))
    finally:
        server.terminate()
        server.join()
    report(spent, options.requests)


if __name__ == "__main__":
    main()
