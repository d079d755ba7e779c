"""`python -m tests.scheduler_perf --tree DIR`: play upstream's scheduler_perf to Berth and kube-scheduler."""

import argparse
import asyncio
import datetime as dt
import os
import re
import shlex
import sys
import tempfile
import time
from pathlib import Path

# As `berth` has it, before gRPC is imported: programs are started while calls are made.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

import click

from berth.client.errors import ClientError
from berth.demo.errors import DemoError
from tests.kube_scheduler import WITHOUT, kube_scheduler
from tests.scheduler_perf.cluster import Cluster, Scheduler
from tests.scheduler_perf.errors import NotPlayedError, PerfError
from tests.scheduler_perf.playing import Play, refused
from tests.scheduler_perf.report import BERTH, OTHER, Report, replaced
from tests.scheduler_perf.tree import enabled, read_tree


def main():
    options = parse()
    try:
        workloads = chosen(options)
    except PerfError as error:
        sys.exit(f"Error: {error}")
    if options.list:
        show(workloads, waiting=options.waiting)
        return
    report = asyncio.run(play_all(workloads, options))
    report.show(click.echo)
    if options.json:
        options.json.write_text(report.data_items(), encoding="utf-8")
    if options.markdown:
        page = options.markdown.read_text(encoding="utf-8")
        options.markdown.write_text(replaced(page, report.markdown()), encoding="utf-8")
    sys.exit(1 if report.failed else 0)


def parse(arguments=None):
    """The options of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.scheduler_perf", description=__doc__.partition(": ")[2]
    )
    add = parser.add_argument
    add(
        "--tree",
        type=Path,
        required=True,
        help="upstream's folder test/integration/scheduler_perf, 1.36 or later",
    )
    add("--list", action="store_true", help="read everything and say what would be played; play nothing")
    add(
        "--workload",
        default="",
        metavar="REGEX",
        help="only workloads whose topic/test/workload has this in it",
    )
    add("--label", default="performance", metavar="FILTER", help="as upstream: a,+b,-c; default performance")
    add("--real", action="store_true", help="on a real kube-apiserver (KUBEBUILDER_ASSETS)")
    add("--waiting", action="store_true", help="measured pods are there before the scheduler starts")
    add("--only", choices=(BERTH, OTHER), help="one scheduler alone")
    add("--runs", type=int, default=1, help="runs of each; figures are medians, with their spread")
    add(
        "--scale",
        type=float,
        default=1.0,
        metavar="N",
        help="divide counts of nodes and pods by N: a smoke run",
    )
    add("--max-pods", type=int, default=0, metavar="N", help="no operation creates more pods; nodes stay")
    add(
        "--timeout",
        type=float,
        default=600.0,
        metavar="S",
        help="how long pods are waited for; upstream's 600",
    )
    add("--json", type=Path, metavar="FILE", help="write every run, in the form of upstream's dashboard")
    add("--markdown", type=Path, metavar="FILE", help="put the table between this page's two marks")
    add("--logs", type=Path, metavar="DIR", help="keep the programs' logs in folders of this one")
    return parser.parse_args(arguments)


def chosen(options):
    """The workloads that the options ask for. Raises: PerfError."""
    found = [
        workload.scaled(options.scale)
        for workload in read_tree(options.tree)
        if enabled(options.label, workload.labels)
        and re.search(options.workload, f"{workload.topic}/{workload.title}")
    ]
    if not found:
        raise PerfError(
            f"no workload has labels {options.label!r} and a name like {options.workload!r}: see --list"
        )
    return [workload.capped(options.max_pods) if options.max_pods else workload for workload in found]


def show(workloads, *, waiting):
    """A line for each workload: what would be played of it."""
    for workload in workloads:
        reason = refused(workload, waiting=waiting)
        operations = [operation.opcode for operation in workload.resolved()]
        state = f"not played: {reason}" if reason else f"{len(operations)} operations"
        threshold = f", threshold {workload.threshold:g}" if workload.threshold else ""
        click.echo(f"{workload.topic}: {workload.title}: {state}{threshold}")
    click.echo(f"{len(workloads)} workloads, {sum(bool(w.threshold) for w in workloads)} with a threshold")


def schedulers(only):
    """Those that are compared: Berth, and kube-scheduler where its program is at hand."""
    found = [Scheduler(BERTH, ("berth", "scheduler"))]
    if program := kube_scheduler():
        found.append(Scheduler(OTHER, (program,)))
    else:
        click.echo(WITHOUT)
    return [each for each in found if only in (None, each.name)]


async def play_all(workloads, options):
    """Play each workload by each scheduler in turn, each on an API server of its own."""
    command = shlex.join(("python", "-m", "tests.scheduler_perf", *sys.argv[1:]))
    report = Report(
        waiting=options.waiting,
        real=options.real,
        command=command,
        date=dt.datetime.now(tz=dt.UTC).date().isoformat(),
    )
    compared = schedulers(options.only)
    for workload in workloads:
        if reason := refused(workload, waiting=options.waiting):
            report.refuse(workload, "either", reason)
            continue
        for number in range(options.runs):
            # In turn, so that neither always has the warmer machine.
            for scheduler in compared if number % 2 == 0 else reversed(compared):
                await play_once(report, workload, scheduler, options)
    return report


async def play_once(report, workload, scheduler, options):
    """One run, whose figures, or the reason why it has none, the report gets."""
    started = time.perf_counter()
    words = "ended"
    with tempfile.TemporaryDirectory(prefix="scheduler-perf-") as scratch:
        folder = kept(options.logs, workload, scheduler) or Path(scratch)
        cluster = Cluster(folder, scheduler, workload, real=options.real)
        try:
            async with cluster.running():
                play = Play(workload, cluster, waiting=options.waiting, timeout_seconds=options.timeout)
                report.add(workload, scheduler.name, await play.run())
        except* NotPlayedError as group:
            words = reason_of(group)
            report.refuse(workload, scheduler.name, words)
        except* (PerfError, ClientError, DemoError, LookupError) as group:
            words = reason_of(group)
            report.fail(workload, scheduler.name, words)
    took = time.perf_counter() - started
    click.echo(f"{workload.topic}: {workload.title}: {scheduler.name}: {words} ({took:.0f} s)", err=True)


def kept(logs, workload, scheduler):
    """The folder that keeps the programs' logs of this run; None where they go."""
    if logs is None:
        return None
    folder = logs / re.sub(r"[^A-Za-z0-9-]", "_", f"{workload.topic}_{workload.title}_{scheduler.name}")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "kubeconfig").unlink(missing_ok=True)
    return folder


def reason_of(group):
    """The first error's words."""
    while isinstance(group, BaseExceptionGroup):
        group = group.exceptions[0]
    return f"{type(group).__name__}: {group}"


if __name__ == "__main__":
    main()
