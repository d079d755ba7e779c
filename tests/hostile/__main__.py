"""`python -m tests.hostile [ROW ...]`: play hostile rows against real processes, and what others noticed.

`python -m tests.hostile growth [WORD ...]` counts instead how work grows with each field that may repeat (of
those that have one of the words), and what as much of it costs as the API server takes.

`python -m tests.hostile tenants [--clusters N] [--first SEED] [--jobs J]` plays random clusters with a
hostile tenant and without it, and measures how long a quiet tenant's pods wait for their nodes.

`python -m tests.hostile rows [ROW ...] --real [--nodes N] [--seconds S]` plays those that were found on a
real API server, beside Berth and, where `KUBE_SCHEDULER` names it, beside kube-scheduler; with `--standby`
the leader is killed beside each, and a standby has to take over. `rows churn` plays those of small objects
that change without pause. Rows are played by one process at a time: two would measure each other.
"""

import argparse
import asyncio
import fcntl
import json
import multiprocessing
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import click

from tests.benchmarks.tables import Table
from tests.hostile import api_server_rows, growth, tenants
from tests.hostile.cases import CASES
from tests.hostile.fail_over import take_over
from tests.hostile.growth_rows import ROWS
from tests.hostile.playing import play
from tests.kube_scheduler import kube_scheduler

HEADINGS = [
    "row",
    "livez s",
    "lease s",
    "binding s",
    "API s",
    "bound",
    "MiB before",
    "peak",
    "after",
    "log MiB",
    "ends",
    "TERM s",
    "note",
]

REPORTED_HEADINGS = [
    "row",
    "what",
    "before",
    "scheduler",
    "livez gap / lease gap / longest wait of others, s",
    "bound",
    "CPU used / waited for, s",
    "holders of the lease",
    "MiB before / peak / after",
    "namespaces charged",
    "note",
]

STANDBY_HEADINGS = [
    "row",
    "what",
    "scheduler",
    "standby ready after, s",
    "leads after the kill, s",
    "binds after the kill, s",
    "namespaces charged",
]


def main():
    """Play the rows that are named, or all, one after the other."""
    parser = argparse.ArgumentParser(prog="python -m tests.hostile", description=__doc__.partition(": ")[2])
    parser.add_argument("rows", nargs="*", metavar="ROW")
    parser.add_argument("--list", action="store_true", help="name the rows, and end")
    parser.add_argument("--nodes", type=int, default=1_000)
    parser.add_argument("--seconds", type=float, default=40, help="how long each row is measured")
    parser.add_argument(
        "--settle", type=float, default=30, help="from the deletion to the last look at memory"
    )
    parser.add_argument("--rate", type=float, default=2, help="ordinary pods a second")
    parser.add_argument(
        "--real", action="store_true", help="on a real API server, as `berth sandbox up --real`"
    )
    parser.add_argument("--standby", action="store_true", help="of `rows`: kill the leader beside each")
    parser.add_argument("--clusters", type=int, default=500, help="how many clusters of tenants")
    parser.add_argument("--first", type=int, default=0, help="the seed of the first cluster of tenants")
    parser.add_argument("--jobs", type=int, default=1, help="processes that play clusters of tenants")
    parser.add_argument("--json", action="store_true", help="a line of JSON for each row")
    options = parser.parse_args()
    if options.rows[:1] == ["growth"]:
        show_growth(options.rows[1:])
        return
    if options.rows == ["tenants"]:
        sys.exit(show_tenants(range(options.first, options.first + options.clusters), options.jobs))
    if options.rows[:1] == ["rows"]:
        show = show_take_overs if options.standby else show_reported_rows
        named = options.rows[1:] or list(api_server_rows.ROWS)
        named = list(api_server_rows.CHURN) if named == ["churn"] else named
        if unknown := set(named) - set(api_server_rows.ALL):
            parser.error(f"no such row: {', '.join(sorted(unknown))}")
        with alone(parser):
            show(options, named)
        return
    if unknown := set(options.rows) - set(CASES):
        parser.error(f"no such row: {', '.join(sorted(unknown))}; see --list")
    if options.list:
        for case in CASES.values():
            click.echo(f"{case.row:5} {case.who:7} {case.what}")
        return
    with alone(parser):
        show_rows(options)


@contextmanager
def alone(parser):
    """Ends the command with an error where another one plays rows on this machine."""
    with (Path(tempfile.gettempdir()) / "berth-hostile-rows.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            parser.error(f"another process plays rows ({lock.name} is locked): wait until it has ended")
        yield


def show_rows(options):
    """Play those rows, or all of them, beside Berth."""
    table = Table("longest gaps that others saw, ordinary pods bound, memory of the scheduler", HEADINGS)
    for row in options.rows or CASES:
        outcome = asyncio.run(
            play(
                CASES[row],
                nodes=options.nodes,
                seconds=options.seconds,
                settle_seconds=options.settle,
                each_second=options.rate,
                real=options.real,
            )
        )
        table.add(*cells(outcome))
        click.echo(json.dumps(asdict(outcome)) if options.json else f"{row}: {'; '.join(cells(outcome)[1:])}")
        sys.stdout.flush()
    if not options.json:
        table.show()


def show_reported_rows(options, rows):
    """Play those rows of api_server_rows.py beside each scheduler that is at hand."""
    table = Table("rows that were found on a real API server", REPORTED_HEADINGS)
    for reported in map(api_server_rows.ALL.__getitem__, rows):
        for name, program in schedulers(beside_kube_scheduler=reported.beside_kube_scheduler):
            outcome = asyncio.run(
                play(
                    reported.case,
                    nodes=options.nodes,
                    seconds=options.seconds,
                    settle_seconds=options.settle,
                    each_second=options.rate,
                    real=options.real,
                    program=program,
                )
            )
            shown = reported_cells(reported, name, outcome)
            table.add(*shown)
            click.echo(f"| {' | '.join(shown)} |")
            sys.stdout.flush()
    table.show()


def schedulers(*, beside_kube_scheduler):
    """The schedulers that a row is played beside: their names and programs."""
    found = [("Berth", ())]
    return (
        [*found, ("kube-scheduler", (kube_scheduler(),))]
        if beside_kube_scheduler and kube_scheduler()
        else found
    )


def show_take_overs(options, rows):
    """Kill the leader beside each of those rows, the first of them nothing at all."""
    table = Table(
        "a leader killed beside each row, and a standby that was started beside it", STANDBY_HEADINGS
    )
    nothing = api_server_rows.ReportedRow("none", "", CASES["none"])
    for reported in (nothing, *map(api_server_rows.ALL.__getitem__, rows)):
        case = reported.beside_standby or reported.case
        beside = schedulers(beside_kube_scheduler=reported.beside_kube_scheduler)
        around = {"nodes": options.nodes, "each_second": options.rate, "real": options.real}
        played = asyncio.run(_side_by_side([take_over(case, program=of, **around) for _, of in beside]))
        for (name, _), found in zip(beside, played, strict=True):
            seconds = (found.ready_after, found.led_after, found.bound_after)
            shown = [reported.row, case.what, name, *map(in_seconds, seconds), found.charged or "none"]
            table.add(*shown)
            click.echo(f"| {' | '.join(shown)} |")
        sys.stdout.flush()
    table.show()


async def _side_by_side(plays):
    """What came of each: most of the time is that in which a lease runs out."""
    return await asyncio.gather(*plays)


def in_seconds(seconds):
    """As it is shown."""
    return "never" if seconds is None else f"{seconds:.1f}"


def reported_cells(reported, name, outcome):
    """The table's row."""
    gaps = (outcome.livez_gap, outcome.lease_gap, outcome.longest_wait)
    memory = (outcome.mebibytes_before, outcome.mebibytes_peak, outcome.mebibytes_after)
    return [
        reported.row,
        reported.case.what,
        reported.before if name == "Berth" else "",
        name,
        " / ".join(f"{gap:.1f}" for gap in gaps),
        f"{outcome.bound}/{outcome.submitted}",
        f"{outcome.cpu_seconds:.1f} / {outcome.cpu_wait_seconds:.1f}",
        str(outcome.holders),
        " / ".join(f"{mebibytes:.0f}" for mebibytes in memory),
        outcome.charged or "none",
        outcome.note.replace(" | ", "; "),
    ]


def show_growth(words):
    """Count each row of the growth table."""
    table = Table("work by entries of a field, at 1.5 MB of JSON", growth.HEADINGS)
    for row in ROWS:
        if not words or any(word in f"{row.kind} {row.field}" for word in words):
            counted = growth.at_the_limit(row)
            table.add(*counted)
            click.echo(f"| {' | '.join(counted)} |")
            sys.stdout.flush()
    table.show()


def show_tenants(seeds, jobs):
    """Play the clusters of these seeds; 1 where a quiet tenant had to wait for too long, else 0."""
    outcomes = []
    with multiprocessing.get_context("spawn").Pool(jobs) as processes:
        for outcome in processes.imap(tenants.outcome_of, seeds):
            click.echo(outcome)
            sys.stdout.flush()
            outcomes.append(outcome)
    breaches = [outcome.seed for outcome in outcomes if outcome.in_breach]
    click.echo(
        f"{len(outcomes)} clusters: worst ratio {max(each.ratio for each in outcomes):.2f} of "
        f"{tenants.MAX_RATIO:g}, worst p99 {max(each.beside for each in outcomes):.3f} s of "
        f"{tenants.MAX_SECONDS:g}, longest {max(each.longest for each in outcomes):.3f} s, "
        f"{len(breaches)} in breach"
    )
    for seed in breaches:
        click.echo(f"again: python -m tests.hostile tenants --clusters 1 --first {seed}")
    return 1 if breaches else 0


def cells(outcome):
    """The table's row."""
    gaps = (outcome.livez_gap, outcome.lease_gap, outcome.binding_gap, outcome.api_gap)
    memory = (outcome.mebibytes_before, outcome.mebibytes_peak, outcome.mebibytes_after)
    return [
        outcome.row,
        *(f"{gap:.1f}" for gap in gaps),
        f"{outcome.bound}/{outcome.submitted}",
        *(f"{mebibytes:.0f}" for mebibytes in memory),
        f"{outcome.log_mebibytes:.1f}",
        str(outcome.ends),
        "never" if outcome.ended_in is None else f"{outcome.ended_in:.1f}",
        outcome.note,
    ]


if __name__ == "__main__":
    main()
