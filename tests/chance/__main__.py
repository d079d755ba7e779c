"""The command line: `python -m tests.chance`."""

import argparse
import json
import sys
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

from tests.chance.cluster import SUBJECTS
from tests.chance.groups.playing import differences
from tests.chance.jobs import JUDGES, Way, drawn, kept
from tests.chance.mended import mended
from tests.golden.run import be_quiet
from tests.kube_scheduler import WITHOUT, kube_scheduler

GROUPS = "groups"
"""Compared with a model, and not with kube-scheduler (tests/chance/groups)."""


def main():
    """Run the seeds; 0 where kube-scheduler and Berth decided alike, 2 where there is no kube-scheduler."""
    wanted = parse()
    seeds = range(wanted.first, wanted.first + wanted.seeds)
    alike = groups_alike(seeds, wanted.jobs) if GROUPS in wanted.subject else True
    wanted.subject = [subject for subject in wanted.subject if subject != GROUPS]
    if not (wanted.subject or wanted.again):
        return 0 if alike else 1
    if kube_scheduler() is None:
        print(WITHOUT, file=sys.stderr)  # noqa: T201 - a command talks on its streams
        return 2
    # Forked processes would all try ports in the same order.
    with ProcessPoolExecutor(wanted.jobs, get_context("spawn"), initializer=be_quiet) as pool:
        way = Way(wanted.judge, wanted.real)
        runs = [pool.submit(kept, way, path) for path in wanted.again]
        runs += [
            pool.submit(drawn, way, subject, seed, wanted.nodes, wanted.pods)
            for subject in wanted.subject
            for seed in seeds
        ]
        for each in as_completed(runs):
            alike &= report(*each.result(), wanted.keep)
    return 0 if alike else 1


def groups_alike(seeds, jobs):
    """Print where the scheduler's core and the model of groups differ; whether they do nowhere."""
    different = 0
    with ProcessPoolExecutor(jobs, get_context("spawn"), initializer=be_quiet) as pool:
        for seed, found in zip(seeds, pool.map(differences, seeds), strict=True):
            different += bool(found)
            for each in found:
                print(f"{GROUPS}-{seed}: {each}", flush=True)  # noqa: T201 - a command talks on its streams
    print(f"{GROUPS}: {len(seeds)} seeds, {different} of them different", flush=True)  # noqa: T201 - as above
    return not different


def report(title, found, keep):
    """Print what came of a run, and keep the questions on which the two differ; whether there are none.

    Those do not count in which Berth mends a fault of kube-scheduler.
    """
    if found.broken:
        print(f"{title}: broken off, {found.broken}", flush=True)  # noqa: T201 - a command talks on its streams
        return False
    counts = f"{found.bound} bound, {found.rejected} rejected, {found.preempted} preempted"
    faults = {name: mended(found.scenarios[name], different) for name, different in found.differences}
    differences = [(name, different) for name, different in found.differences if not faults[name]]
    said = f"{counts}, {found.scored} scores, {len(differences)} differences"
    mends = ", ".join(f"{name} ({fault})" for name, fault in faults.items() if fault)
    print(f"{title}: {said}{f', mended here: {mends}' if mends else ''}", flush=True)  # noqa: T201 - as above
    for name, different in differences:
        print(*(f"  {name}: {each}" for each in different), sep="\n", flush=True)  # noqa: T201 - as above
        if keep:
            keep.mkdir(parents=True, exist_ok=True)
            (keep / f"{title}-{name}.json").write_text(json.dumps(found.scenarios[name]), encoding="utf-8")
    return not differences


def parse():
    """The arguments."""
    parser = argparse.ArgumentParser(prog="python -m tests.chance", description=__doc__)
    parser.add_argument("--subject", nargs="+", choices=(*SUBJECTS, GROUPS), default=[])
    parser.add_argument("--judge", choices=JUDGES, default="engine", help="which way Berth is asked")
    parser.add_argument("--real", action="store_true", help="on a real API server (KUBEBUILDER_ASSETS)")
    parser.add_argument("--seeds", type=int, default=1, help="how many for each subject")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--jobs", type=int, default=1, help="how many to run at a time")
    parser.add_argument("--nodes", type=int, default=14)
    parser.add_argument("--pods", type=int, default=60)
    parser.add_argument("--keep", type=Path, help="a folder for the questions on which the two differ")
    parser.add_argument(
        "--again", nargs="+", type=Path, default=[], help="questions that were kept, to ask again"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
