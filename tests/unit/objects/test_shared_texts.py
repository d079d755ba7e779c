"""Texts that come again and again are one object, in a table that has its bounds."""

from berth.objects.shared_texts import LONGEST, SharedTexts
from tests.hostile.work import kept_bytes


def a_text(number):
    """A new object each time."""
    return "-".join(["text", str(number)])


def test_a_text_that_comes_again_is_the_same_object():
    shared = SharedTexts()

    assert shared(a_text(1)) is shared(a_text(1))


def test_the_table_is_bounded():
    """Texts that users make up do not stay, be they many or long."""
    shared = SharedTexts(8)

    def make_up():
        for i in range(64):
            assert a_text(i) == shared(a_text(i))
            assert shared(a_text(i) + "x" * LONGEST * 100)

    make_up()
    assert kept_bytes(make_up) < 2_000
