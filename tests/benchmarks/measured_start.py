"""`berth scheduler` that writes down what it has allocated once everything is listed: FILE [flags]."""

import gc
import json
import sys
import tracemalloc
from functools import partial
from pathlib import Path

from berth.cli.scheduler import scheduler
from berth.scheduler import process_start


def main():
    file, *flags = sys.argv[1:]
    tracemalloc.start()
    process_start.run = partial(process_start.run, on_ready=lambda _: write_down(Path(file)))
    scheduler(flags)


def write_down(file):
    """Bytes by line of code."""
    gc.collect()
    found = tracemalloc.take_snapshot().statistics("lineno")
    lines = [
        [f"{each.traceback[0].filename}:{each.traceback[0].lineno}", each.size, each.count] for each in found
    ]
    unfinished = file.with_suffix(".part")
    unfinished.write_text(json.dumps(lines))
    unfinished.rename(file)


if __name__ == "__main__":
    main()
