"""`python -m tests.benchmarks [NAME ...]`: run benchmarks, all that end within minutes or those named."""

import argparse
import importlib
import subprocess
import sys
import time

import click

NAMES = (
    "decision",
    "snapshot",
    "queue",
    "preemption",
    "requeueing",
    "hints",
    "sidecar",
    "http_engine",
    "sandbox_http",
    "takeover",
    "end_to_end",
)
MODULE = (sys.executable, "-m", "tests.benchmarks")


def main():
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks", description=__doc__.partition(": ")[2]
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(NAMES))
    parser.add_argument("--large", action="store_true", help="decide on 100,000 nodes")
    parser.add_argument(
        "--rounds", type=int, default=0, help="samples of each figure; 0 leaves it to the benchmark"
    )
    parser.add_argument("--match", default="", help="only workloads whose name has this in it")
    parser.add_argument("--pods", type=int, default=0, help="pods of the end-to-end run")
    options = parser.parse_args()
    unknown = set(options.names) - set(NAMES)
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
