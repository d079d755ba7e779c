"""Sizes over time as a picture: a panel for each, one under the other."""

from html import escape

WIDTH, HEIGHT, MARGIN, MAX_PANELS = 900, 90, 30, 24


def plot(seconds, sizes, names):
    """An SVG with a panel for each of the names, from nought to its greatest value."""
    panels = [
        panel(seconds, sizes[name], name, MARGIN + number * (HEIGHT + MARGIN))
        for number, name in enumerate(names[:MAX_PANELS])
    ]
    height = MARGIN + len(panels) * (HEIGHT + MARGIN)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}"'
    return f'{head} font-family="sans-serif" font-size="11">\n' + "\n".join(panels) + "\n</svg>\n"


def panel(seconds, series, name, top):
    """One line, its name and its least, last and greatest value."""
    longest, most = max(seconds, default=1.0) or 1.0, max(series, default=1.0) or 1.0
    points = " ".join(
        f"{at / longest * WIDTH:.1f},{top + HEIGHT * (1 - value / most):.1f}"
        for at, value in zip(seconds, series, strict=True)
    )
    last = series[-1] if series else 0.0
    title = f"{escape(name)}: {last:,.0f} after {longest / 60:.0f} min, at most {most:,.0f}"
    frame = f'<rect x="0" y="{top}" width="{WIDTH}" height="{HEIGHT}" fill="#f6f6f6"/>'
    line = f'<polyline points="{points}" fill="none" stroke="#1f5fa8" stroke-width="1.5"/>'
    return f'{frame}{line}<text x="4" y="{top - 4}">{title}</text>'
