"""What a Grafana asks a Prometheus for a dashboard's panels, and what it gets."""

import math
import re
from typing import NamedTuple

VARIABLE = re.compile(r"\$(?:\{(\w+)\}|(\w+))")
STEP = 1
RATE_INTERVAL = f"{4 * STEP}s"
"""As Grafana takes it for ranges of few points: four times the interval of the scrapes."""


class Series(NamedTuple):
    """One line of a panel: its name in the legend, and (time, value) pairs."""

    name: str
    points: list


def replaced(expression, values):
    """The expression with the values of its variables; raises KeyError for one that has none."""
    return VARIABLE.sub(lambda found: values[found.group(1) or found.group(2)], expression)


def values_of(dashboard):
    """The values that variables have when the dashboard is opened, with All for those that can be it."""
    chosen = {
        each["name"]: each["allValue"] for each in dashboard["templating"]["list"] if "allValue" in each
    }
    return {**chosen, "__rate_interval": RATE_INTERVAL}


def legend(form, labels):
    """A series' name in the legend."""
    named = re.sub(r"\{\{\s*(\w+)\s*\}\}", lambda found: labels.get(found.group(1), ""), form)
    return " ".join(named.split())


async def answers(ask, dashboard, start, end):
    """The series of each panel, by the panel's id."""
    values = values_of(dashboard)
    found = {}
    for panel in dashboard["panels"]:
        found[panel["id"]] = [
            Series(legend(target["legendFormat"], each["metric"]), numbers(each["values"]))
            for target in panel.get("targets", ())
            for each in await ask(replaced(target["expr"], values), start, end)
        ]
    return found


def numbers(values):
    """The points that are numbers: Prometheus answers NaN where nothing was observed."""
    pairs = ((float(at), float(value)) for at, value in values)
    return [(at, value) for at, value in pairs if math.isfinite(value)]
