"""What PromQL expressions name: metrics with their labels, and how each is used; for the forms we write."""

import json
import re
from pathlib import Path
from typing import NamedTuple

import yaml

MONITORING = Path(__file__).parents[2] / "kustomize/components/monitoring"
KEYWORDS = frozenset({"by", "on", "and", "or", "unless", "without", "ignoring", "group_left", "group_right"})
JOINS = frozenset({"on", "ignoring", "group_left", "group_right"})
LISTS = frozenset({"by", "on", "without", "ignoring", "group_left", "group_right"})
OF_COUNTERS = frozenset({"rate", "increase"})
TARGET = frozenset(
    {"namespace", "job", "instance", "exported_namespace", "pod", "service", "endpoint", "container"}
)
"""Labels that Prometheus gives to what it scrapes."""
TOKEN = re.compile(
    r"""(?P<text>"[^"]*") | (?P<range>\[[^\]]*\]) | (?P<matchers>\{[^}]*\})
    | (?P<word>[a-zA-Z_:][\w:]*) | (?P<other>\S)""",
    re.VERBOSE,
)


class Use(NamedTuple):
    """A metric in an expression: its labels' names, and whether it is a rate's argument."""

    metric: str
    labels: frozenset[str]
    as_counter: bool


def uses(expression):
    """Each metric that the expression reads, and the labels that it groups and joins by."""
    found, listed, around, function = [], set(), [], ""
    tokens = [(match.lastgroup, match.group()) for match in TOKEN.finditer(expression)]
    for (kind, text), following in zip(tokens, [*tokens[1:], ("end", "")], strict=True):
        if text == "(":
            around.append(function)
            function = ""
        elif text == ")":
            around.pop()
        elif kind == "word" and around and around[-1] in LISTS:
            listed.add(text)
        elif kind == "word" and (following[1] == "(" or following[1] in LISTS - JOINS):
            function = text
        elif kind == "word" and text not in KEYWORDS:
            matched = following[1] if following[0] == "matchers" else ""
            labels = frozenset(re.findall(r"(\w+)\s*(?:=~|!~|!=|=)", matched))
            found.append(Use(text, labels, OF_COUNTERS.intersection(around[-1:]) != frozenset()))
    return found, listed - {"le"}


def dashboards():
    """The dashboards by name."""
    return {path.stem: json.loads(path.read_text()) for path in (MONITORING / "dashboards").glob("*.json")}


def rules():
    """Every alert."""
    document = yaml.safe_load((MONITORING / "rules.yaml").read_text())
    return [rule for group in document["spec"]["groups"] for rule in group["rules"]]


def expressions():
    """Each expression with what is shown of its labels, by where it stands."""
    for name, dashboard in dashboards().items():
        for panel in dashboard["panels"]:
            for target in panel.get("targets", ()):
                shown = set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))
                yield f"{name}: {panel['title']}", target["expr"], shown
        for variable in dashboard["templating"]["list"]:
            if "definition" in variable:
                inner, _, label = variable["definition"].removeprefix("label_values(").rpartition(",")
                yield f"{name}: ${variable['name']}", inner, {label.strip(" )")}
    for rule in rules():
        words = " ".join(rule["annotations"].values())
        yield rule["alert"], rule["expr"], set(re.findall(r"\$labels\.(\w+)", words))
