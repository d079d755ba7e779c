"""What a scheduler's memory is taken by: the process, nodes, placed pods; and the lines that allocate most.

The cluster is one of `written_cluster`, which costs next to no CPU; `--nodes` and `--placed` say its size.
Nodes are those of the other benchmarks, which report two images, and in a row of their own as kubelets in a
cloud report them, with 50.
"""

import asyncio
import json
import sys
import tempfile
import time
from contextlib import asynccontextmanager
from pathlib import Path

from berth.demo.processes import Child
from berth.sandbox.free_port import free_port
from tests.benchmarks.start import CONFIGURATION, at_rest, realistic_pod, resident_mebibytes
from tests.benchmarks.tables import Table
from tests.benchmarks.written_cluster import WrittenCluster, nodes, reported_nodes, stored

NODE_COUNT, PLACED, LINES = 5_000, 50_000, 25
LOOK_SECONDS, START_SECONDS = 0.05, 600
MEBIBYTE = 1 << 20
PLAIN, TRACED = ("berth.cli", "scheduler"), ("tests.benchmarks.measured_start",)
KUBECONFIG = """
apiVersion: v1
kind: Config
clusters: [{{name: c, cluster: {{server: "{url}"}}}}]
users: [{{name: u, user: {{}}}}]
contexts: [{{name: x, context: {{cluster: c, user: u}}}}]
current-context: x
"""


def run(options):
    """A table of parts and one of lines."""
    size = options.nodes or NODE_COUNT, options.placed or PLACED
    asyncio.run(parts(*size))
    asyncio.run(lines(*size))


async def parts(node_count, placed):
    """What is resident with each part more, and what that is for each of its objects."""
    headings = ["of", "at rest MiB", "high water MiB", "CPU s", "more bytes each"]
    table = Table(f"memory with {node_count:,} nodes and {placed:,} placed pods", headings)
    found = {}
    for name, beside, some_nodes, some_pods, count in (
        ("the process", "", (), 0, 1),
        ("with nodes of 50 images", "the process", reported_nodes(node_count), 0, node_count),
        ("with nodes", "the process", nodes(node_count), 0, node_count),
        ("with placed pods", "with nodes", nodes(node_count), placed, placed),
    ):
        # Once to compile the modules.
        for _ in range(2 if name == "the process" else 1):
            async with started(some_nodes, node_count, some_pods, PLAIN) as (child, folder):
                await until(child, lambda folder=folder: "Sync completed" in (folder / "log").read_text())
                await at_rest(child)
                found[name], used = resident_mebibytes(child.pid), child.usage()
        each = (found[name] - found.get(beside, 0.0)) * MEBIBYTE / count
        table.add(name, found[name], used.peak_mebibytes, used.cpu_seconds, each)
    table.show()


async def lines(node_count, placed):
    """Which lines of code allocated what is there once everything is listed."""
    table = Table("lines that allocated most", ["line", "MiB", "blocks", "bytes of a block"])
    async with started(nodes(node_count), node_count, placed, TRACED) as (child, folder):
        await until(child, (folder / "lines").exists)
        found = json.loads((folder / "lines").read_text())
    for line, size, count in found[:LINES]:
        table.add(line.rpartition("/berth/")[2], size / MEBIBYTE, str(count), size / count)
    table.show()


@asynccontextmanager
async def started(some_nodes, node_count, placed, program):
    """A scheduler on a cluster of these nodes, so many, and the folder with its log."""
    placed_pods = (stored(realistic_pod(i, f"node-{i % node_count}"), node_count + i) for i in range(placed))
    cluster = WrittenCluster({"nodes": some_nodes, "pods": placed_pods})
    with tempfile.TemporaryDirectory(prefix="berth-") as name:
        folder = Path(name)
        async with cluster.serving() as url:
            (folder / "kubeconfig").write_text(KUBECONFIG.format(url=url))
            (folder / "config").write_text(CONFIGURATION.format(kubeconfig=folder / "kubeconfig"))
            flags = (
                f"--config={folder / 'config'}",
                "--bind-address=127.0.0.1",
                f"--secure-port={free_port()}",
            )
            module, *arguments = program
            arguments += [str(folder / "lines")] if program is TRACED else []
            environment = {
                "OTEL_TRACES_EXPORTER": "none",
                "PYTHONPYCACHEPREFIX": str(Path(tempfile.gettempdir()) / "berth-compiled"),
                "PYTHONDONTWRITEBYTECODE": "",
            }
            command = (sys.executable, "-m", module, *arguments, *flags)
            child = await Child.start("berth", command, folder / "log", environment)
            try:
                yield child, folder
            finally:
                await child.stop()


async def until(child, claim):
    """Return once it is so."""
    deadline = time.monotonic() + START_SECONDS
    while not claim():
        child.check()
        assert time.monotonic() < deadline, child.last_words()
        await asyncio.sleep(LOOK_SECONDS)
