"""Progress on a terminal as a table that stands still; as plain lines where there is none."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from berth.demo.progress import Progress

Show = Callable[[Progress, float, float], None]
"""(progress, seconds since the start, pods bound a second)."""


@contextmanager
def display() -> Iterator[Show]:
    """What shows progress for as long as it is entered."""
    if not sys.stdout.isatty():
        yield _as_line
        return
    # Not by way of berth.cli.printing: what moves the cursor is this program's own.
    with Live(console=Console(file=sys.__stdout__), auto_refresh=False) as live:

        def show(progress: Progress, seconds: float, rate: float) -> None:
            live.update(_as_table(progress, seconds, rate), refresh=True)

        yield show


def _as_line(progress: Progress, seconds: float, rate: float) -> None:
    click.echo(progress.line(seconds, rate))


def _as_table(progress: Progress, seconds: float, rate: float) -> Group:
    table = Table("profile", "scheduled", "unschedulable attempts", "errors")
    for profile, results in sorted(progress.attempts.items()):
        counts = (results.get(result, 0) for result in ("scheduled", "unschedulable", "error"))
        table.add_row(profile, *map(str, counts))
    queues = "   ".join(f"{name} {count}" for name, count in progress.queues.items())
    head = f"{seconds:.0f} s   {progress.bound} pods bound   {rate:.0f} pods/s"
    return Group(Text(head), Text(f"queues: {queues}"), table)
