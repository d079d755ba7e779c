"""Figures as tables."""

import time
from dataclasses import dataclass, field

import click


@dataclass
class Table:
    """Rows of cells under headings; the first column is text, the others are figures."""

    title: str
    headings: list[str]
    rows: list[list[str]] = field(default_factory=list)

    def add(self, *cells):
        """Add a row; numbers are rounded to what is worth reading."""
        self.rows.append([cell if isinstance(cell, str) else rounded(cell) for cell in cells])

    def show(self):
        lines = [self.headings, *self.rows]
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.headings))]
        click.echo(f"\n{self.title}")
        for line in lines:
            first, *others = (cell for cell in line)
            cells = [other.rjust(width) for other, width in zip(others, widths[1:], strict=True)]
            click.echo("  ".join([first.ljust(widths[0]), *cells]))


def rounded(number):
    """A number with about three digits that count."""
    return f"{number:,.0f}" if number >= 100 else f"{number:.1f}" if number >= 10 else f"{number:.2f}"


def quantiles(samples, *wanted):
    """The sample at each of these fractions of the sorted samples."""
    ordered = sorted(samples)
    return [ordered[min(int(len(ordered) * fraction), len(ordered) - 1)] for fraction in wanted]


def timed(things, call):
    """CPU microseconds of the call on each thing: p50, p90, p99."""
    taken = []
    for thing in things:
        started = time.thread_time()
        call(thing)
        taken.append((time.thread_time() - started) * 1e6)
    return quantiles(taken, 0.5, 0.9, 0.99)
