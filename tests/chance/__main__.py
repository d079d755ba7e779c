"""The command line: `python -m tests.chance`."""

import argparse
import asyncio
import json
import sys
import tempfile
from pathlib import Path

from tests.chance.cluster import SUBJECTS, draw
from tests.chance.run import again, run
from tests.golden.run import be_quiet
from tests.kube_scheduler import WITHOUT, kube_scheduler


def main():
    """Run the seeds; 0 where kube-scheduler and Berth decided alike, 2 where there is no kube-scheduler."""
    wanted = parse()
    if kube_scheduler() is None:
        print(WITHOUT, file=sys.stderr)  # noqa: T201 - a command talks on its streams
        return 2
    be_quiet()
    alike = True
    for path in wanted.again:
        alike &= one(path.stem, again(json.loads(path.read_text(encoding="utf-8"))), None)
    for subject in wanted.subject:
        for seed in range(wanted.first, wanted.first + wanted.seeds):
            drawn = draw(subject, seed, wanted.nodes, wanted.pods)
            alike &= one(f"{subject}-{seed}", drawn, wanted.keep)
    return 0 if alike else 1


def one(title, drawn, keep):
    """Run one and tell what came of it."""
    with tempfile.TemporaryDirectory(prefix="berth-chance-") as folder:
        found = asyncio.run(run(drawn, Path(folder)))
    counts = f"{found.bound} bound, {found.rejected} rejected, {found.preempted} preempted"
    print(f"{title}: {counts}, {found.scored} scores, {len(found.differences)} differences", flush=True)  # noqa: T201 - as above
    for name, different in found.differences:
        print(*(f"  {name}: {each}" for each in different), sep="\n", flush=True)  # noqa: T201 - as above
        if keep:
            keep.mkdir(parents=True, exist_ok=True)
            (keep / f"{title}-{name}.json").write_text(json.dumps(found.scenarios[name]), encoding="utf-8")
    return not found.differences


def parse():
    """The arguments."""
    parser = argparse.ArgumentParser(prog="python -m tests.chance", description=__doc__)
    parser.add_argument("--subject", nargs="+", choices=SUBJECTS, default=[])
    parser.add_argument("--seeds", type=int, default=1, help="how many for each subject")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--nodes", type=int, default=14)
    parser.add_argument("--pods", type=int, default=60)
    parser.add_argument("--keep", type=Path, help="a folder for the questions on which the two differ")
    parser.add_argument(
        "--again", nargs="+", type=Path, default=[], help="questions that were kept, to ask again"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
