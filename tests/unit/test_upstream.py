"""The watch on upstream: the table has a line, with a test or a page, for each change."""

from tests.upstream.table import STATES, Row, problems, read_table

GOOD = Row(1, "1.37", "#140047", "x", "open", "docs/releases.md")


def test_the_table():
    """Each line names a test or page that is there; each new gate and each rule has a line."""
    assert [] == problems(read_table())


def test_what_is_wrong():
    """A line without release, number, state or evidence, and one that names no test, are named."""
    for change in (
        {"release": "1.35"},
        {"number": "140047"},
        {"subject": ""},
        {"state": "done"},
        {"evidence": ""},
        {"evidence": "docs/none.md"},
        {"evidence": "tests/unit/test_upstream.py"},
        {"evidence": "tests/unit/test_upstream.py::test_none"},
    ):
        found = problems([GOOD._replace(**change)])
        assert any(text.startswith("changes.tsv:1:") for text in found), change
    assert not any(text.startswith("changes.tsv:1:") for text in problems([GOOD]))


def test_a_change_without_a_line():
    """A gate that a followed release brought is missed."""
    rows = [row for row in read_table() if row.subject != "CompositePodGroup"]

    assert ["changes.tsv: no row for CompositePodGroup"] == problems(rows)
    assert {row.state for row in rows} <= STATES
