"""`python -m tests.benchmarks [NAME ...]`: run benchmarks, all that end within minutes or those named."""

import argparse
import importlib
import os
import subprocess
import sys
import time
from pathlib import Path

import click

# As `berth` has it, before gRPC is imported: benchmarks start programs while they make calls.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

NAMES = (
    "decision",
    "walk",
    "snapshot",
    "queue",
    "preemption",
    "proving",
    "requeueing",
    "waiting_groups",
    "placing_groups",
    "hints",
    "grpc_calls",
    "transports",
    "tracing",
    "load_aware",
    "sidecar",
    "sidecar_cpu",
    "sidecar_throughput",
    "http_engine",
    "binding",
    "sandbox_http",
    "device_search",
    "imports",
    "start",
    "memory",
    "trim",
    "growth",
    "takeover",
    "busy_health",
    "end_to_end",
    "gpu_sharing",
    "shards",
    "cpu_shares",
    "joint",
    "fill",
    "fair_shares",
    "deschedule",
    "deschedule_speed",
    "would_fit",
    "simulate",
    "live_page",
    "replay_day",
    "observed_cluster",
)
BY_NAME_ONLY = ("soak", "plugin_soak", "kai_scale", "kueue_baseline", "queues_openb")
"""Those that take longer, or do not end by themselves in minutes."""
MODULE = (sys.executable, "-m", "tests.benchmarks")


def main():
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks", description=__doc__.partition(": ")[2]
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join((*NAMES, *BY_NAME_ONLY)))
    parser.add_argument("--large", action="store_true", help="decide on 100,000 nodes")
    parser.add_argument(
        "--rounds", type=int, default=0, help="samples of each figure; 0 leaves it to the benchmark"
    )
    parser.add_argument("--match", default="", help="only workloads whose name has this in it")
    parser.add_argument(
        "--pods", type=int, default=0, help="pods of the end-to-end run, or in the large cluster"
    )
    parser.add_argument(
        "--nodes",
        type=int,
        default=0,
        help="nodes of the cluster, by start, memory, joint --openb and queues_openb",
    )
    parser.add_argument("--placed", type=int, default=0, help="pods that run already, by start and memory")
    parser.add_argument(
        "--real",
        action="store_true",
        help="on a real API server, as `berth sandbox up --real`: end_to_end, proving, start, binding",
    )
    parser.add_argument("--fail-overs", type=int, default=100, help="of three replicas, by takeover")
    parser.add_argument("--minutes", type=float, default=60.0, help="how long the soak lasts")
    parser.add_argument("--beside", type=Path, help="another tree in turns, by imports and start")
    sharing = parser.add_argument_group("gpu_sharing")
    sharing.add_argument("--policies", default="", help="such as best-fit,fgd/used-first, or all")
    sharing.add_argument("--seeds", type=int, default=1, help="runs of each policy")
    sharing.add_argument("--first-seed", type=int, default=42, help="of the runs; the others follow it")
    sharing.add_argument("--demand", type=float, default=1.3, help="what is asked for, of all GPUs")
    sharing.add_argument("--openb", type=Path, help="the trace's own files in place of the condensed table")
    sharing.add_argument("--alone", action="store_true", help="drive the plugin without the scheduler")
    sharing.add_argument("--at-once", type=int, default=1, help="runs side by side")
    sharing.add_argument("--results", type=Path, help="a file for the runs, a line each; those in it stand")
    parser.add_argument(
        "--random",
        type=int,
        default=0,
        help="clusters by chance, by fill, would_fit and deschedule; trees, by fair_shares",
    )
    options = parser.parse_args()
    unknown = set(options.names) - {*NAMES, *BY_NAME_ONLY}
    if unknown:
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    names = options.names or NAMES
    if len(names) > 1:
        flags = [argument for argument in sys.argv[1:] if argument not in names]
        # Each in a process of its own, so that none starts with what another left in memory.
        sys.exit(max(subprocess.run([*MODULE, name, *flags], check=False).returncode for name in names))
    started = time.perf_counter()
    importlib.import_module(f"tests.benchmarks.{names[0]}").run(options)
    click.echo(f"({names[0]} took {time.perf_counter() - started:.0f} s)")


if __name__ == "__main__":
    main()
