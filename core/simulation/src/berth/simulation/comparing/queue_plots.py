"""Plots of queues' use over time: lines in a PNG file, or a row of blocks in the terminal."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

from rich.console import Console
from rich.table import Table

from berth.simulation.comparing.plots import TERMINAL, PlotError, write_charts
from berth.simulation.queue_shares.samples import QueueSample, QueueState

MAX_QUEUES: Final = 20
BLOCKS: Final = " \u2581\u2582\u2583\u2584\u2585\u2586\u2587\u2588"
WIDTH: Final = 60
HOUR: Final = 3600.0


class OverTime(NamedTuple):
    """One figure of each queue over time. Units: `hours` of virtual time."""

    title: str
    hours: list[float]
    lines: dict[str, list[float]]
    """A value for each moment, by queue."""
    dashed: dict[str, list[float]] = {}
    """What belongs to a line, such as its fair share."""


def over_time(samples: Sequence[QueueSample]) -> list[OverTime]:
    """The charts: use and fair share of resources that have quotas, pods waiting and evicted so far."""
    names = sorted({name for sample in samples for name in sample.queues})
    hours = [sample.at_seconds / HOUR for sample in samples]

    def lines(value: Callable[[QueueState], float]) -> dict[str, list[float]]:
        found = {
            name: [value(sample.queues.get(name) or QueueState()) for sample in samples] for name in names
        }
        most = sorted(found, key=lambda name: (-max(found[name]), name))[:MAX_QUEUES]
        return {name: found[name] for name in sorted(most) if any(found[name])}

    resources = sorted(
        {
            name
            for each in samples
            for queue in each.queues.values()
            for name, quota in queue.quota.items()
            if queue.parent and quota
        }
    )
    found = [
        OverTime(
            f"{resource} used (dashed: fair share)",
            hours,
            lines(lambda queue, of=resource: queue.used.get(of, 0)),  # type: ignore[misc] # bound at once
            lines(lambda queue, of=resource: queue.fair_share.get(of, 0.0)),  # type: ignore[misc]
        )
        for resource in resources
    ]
    found.append(OverTime("pods waiting", hours, lines(lambda queue: queue.waiting)))
    found.append(OverTime("pods evicted so far", hours, lines(lambda queue: queue.evicted)))
    return [each for each in found if each.lines]


def plot_queues(samples: Sequence[QueueSample], where: str) -> None:
    """Write a PNG file, or print to the terminal where that is `-`. Raises: PlotError."""
    found = over_time(samples)
    if not found:
        raise PlotError("--plot: no queue used or waited for anything; add --queues-every, or leave it out")
    if where == TERMINAL:
        _print(found)
        return

    def draw(axes: Any, chart: OverTime) -> None:
        for name, values in chart.lines.items():
            (drawn,) = axes.step(chart.hours, values, where="post", label=name)
            if name in chart.dashed:
                axes.step(chart.hours, chart.dashed[name], "--", where="post", color=drawn.get_color())
        axes.set_title(chart.title)
        axes.set_xlabel("hours")
        axes.legend(loc="upper left", fontsize="small")

    write_charts(found, draw, where)


def _print(found: Sequence[OverTime]) -> None:
    console = Console()
    for chart in found:
        title = f"{chart.title.partition(' (')[0]}, 0 to {chart.hours[-1]:g} h"
        table = Table(box=None, show_header=False, title=title, title_justify="left")
        most = max(max(values) for values in chart.lines.values())
        for name, values in chart.lines.items():
            table.add_row(name, "".join(_blocks(chart.hours, values, most)), f"{values[-1]:g}")
        console.print(table)


def _blocks(hours: Sequence[float], values: Sequence[float], most: float) -> Iterator[str]:
    """A block for each part of the time: the highest value within it."""
    width, at, held = min(WIDTH, len(hours)), 0, values[0]
    for column in range(width):
        end = hours[-1] * (column + 1) / width
        seen = [held]
        while at < len(hours) and (hours[at] < end or column == width - 1):
            held = values[at]
            seen.append(held)
            at += 1
        # A value above zero has a visible block, however small.
        yield BLOCKS[math.ceil(max(seen) / most * (len(BLOCKS) - 1))]
