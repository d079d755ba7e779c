"""No failure without a test that finds it reported, no mark without a row, and a page of both."""

from tests.failures.page import PAGE, page
from tests.failures.reporting import marks
from tests.failures.rows import PARTS

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


def test_page():
    """docs/failures.md is as `python -m tests.failures.page` makes it."""
    assert page() == PAGE.read_text(encoding="utf-8")
