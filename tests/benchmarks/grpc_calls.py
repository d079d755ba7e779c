"""A question and its answer over gRPC: a call of its own each time, or a message on a stream that stands.

Run: python -m tests.benchmarks.grpc_calls
"""

import asyncio
import multiprocessing
import resource
import tempfile
import time
from pathlib import Path

import click
import grpc
import grpc.aio

QUESTIONS = 1000
WARM_UP = 100
QUESTION, ANSWER = b"q" * 3000, b"a" * 1600
TIMEOUT_SECONDS = 30.0


async def _unary(request, context):
    del request, context
    return ANSWER


async def _stream(requests, context):
    async for _ in requests:
        await context.write(ANSWER)


async def _serve(address):
    server = grpc.aio.server()
    methods = {
        "Call": grpc.unary_unary_rpc_method_handler(_unary),
        "Stream": grpc.stream_stream_rpc_method_handler(_stream),
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("bench.Questions", methods),))
    server.add_insecure_port(address)
    await server.start()
    await server.wait_for_termination()


def _server_process(address):
    asyncio.run(_serve(address))


async def _measure(address):
    async with grpc.aio.insecure_channel(address) as channel:
        await asyncio.wait_for(channel.channel_ready(), TIMEOUT_SECONDS)
        call = channel.unary_unary("/bench.Questions/Call")
        stream = channel.stream_stream("/bench.Questions/Stream")()

        async def over_stream():
            await stream.write(QUESTION)
            return await stream.read()

        async def as_call():
            return await call(QUESTION, timeout=TIMEOUT_SECONDS)

        return {"a call each": await _timed(as_call), "one stream": await _timed(over_stream)}


async def _timed(ask):
    for _ in range(WARM_UP):
        await ask()
    cpu, walls = _cpu(), []
    for _ in range(QUESTIONS):
        began = time.perf_counter()
        assert await ask() == ANSWER
        walls.append(time.perf_counter() - began)
    walls.sort()
    return (_cpu() - cpu) / QUESTIONS, walls[QUESTIONS // 2], walls[QUESTIONS * 99 // 100]


def _cpu():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def main():
    """Print client CPU and wall time a question, and the ratio."""
    with tempfile.TemporaryDirectory() as folder:
        address = f"unix:{Path(folder) / 'bench.sock'}"
        server = multiprocessing.get_context("spawn").Process(
            target=_server_process, args=(address,), daemon=True
        )
        server.start()
        try:
            results = asyncio.run(_measure(address))
        finally:
            server.terminate()
            server.join()
    click.echo(f"{'microseconds':<14}{'client CPU':>12}{'wall p50':>12}{'wall p99':>12}")
    for name, values in results.items():
        click.echo(f"{name:<14}" + "".join(f"{1e6 * value:>12.0f}" for value in values))
    calls, stream = results["a call each"], results["one stream"]
    ratios = "".join(f"{one / other:>12.1f}" for one, other in zip(calls, stream, strict=True))
    click.echo(f"{'ratio':<14}{ratios}")


if __name__ == "__main__":
    main()
