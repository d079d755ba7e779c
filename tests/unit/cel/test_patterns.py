"""Regular expressions: Go's, through RE2."""

import pytest

from berth.cel import CELError, program


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("'xabcx'.matches('abc')", True),
        ("'xabcx'.matches('^abc$')", False),
        ("'a\\nb'.matches('^b$')", False),
        ("'a\\nb'.matches('(?m)^b$')", True),
        ("'ABC'.matches('(?i)abc')", True),
        ("'caf\u00e9'.matches('^[\\\\p{L}]{4}$')", True),
        ("'\u0661'.matches('[0-9]')", False),
        ("'\u0661'.matches('\\\\d')", False),
        ("''.matches('')", True),
        ("'ab12cd345'.find('[0-9]+')", "12"),
        ("'abc'.find('[0-9]+')", ""),
        ("'ab12cd345'.findAll('[0-9]+')", ["12", "345"]),
        ("'ab12cd345'.findAll('[0-9]', 2)", ["1", "2"]),
        ("'ab12'.findAll('[0-9]', 0)", []),
        ("'abc'.findAll('')", ["", "", "", ""]),
        ("'baaab'.findAll('a*')", ["", "aaa", ""]),
        ("'\u00e9\u00e9'.findAll('x*')", ["", "", ""]),
        ("'\u00e9x\u00e9'.findAll('.')", ["\u00e9", "x", "\u00e9"]),
        ("'foobar'.findAll('(o)(b)')", ["ob"]),
    ],
)
def test_finds_what_go_finds(expression, value):
    assert value == program(expression)({})


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("(", "error parsing regexp: missing closing ): `(`"),
        ("[a", "error parsing regexp: missing closing ]: `[a`"),
        ("a{1001}", "error parsing regexp: invalid repeat count: `{1001}`"),
        ("(?=a)", "error parsing regexp: invalid or unsupported Perl syntax: `(?=`"),
        ("(a)\\\\1", "error parsing regexp: invalid escape sequence: `\\1`"),
        ("\\\\C", "error parsing regexp: invalid escape sequence: `\\C`"),
        ("*", "error parsing regexp: missing argument to repetition operator: `*`"),
    ],
)
def test_a_pattern_that_does_not_compile_says_why_as_go_does(pattern, problem):
    with pytest.raises(CELError) as raised:
        program(f"'a'.matches('{pattern}')")({})

    assert problem == str(raised.value)
