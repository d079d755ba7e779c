"""Readers of changed rows get each change once, from where they left off."""

import pytest

from berth.snapshot.columns.row_journal import RowJournal


def noted(*rows, kept=4):
    journal = RowJournal(kept)
    for row in rows:
        journal.note(row)
    return journal


@pytest.mark.parametrize("position", range(2, 7))
def test_the_changes_since_then_in_order(position):
    """Also where the ring begins anew between the first of them and the last."""
    assert [10, 11, 12, 13, 14, 15][position:] == noted(*range(10, 16)).since(position).tolist()


def test_a_reader_who_lags_behind_starts_anew():
    """Of six changes, four are kept."""
    assert noted(*range(6)).since(1) is None


def test_a_row_is_named_as_often_as_it_changed():
    """Readers see to that themselves."""
    assert [3, 3] == noted(3, 3).since(0).tolist()
