"""`python -m tests.benchmarks [NAME ...]`: run benchmarks, all that end within minutes or those named."""

import argparse
import importlib
import time

import click

NAMES = ("decision", "snapshot", "queue", "sidecar", "http_engine", "sandbox_http", "end_to_end")


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
    for name in options.names or NAMES:
        started = time.perf_counter()
        importlib.import_module(f"tests.benchmarks.{name}").run(options)
        click.echo(f"({name} took {time.perf_counter() - started:.0f} s)")


if __name__ == "__main__":
    main()
