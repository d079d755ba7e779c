"""A dashboard as one HTML page: its panels at their places, with lines, figures and legends."""

import html
import math
from datetime import UTC, datetime
from pathlib import Path

from tests.dashboards.queries import STEP, Series

WIDTH = 1400
COLUMN, ROW, GAP = (WIDTH - 16) / 24, 27, 6
LISTED = 5
MANY = 8
GAP_SECONDS = 3 * STEP
COLOURS = (
    "#56a64b",
    "#e0a800",
    "#3274d9",
    "#e55400",
    "#a352cc",
    "#0e9aa7",
    "#c4162a",
    "#7c8b00",
    "#b877d9",
    "#6e6e6e",
)
STYLE = Path(__file__).with_suffix(".css").read_text(encoding="utf-8")
SCALES = {
    "s": ((1, "s"), (1e-3, "ms"), (1e-6, "µs")),
    "bytes": ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1, "B")),
    "percentunit": ((0.01, "%"),),
    "ops": ((1e3, "K ops/s"), (1, "ops/s")),
    "short": ((1e6, "Mil"), (1e3, "K"), (1, "")),
    "none": ((1, ""),),
}


def text(value, unit):
    """A value as its unit is written."""
    scales = SCALES[unit]
    size, name = next((scale for scale in scales if abs(value) >= scale[0]), scales[-1])
    if value == 0:
        size, name = next((scale for scale in scales if scale[0] == 1), scales[-1])
    return (
        f"{value / size:.3g} {name}".rstrip()
        if abs(value / size) < 1000
        else f"{value / size:.0f} {name}".rstrip()
    )


def page(dashboard, answered, start, end):
    """The page, and its height."""
    panels = dashboard["panels"]
    lowest = max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in panels)
    height = 40 + lowest * ROW + 8
    span = " to ".join(f"{datetime.fromtimestamp(at, UTC):%H:%M:%S}" for at in (start, end))
    body = "".join(placed(panel, answered[panel["id"]], start, end) for panel in panels)
    title = html.escape(dashboard["title"])
    return (
        f"<!doctype html><meta charset=utf-8><title>{title}</title><style>{STYLE}</style>"
        f"<body style='height:{height}px'><h1>{title} <small>{span}</small></h1>{body}"
    ), height


def placed(panel, series, start, end):
    """A panel at its place."""
    at = panel["gridPos"]
    width, height = at["w"] * COLUMN - GAP, at["h"] * ROW - GAP
    style = (
        f"left:{8 + at['x'] * COLUMN:.0f}px;top:{40 + at['y'] * ROW}px;width:{width:.0f}px;height:{height}px"
    )
    title = html.escape(panel["title"])
    if panel["type"] == "row":
        return f"<h2 style='{style}'>{title}</h2>"
    inner = "<p>No data</p>"
    if any(each.points for each in series):
        draw = {"stat": tiles, "timeseries": chart}[panel["type"]]
        inner = draw(panel["fieldConfig"]["defaults"], series, (width - 18, height - 28), (start, end))
    return f"<section style='{style}'><h3>{title}</h3>{inner}</section>"


def tiles(defaults, series, size, span):
    """The last value of each series with its name, over what it was before."""
    series = [each for each in series if each.points]
    many = len(series) > MANY
    columns = math.ceil(len(series) / 4) if many else len(series)
    width, height = size[0] / columns, size[1] / math.ceil(len(series) / columns)
    shown = (
        f"<div style='width:{width:.1f}px;height:{height:.1f}px'>"
        f"{'' if many else area(each, (width, height), span)}"
        f"<b>{text(each.points[-1][1], defaults['unit'])}</b><span>{html.escape(each.name)}</span></div>"
        for each in series
    )
    return f"<div class='tiles {'many' if many else ''}'>{''.join(shown)}</div>"


def area(series, size, span):
    """What a figure was before, as the ground that it stands on."""
    width, height = size
    top = max(value for _, value in series.points) or 1

    def spot(at, value):
        return f"{(at - span[0]) / (span[1] - span[0]) * width:.0f},{height - value / top * height * 0.5:.1f}"

    first, last = series.points[0][0], series.points[-1][0]
    way = " ".join([spot(first, 0), *(spot(*point) for point in series.points), spot(last, 0)])
    return f"<svg width='{width:.0f}' height='{height:.0f}'><polygon points='{way}' fill='#e3f1e1'/></svg>"


def chart(defaults, series, size, span):
    """Lines over time, stacked where the panel says so, and a legend with last and greatest values."""
    unit, custom = defaults["unit"], defaults["custom"]
    series = [each for each in series if each.points]
    drawn = stacked(series) if custom["stacking"]["mode"] == "normal" else series
    rows = 1 + min(len(series), LISTED) + (len(series) > LISTED)
    width, height = size[0], size[1] - 13 * rows - 16
    top = rounded(max(value for each in drawn for _, value in each.points))
    left = 74

    def spot(at, value):
        x = left + (at - span[0]) / (span[1] - span[0]) * (width - left)
        return f"{x:.0f},{height - value / top * (height - 6):.1f}"

    grid = "".join(
        f"<path d='M{left} {y:.0f}H{width:.0f}' stroke='#e8eaed'/><text x='{left - 5}' y='{y + 3:.0f}' "
        f"text-anchor='end'>{text(top * part, unit)}</text>"
        for part in (0, 0.5, 1)
        for y in (height - part * (height - 6) + 0.5,)
    )
    times = "".join(
        f"<text x='{spot(at, 0).partition(',')[0]}' y='{height + 12:.0f}' text-anchor='middle'>"
        f"{datetime.fromtimestamp(at, UTC):%H:%M:%S}</text>"
        for at in range(int(span[0]) // 30 * 30 + 30, int(span[1]) - 5, 30)
    )
    # The one below comes last, so that it is not covered.
    lines = [
        line(each, COLOURS[i % len(COLOURS)], custom["fillOpacity"], spot) for i, each in enumerate(drawn)
    ]
    return (
        f"<svg width='{width:.0f}' height='{height + 16:.0f}'>{grid}{times}{''.join(reversed(lines))}</svg>"
        f"{named(series, unit)}"
    )


def rounded(value):
    """The end of an axis: the next round number, 1 where all is 0."""
    if value <= 0:
        return 1
    size = 10 ** math.floor(math.log10(value))
    return next(part * size for part in (1, 1.5, 2, 3, 4, 5, 6, 8, 10) if part * size >= value)


def stacked(series):
    """Each series on top of those before it."""
    below, found = {}, []
    for each in series:
        points = [(at, value + below.get(at, 0.0)) for at, value in each.points]
        below.update(points)
        found.append(Series(each.name, points))
    return found


def line(series, colour, opacity, spot):
    """A series' line, broken where there are no points, and what is below it."""
    parts = [[series.points[0]]]
    for point in series.points[1:]:
        if point[0] - parts[-1][-1][0] > GAP_SECONDS:
            parts.append([])
        parts[-1].append(point)
    found = ""
    for part in parts:
        # A point alone is a line to itself.
        way = " ".join(spot(*point) for point in (part if len(part) > 1 else part * 2))
        if opacity:
            area = f"{spot(part[0][0], 0)} {way} {spot(part[-1][0], 0)}"
            found += f"<polygon points='{area}' fill='#fff'/>"
            found += f"<polygon points='{area}' fill='{colour}' fill-opacity='{opacity / 100}'/>"
        found += f"<polyline points='{way}' stroke='{colour}'/>"
    return found


def named(series, unit):
    """The legend, with the series that were greatest; how many more there are."""
    order = sorted(range(len(series)), key=lambda i: -max(value for _, value in series[i].points))
    rows = [
        f"<tr><th><i style='background:{COLOURS[i % len(COLOURS)]}'></i>{html.escape(series[i].name)}"
        f"<td>{text(series[i].points[-1][1], unit)}<td>{text(max(v for _, v in series[i].points), unit)}"
        for i in order[:LISTED]
    ]
    more = f"<tr><th>and {len(series) - LISTED} more" if len(series) > LISTED else ""
    return f"<table><tr><th><td>last<td>max{''.join(rows)}{more}</table>"
