"""Summaries as pictures: bars by variant, in the terminal, or in a PNG file with berth-simulation[plots]."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from rich.bar import Bar
from rich.console import Console
from rich.table import Table

from berth.simulation.errors import SimulationError
from berth.simulation.running.outcome import SimulationSummary

TERMINAL: Final = "-"
BAR_WIDTH: Final = 60
WIDTH_INCHES, HEIGHT_INCHES = 8.0, 2.5


class PlotError(SimulationError):
    """No plot can be made."""


class Chart(NamedTuple):
    """One figure of every variant."""

    title: str
    values: list[float]


def charts(summaries: Sequence[SimulationSummary]) -> list[Chart]:
    """What is plotted: pending pods, waits, and for each resource what is asked for and what is lost."""
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
    return [chart for chart in found if any(chart.values)]


def plot(summaries: Sequence[SimulationSummary], where: str) -> None:
    """Write a PNG file, or print to the terminal where that is `-`. Raises: PlotError."""
    names, found = [each.name for each in summaries], charts(summaries)
    if not found:
        raise PlotError("--plot: every figure is 0; leave it out")
    if where == TERMINAL:
        _print(names, found)
    elif Path(where).suffix == ".png":
        _write(names, found, where)
    else:
        raise PlotError(f"--plot: {where}: give a file that ends in .png, or - for the terminal")


def _write(names: Sequence[str], found: Sequence[Chart], where: str) -> None:
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415 - an extra
    except ImportError:
        raise PlotError(
            "--plot: install berth-simulation[plots] first, or plot to the terminal (-)"
        ) from None
    figure = Figure(figsize=(WIDTH_INCHES, HEIGHT_INCHES * len(found)), layout="constrained")
    for axes, chart in zip(figure.subplots(len(found), squeeze=False)[:, 0], found, strict=True):
        axes.barh(names, chart.values)
        axes.invert_yaxis()
        axes.set_title(chart.title)
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
