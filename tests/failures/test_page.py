"""No failure without a test that finds it reported, no mark without a row, and a page of both."""

import re
from pathlib import Path

from tests.failures.page import PAGE, page
from tests.failures.reporting import marks
from tests.failures.rows import PARTS

CORE = Path(__file__).parents[2] / "core/berth"
METRICS = [*CORE.glob("telemetry/*.py"), CORE / "operator/metrics.py"]
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
