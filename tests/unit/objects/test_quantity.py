"""Quantities are exact and round up once."""

from fractions import Fraction
from math import ceil

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.objects.quantity import MAX_INT64, MAX_NANOS, InvalidQuantityError, milli, nanos, whole

SUFFIXES = {
    "": Fraction(1),
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    "k": Fraction(10**3),
    "M": Fraction(10**6),
    "G": Fraction(10**9),
    "T": Fraction(10**12),
    "P": Fraction(10**15),
    "E": Fraction(10**18),
    "Ki": Fraction(2**10),
    "Mi": Fraction(2**20),
    "Gi": Fraction(2**30),
    "Ti": Fraction(2**40),
    "Pi": Fraction(2**50),
    "Ei": Fraction(2**60),
}


@pytest.mark.parametrize(
    ("text", "units", "thousandths"),
    [
        ("0", 0, 0),
        ("1", 1, 1000),
        ("500m", 1, 500),
        ("100.5m", 1, 101),
        ("0.1", 1, 100),
        ("1.5", 2, 1500),
        ("1m", 1, 1),
        ("1n", 1, 1),
        ("0.5n", 1, 1),
        ("1.5Gi", 1610612736, 1610612736000),
        ("3e2", 300, 300_000),
        ("3E2", 300, 300_000),
        ("2E", 2 * 10**18, MAX_INT64),
        ("1e-3", 1, 1),
        ("+5", 5, 5000),
        (".5", 1, 500),
        ("5.", 5, 5000),
        ("-1", -1, -1000),
        ("9223372036854775807", MAX_INT64, MAX_INT64),
        ("9223372036854775808", MAX_INT64, MAX_INT64),
        ("1e30", MAX_INT64, MAX_INT64),
        ("1e999999999", MAX_INT64, MAX_INT64),
        ("1e-999999999", 1, 1),
        (2, 2, 2000),
        (0.25, 1, 250),
    ],
)
def test_units_and_thousandths(text, units, thousandths):
    assert (units, thousandths) == (whole(nanos(text)), milli(nanos(text)))


@pytest.mark.parametrize("text", ["", "abc", "1.2.3", "1kk", "1 Gi", "Gi", "1e", "--1", "0x10", "1ki", "."])
def test_what_is_no_quantity(text):
    with pytest.raises(InvalidQuantityError, match="is not a quantity"):
        nanos(text)


@given(st.integers(0, 10**6), st.integers(0, 10**9 - 1), st.integers(0, 9), st.sampled_from(sorted(SUFFIXES)))
def test_like_fractions(before, after, digits, suffix):
    """The nanos are the exact amount, rounded up, as far as 64 bits hold it in whole units."""
    text = f"{before}.{after:09d}"[: len(str(before)) + 1 + digits]
    exact = Fraction(text) * SUFFIXES[suffix]

    assert min(ceil(exact * 10**9), MAX_NANOS) == nanos(text + suffix)


@given(st.lists(st.integers(1, 10**6).map(lambda n: f"{n}u"), min_size=1, max_size=20))
def test_a_sum_rounds_once(texts):
    """Adding first and rounding then never gives more than the parts rounded each."""
    total = sum(nanos(text) for text in texts)

    assert ceil(sum(Fraction(text[:-1]) for text in texts) / 1000) == milli(total)
    assert milli(total) <= sum(milli(nanos(text)) for text in texts)
