"""load-aware: how long it takes to score all nodes, while it fetches their metrics every second.

The plugin is a process, and metrics-server is stood for by a server in this one.
"""

import asyncio
import tempfile
import time
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
from aiohttp import web

from berth_plugin_proto import scheduling_pb2
from berth_sdk.testing import make_pod
from berth_sdk.testing.host import Host
from tests.benchmarks.tables import Table, quantiles
from tests.benchmarks.workloads import node_bytes
from tests.node_metrics import node_metrics
from tests.node_toolchain import FROM_SOURCE, NODE, ROOT, install
from tests.sockets import served
from tests.unit.client.conftest import web_server

PROGRAM = ROOT / "out-of-tree-plugins/load-aware/src/main.ts"
STRATEGIES = ("TargetLoadPacking", "LoadVariationRiskBalancing")
NODES = 5_000
CORES = 64
ROUNDS = 500
PAUSE_SECONDS = 0.005
READY_SECONDS = 60


def run(options):
    """One table."""
    table = Table(
        f"load-aware (TypeScript, unix socket), {NODES:,} nodes scored, metrics fetched every second, ms",
        ["strategy", "p50", "p90", "p99", "highest"],
    )
    for strategy in STRATEGIES:
        table.add(strategy, *asyncio.run(measured(strategy, options.rounds or ROUNDS)))
    table.show()


async def measured(strategy, rounds):
    """Milliseconds of an answer as the host sees it: p50, p90, p99, highest."""
    nodes = [msgspec.json.decode(data) for data in node_bytes(NODES)]
    items = [node_metrics(node["metadata"]["name"], i % 90 / 100, CORES) for i, node in enumerate(nodes)]
    # Made once: this process is to be idle while it waits for answers.
    body = msgspec.json.encode({"items": items})

    async def metrics(_request):
        return web.Response(body=body, content_type="application/json")

    async with web_server(metrics) as url, plugin() as address:
        host = Host(address)
        for node in nodes:
            host.cluster.put_node(node)
        provider = {"type": "KubernetesMetricsServer", "address": url}
        await host.connect(
            {
                "strategy": strategy,
                "fetchIntervalSeconds": 1,
                "maxAgeSeconds": 600,
                "metricProvider": provider,
            }
        )
        async with asyncio.timeout(READY_SECONDS):
            while len(set((await host.score(make_pod("first"))).values())) == 1:  # noqa: ASYNC110 - of another process
                await asyncio.sleep(0.1)
        taken = [await answered(host, make_pod(f"p{i}")) for i in range(rounds)]
        await host.close()
    return [*quantiles(taken, 0.5, 0.9, 0.99), max(taken)]


async def answered(host, pod):
    """Milliseconds from a question to its answer."""
    request = scheduling_pb2.ScoreRequest(call=host.call(pod))
    started = time.perf_counter()
    response = await host.scheduling.Score(request, timeout=READY_SECONDS)
    taken = (time.perf_counter() - started) * 1e3
    assert response.HasField("scores"), response.status
    await asyncio.sleep(PAUSE_SECONDS)
    return taken


@asynccontextmanager
async def plugin():
    """The plugin as a process of its own; its address."""
    install()
    with tempfile.TemporaryDirectory(prefix="berth-") as folder:
        socket = Path(folder, "p.sock")
        flags = ("--address", f"unix:{socket}", "--log-level", "error")
        process = await asyncio.create_subprocess_exec(NODE, FROM_SOURCE, PROGRAM, *flags)
        try:
            await served(socket, process)
            yield f"unix:{socket}"
        finally:
            process.terminate()
            await process.wait()
