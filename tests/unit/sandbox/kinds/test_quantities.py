import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.sandbox.kinds.quantities import canonical, value_of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1", "1"),
        ("1000m", "1"),
        ("0.5", "500m"),
        ("1500m", "1500m"),
        ("1024Ki", "1Mi"),
        ("1Gi", "1Gi"),
        ("1.5Gi", "1536Mi"),
        ("1000", "1k"),
        ("100000k", "100M"),
        ("1e3", "1e3"),
        ("0", "0"),
        ("0Mi", "0"),
        ("128974848", "128974848"),
    ],
)
def test_canonical(text, expected):
    """Amounts are written back as kube-apiserver writes them."""
    assert expected == canonical(text)


@pytest.mark.parametrize("text", ["", "abc", "1 Gi", "1gi", "--1", "1Gii", "Mi"])
def test_no_quantity(text):
    """What is no quantity is refused."""
    with pytest.raises(ValueError, match="quantities must match"):
        canonical(text)


@given(
    number=st.integers(-(10**6), 10**6),
    suffix=st.sampled_from(["", "n", "u", "m", "k", "M", "G", "Ki", "Mi", "Gi", "e3"]),
)
def test_value_kept(number, suffix):
    """The canonical form has the same value, and is its own canonical form."""
    text = f"{number}{suffix}"

    assert value_of(text) == value_of(canonical(text))
    assert canonical(text) == canonical(canonical(text))
