"""The command line: `python -m tests.golden`."""

import argparse
import sys
from pathlib import Path

from tests.golden.run import be_quiet, run

SHARED = Path(__file__).resolve().parents[3] / "shared" / "golden"
OWN = Path(__file__).resolve().parents[1] / "vectors"


def main() -> int:
    """Run what was asked for; 0 where every vector passed, 2 where there is nothing to run."""
    wanted = parse()
    if not wanted.dir.is_dir():
        print(f"no such folder: {wanted.dir}", file=sys.stderr)  # noqa: T201 - a command talks on its streams
        return 2
    be_quiet()
    complete, shown = True, 0
    try:
        for family in run(wanted.dir, wanted.family, wanted.jobs):
            complete &= family.complete
            print(*family.lines(), sep="\n", flush=True)  # noqa: T201 - as above
            for result in family.results:
                for difference in result.differences[: max(0, wanted.show - shown)]:
                    shown += 1
                    print(f"  {result.name}: {difference}")  # noqa: T201 - as above
    except KeyError as error:
        print(f"no such family in {wanted.dir}: {error.args[0]}", file=sys.stderr)  # noqa: T201 - as above
        return 2
    return 0 if complete else 1


def parse() -> argparse.Namespace:
    """The arguments."""
    parser = argparse.ArgumentParser(prog="python -m tests.golden", description="Check golden vectors.")
    parser.add_argument("--dir", type=Path, default=SHARED if SHARED.is_dir() else OWN, help="vector files")
    parser.add_argument("--family", nargs="+", default=[], metavar="NAME", help="only these families")
    parser.add_argument("--jobs", type=int, default=1, help="processes to run at a time")
    parser.add_argument("--show", type=int, default=10, metavar="N", help="print the first N differences")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
