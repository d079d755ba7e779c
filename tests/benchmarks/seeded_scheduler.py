"""`berth scheduler` whose choices between equal nodes come from a seed: `python -m ... SEED [flags]`."""

import sys
from functools import partial

from berth.cli.scheduler import scheduler
from berth.scheduler import process_start
from berth.scheduler.process_options import ProcessOptions


def main():
    seed, *flags = sys.argv[1:]
    process_start.ProcessOptions = partial(ProcessOptions, seed=int(seed))
    scheduler(flags)


if __name__ == "__main__":
    main()
