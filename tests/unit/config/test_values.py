"""Durations, base64 and numbers, read and written as Go does."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.config.duration import Duration, parse_duration
from berth.config.go_text import float32, float32_text, float_text, json_text, quote
from berth.config.reading.base64_data import decode_base64


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("0", "0s"),
        ("-0", "0s"),
        ("15s", "15s"),
        ("90m", "1h30m0s"),
        ("1.5s", "1.5s"),
        (".5s", "500ms"),
        ("5.s", "5s"),
        ("120s", "2m0s"),
        ("1h1ns", "1h0m0.000000001s"),
        ("1500us", "1.5ms"),
        ("1\u00b5s", "1\u00b5s"),
        ("1\u03bcs", "1\u00b5s"),
        ("7ns", "7ns"),
        ("-1m30s", "-1m30s"),
        ("+2h", "2h0m0s"),
        ("2562047h47m16.854775807s", "2562047h47m16.854775807s"),
        ("-2562047h47m16.854775808s", "-2562047h47m16.854775808s"),
    ],
)
def test_duration(text, shown):
    """A duration prints in its one canonical form."""
    assert shown == str(parse_duration(text))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", 'time: invalid duration ""'),
        ("s", 'time: invalid duration "s"'),
        (".s", 'time: invalid duration ".s"'),
        ("-", 'time: invalid duration "-"'),
        ("15", 'time: missing unit in duration "15"'),
        ("1.2.3s", 'time: missing unit in duration "1.2.3s"'),
        ("1d", 'time: unknown unit "d" in duration "1d"'),
        ("1 s", 'time: unknown unit " s" in duration "1 s"'),
        ("1h-5m", 'time: unknown unit "h-" in duration "1h-5m"'),
        ("2562047h47m16.854775808s", 'time: invalid duration "2562047h47m16.854775808s"'),
        ("9" * 40 + "s", f'time: invalid duration "{"9" * 40}s"'),
        ("1\u00fc", 'time: unknown unit "\\xc3\\xbc" in duration "1\\xc3\\xbc"'),
    ],
)
def test_no_duration(text, message):
    """What is no duration is refused with Go's words."""
    with pytest.raises(ValueError, match=r"^time: ") as error:
        parse_duration(text)

    assert message == str(error.value)


@given(st.integers(-(1 << 63), (1 << 63) - 1).map(Duration))
def test_duration_round_trip(duration):
    """A printed duration reads as itself, to a nanosecond."""
    assert abs(duration - parse_duration(str(duration))) <= 1


@given(st.binary(max_size=40), st.sampled_from(["", "\n", "\r\n"]))
def test_base64_round_trip(data, gap):
    """Encoded data reads as itself, line breaks or not."""
    import base64  # noqa: PLC0415 (only the oracle of this test)

    text = base64.b64encode(data).decode()

    assert data == decode_base64(gap.join(text))


@pytest.mark.parametrize(
    ("text", "position"),
    [("%%%", 0), ("aGk", 0), ("aGkk_", 4), ("a===", 1), ("aG=k", 2), ("aG=", 3), ("aGk=x", 4), ("====", 0)],
)
def test_broken_base64(text, position):
    """The position of the first byte that is wrong is named."""
    with pytest.raises(ValueError, match=f"^illegal base64 data at input byte {position}$"):
        decode_base64(text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (8.0, "8"),
        (-0.0, "-0"),
        (0.1, "0.1"),
        (1e20, "100000000000000000000"),
        (1e21, "1e+21"),
        (1.5e-7, "1.5e-7"),
        (1e-6, "0.000001"),
    ],
)
def test_float(value, text):
    """A float is written with the fewest digits, with an exponent only at the far ends."""
    assert text == float_text(value)


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_float32_round_trip(value):
    """The short form of a 32-bit float finds it again."""
    assert value == float32(float32_text(value))


def test_quoting():
    """Quotes and controls are escaped in messages, and what HTML could misread in JSON."""
    assert '"a\\"\\\\\\n\\x01\\u200b\u00fc"' == quote('a"\\\n\x01\u200b\u00fc')
    assert '{"a":"\\u003cb\\u003e"}' == json_text({"a": "<b>"})
