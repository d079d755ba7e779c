"""No failure without a test that finds it reported, no mark without a row, and a page of both."""

import re

from tests import sources
from tests.failures.asserted import unasserted
from tests.failures.log_lines import log_lines
from tests.failures.page import PAGE, page
from tests.failures.reporting import marks
from tests.failures.rows import NOT_FAILURES, PARTS

METRICS = [
    path
    for name, path in sources.modules().items()
    if name.startswith("telemetry/") or name == "operator/metrics.py"
]
LISTED = [failure for rows in PARTS.values() for failure in rows]


def test_every_failure_is_held():
    """Each way to fail that is listed has a test that finds it reported somewhere."""
    assert [] == sorted(set(LISTED) - marks().keys())


def test_every_mark_is_listed():
    """A test marks only failures that have a row."""
    assert [] == sorted(marks().keys() - set(LISTED))


def test_rows_are_distinct():
    """No name stands for two failures."""
    assert len(LISTED) == len(set(LISTED))


def test_every_warning_is_held():
    """Each warning and error that a process logs begins with the text of a row's log, or is exempt."""
    held = tuple(text for text in _quoted("log"))
    lines = {f"{line.path}: {line.text}": line for line in log_lines()}
    unheld = {name for name, line in lines.items() if not line.text.startswith(held)}

    assert len(lines) > 100
    assert unheld == NOT_FAILURES.keys()


def test_marks_say_what_their_tests_assert():
    """What a mark quotes of a condition, event, metric, line or answer is in its test, but for commands."""
    claimed = {
        mark.test: quoted for held in marks().values() for mark in held if (quoted := unasserted(mark))
    }

    assert {} == claimed


def test_marks_quote_something():
    """Each text of a mark has something that can be looked up, and is looked up by the test above."""
    bare = {
        mark.test: text
        for held in marks().values()
        for mark in held
        for text in mark.texts.values()
        if "`" not in text
    }

    assert {} == bare


def _quoted(place):
    """What the marks quote of a place, without the names of metrics and the like in other columns."""
    texts = (mark.texts.get(place, "") for held in marks().values() for mark in held)
    return [quoted for text in texts for quoted in re.findall(r"`([^`]+)`", text)]


def test_metrics_are_there():
    """Each metric that the page names is one that a process shows."""
    sources = "".join(path.read_text(encoding="utf-8") for path in METRICS)
    named = {
        name for held in marks().values() for mark in held for name in _names(mark.texts.get("metric", ""))
    }

    assert named
    assert [] == sorted(name for name in named if f'"{name.removesuffix("_total")}' not in sources)


def _names(text):
    return re.findall(r"`((?:berth|scheduler|leader)_\w+)`", text)


def test_page():
    """docs/failures.md is as `python -m tests.failures.page` makes it."""
    assert page() == PAGE.read_text(encoding="utf-8")
