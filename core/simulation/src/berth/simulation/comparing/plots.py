"""Plots of summaries: bars by variant, in the terminal, or in a PNG file with berth-simulation[plots]."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from rich.bar import Bar
from rich.console import Console
from rich.table import Table

from berth.simulation.errors import SimulationError
from berth.simulation.queue_shares.samples import QueueSummary
from berth.simulation.running.outcome import SimulationSummary

TERMINAL: Final = "-"
BAR_WIDTH: Final = 60
WIDTH_INCHES, HEIGHT_INCHES = 8.0, 2.5
MAX_CHARTS_OF_QUEUES: Final = 60


T = TypeVar("T")


class PlotError(SimulationError):
    """The plot can't be drawn."""


class Chart(NamedTuple):
    """One figure of every variant."""

    title: str
    values: list[float]


def charts(summaries: Sequence[SimulationSummary]) -> list[Chart]:
    """The charts: pending pods, waits, and for each resource the requested and the fragmented part."""
    found = [
        Chart("pods pending", [float(each.pending) for each in summaries]),
        Chart("wait p99 (s)", [each.waits.p99 for each in summaries]),
    ]
    for name in dict.fromkeys(name for each in summaries for name in each.utilization):
        uses = [each.utilization.get(name) for each in summaries]
        found.append(Chart(f"{name} requested (%)", [use.percent if use else 0.0 for use in uses]))
    for name in dict.fromkeys(name for each in summaries for name in each.fragmentation):
        lost = [each.fragmentation.get(name, 0.0) for each in summaries]
        found.append(Chart(f"{name} lost of what is free (%)", lost))
    found += _charts_of_queues([each.queues for each in summaries])
    return [chart for chart in found if any(chart.values)]


def _charts_of_queues(variants: Sequence[Mapping[str, QueueSummary]]) -> list[Chart]:
    """Charts by queue of what differs between variants: use by resource, longest wait, evicted pods."""
    found = []
    for name in sorted({name for queues in variants for name in queues}):
        queues = [each.get(name) for each in variants]
        found.append(
            Chart(f"{name}: longest wait (s)", [q.longest_wait_seconds if q else 0.0 for q in queues])
        )
        found.append(Chart(f"{name}: evicted", [float(q.evicted) if q else 0.0 for q in queues]))
        for resource in sorted({resource for q in queues if q for resource in q.resources}):
            amounts = [q.resources.get(resource) if q else None for q in queues]
            found.append(Chart(f"{name}: {resource} used", [a.used if a else 0.0 for a in amounts]))
    return [chart for chart in found if len(set(chart.values)) > 1][:MAX_CHARTS_OF_QUEUES]


def plot(summaries: Sequence[SimulationSummary], where: str) -> None:
    """Write a PNG file, or print to the terminal where that is `-`. Raises: PlotError."""
    names, found = [each.name for each in summaries], charts(summaries)
    if not found:
        raise PlotError("--plot: every figure is 0; leave it out")
    if where == TERMINAL:
        _print(names, found)
        return

    def bars(axes: Any, chart: Chart) -> None:
        axes.barh(names, chart.values)
        axes.invert_yaxis()
        axes.set_title(chart.title)

    write_charts(found, bars, where)


def write_charts(found: Sequence[T], draw: Callable[[Any, T], None], where: str) -> None:
    """Write charts to a PNG file, one below the other; `draw` gets the axes. Raises: PlotError."""
    if Path(where).suffix != ".png":
        raise PlotError(f"--plot: {where}: give a file that ends in .png, or - for the terminal")
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 - an extra
    except ImportError:
        raise PlotError(
            "--plot: install berth-simulation[plots] first, or plot to the terminal (-)"
        ) from None
    figure = Figure(figsize=(WIDTH_INCHES, HEIGHT_INCHES * len(found)), layout="constrained")
    for axes, chart in zip(figure.subplots(len(found), squeeze=False)[:, 0], found, strict=True):
        draw(axes, chart)
    try:
        figure.savefig(where)
    except OSError as error:
        raise PlotError(f"--plot: {where}: {error.strerror or error}") from None


def _print(names: Sequence[str], found: Sequence[Chart]) -> None:
    console = Console()
    for chart in found:
        table = Table(box=None, show_header=False, title=chart.title, title_justify="left")
        for name, value in zip(names, chart.values, strict=True):
            table.add_row(name, Bar(max(chart.values), 0, value, width=BAR_WIDTH), f"{value:g}")
        console.print(table)
