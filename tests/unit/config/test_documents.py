"""How the text of a file is read: JSON or YAML, scalars, repetitions, and what kind of object it is."""

import pytest

from berth.config import DecodeError
from berth.config.reading.document import read_document
from berth.config.reading.envelope import identify
from berth.config.reading.tree import to_plain
from tests.unit.config.files import API_VERSION


def value_of(text):
    return to_plain(read_document(text).value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("y", True),
        ("Yes", True),
        ("ON", True),
        ("n", False),
        ("off", False),
        ("FALSE", False),
        ("yEs", "yEs"),
        ("", None),
        ("~", None),
        ("Null", None),
        ("nULL", "nULL"),
        ("'y'", "y"),
        ('"12"', "12"),
        ("12", 12),
        ("+5", 5),
        ("-3", -3),
        ("0x1F", 31),
        ("0X1f", 31),
        ("0o17", 15),
        ("017", 15),
        ("0b101", 5),
        ("-0b11", -3),
        ("0", 0),
        ("1_000", 1000),
        ("18446744073709551615", 18446744073709551615),
        ("18446744073709551616", 18446744073709552000),
        ("0xfffffffffffffffff", "0xfffffffffffffffff"),
        ("1.5", 1.5),
        ("5.", 5),
        (".5", 0.5),
        ("._5", "._5"),
        ("1e3", 1000),
        ("1e-1", 0.1),
        ("08", 8),
        ("1e22", 1e22),
        ("1e400", "1e400"),
        ("2030-12-31", "2030-12-31"),
        ("12:30:45", "12:30:45"),
        ("NaN", "NaN"),
        ("15s", "15s"),
        ("+", "+"),
        ("!!str 5", "5"),
        ('!!int "5"', 5),
        ("!!float 5", 5),
        ("!!bool 'no'", False),
        ("!!binary aGk=", "hi"),
        ("!mine 5", "5"),
    ],
)
def test_scalar(text, value):
    """A scalar means what it means to kube-scheduler's reader."""
    found = value_of(f"key: {text}")["key"]

    assert (value, type(value)) == (found, type(found))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("key: .inf", "json: unsupported value: +Inf"),
        ("key: -.INF", "json: unsupported value: -Inf"),
        ("key: .nan", "json: unsupported value: NaN"),
        ("key: !!int 5.5", "yaml: cannot decode !!float `5.5` as a !!int"),
        ("key: !!binary '%'", "yaml: !!binary value contains invalid base64 data"),
        ("~: 1", "unsupported map key of type: %!s(<nil>), key: <nil>, value: 1"),
        ("~:", "unsupported map key of type: %!s(<nil>), key: <nil>, value: <nil>"),
        (
            "~: {a: [1, ~]}",
            (
                "unsupported map key of type: %!s(<nil>), key: <nil>, value:"
                ' map[interface {}]interface {}{"a":[]interface {}{1, interface {}(nil)}}'
            ),
        ),
        (
            "0xffffffffffffffff: x",
            'unsupported map key of type: uint64, key: 0xffffffffffffffff, value: "x"',
        ),
        ("key: *nowhere", "yaml: unknown anchor 'nowhere' referenced"),
        ("key: &loop [*loop]", "yaml: anchor 'loop' value contains itself"),
        ("<<: 5", "yaml: map merge requires map or sequence of maps as the value"),
        ("%YAML 1.2\n---\na: 1", "yaml: found incompatible YAML document"),
        ('key: "\\ud800"', "yaml: line 1: found invalid Unicode character escape code"),
    ],
)
def test_unreadable_value(text, message):
    """A value that has no form in JSON is refused by name."""
    with pytest.raises(DecodeError) as error:
        read_document(text)

    assert message == str(error.value)


@pytest.mark.parametrize(
    "text",
    [
        "a: [",
        "a: b: c",
        "a:\n\tb: 1",
        "- a\nb: 1",
        "{}]",
        "a: 'x",
        "? [a]: 1",
        "[[1]: 2]",
        "a: \x01",
        "\tx: 1",
    ],
)
def test_broken_yaml(text):
    """Broken YAML is one line that says so."""
    with pytest.raises(DecodeError) as error:
        read_document(text)

    assert str(error.value).startswith(("yaml: ", "couldn't get version/kind; json parse error: "))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: 1\n---\nb: [", {"a": 1}),
        ("a: 1\n...\n]", {"a": 1}),
        ("---\n---\na: 1", None),
        ("", None),
        ("# nothing", None),
        ("\ufeffa: 1\r\nb: 2\r\n", {"a": 1, "b": 2}),
        ("%YAML 1.1\n---\na: 1", {"a": 1}),
        ("a:\t1\t# one", {"a": 1}),
        ("a: b\tc", {"a": "b\tc"}),
        ("1: a\n1.5: b\non: c", {"1": "a", "1.5": "b", "true": "c"}),
        ("a: &x [1]\nb: *x", {"a": [1], "b": [1]}),
        ("a: &x 1\nb: &x 2\nc: *x", {"a": 1, "b": 2, "c": 2}),
        ("base: &x {p: 1}\nuse: {<<: *x, q: 2}", {"base": {"p": 1}, "use": {"p": 1, "q": 2}}),
        ('"<<": 1', {"<<": 1}),
        ("---\n{a: 1}", {"a": 1}),
        ('  {"a": 1.50, "b": "\\ud800"}', {"a": 1.5, "b": "\ufffd"}),
    ],
)
def test_document(text, value):
    """The first document counts, with anchors and merges resolved."""
    assert value == value_of(text)


def test_utf16():
    """A file in UTF-16 with a byte order mark is readable."""
    assert {"a": "ü"} == value_of("a: ü".encode("utf-16"))


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("a: 1\nb: 2\na: 1", ['line 3: key "a" already set in map']),
        ("a: {x: 1, x: 2}\nb: {z: 1,\n z: 2}", ['line 1: key "x"', 'line 3: key "z"']),
        ("p: &p {x: 1, x: 2}\nq: *p", ['line 1: key "x"', 'line 1: key "x"']),
        ("p: &p {x: 1}\nq:\n  <<: *p\n  x: 2", ['line 4: key "x"']),
        ("p: &p {x: 1}\nq:\n  x: 2\n  <<: *p", ['line 1: key "x"']),
        ("p: &p {x: 1}\nr: &r\n  x: 3\nq:\n  <<: [*p, *r]", ['line 1: key "x"']),
        ("1: a\n1: b\n'1': c", ["line 2: key 1 already"]),
        ("a:\n- x\na:\n- y", ['line 4: key "a"']),
    ],
)
def test_repeated_keys(text, lines):
    """Each repetition is reported with the line of the value that comes too late."""
    found = read_document(text).duplicates

    assert len(lines) == len(found)
    assert all(line.startswith(start) for line, start in zip(found, lines, strict=True))


def test_alias_bomb():
    """A small file that unfolds to millions of values is refused, and quickly."""
    levels = [f"l{level}: &l{level} [{', '.join([f'*l{level - 1}'] * 10)}]" for level in range(1, 8)]

    with pytest.raises(DecodeError, match="excessive aliasing"):
        read_document("\n".join(["l0: &l0 [a]", *levels]))


@pytest.mark.parametrize("text", ["[" * 1000, '{"a":' * 5000, "a: " + "[" * 300 + "]" * 300])
def test_depth(text):
    """Absurdly deep nesting is an error, not a crash."""
    with pytest.raises(DecodeError):
        read_document(text)


@pytest.mark.parametrize(
    ("api_version", "kind", "message"),
    [
        ("a/b/c", "K", "unexpected GroupVersion string: a/b/c"),
        ("v1", "", "Object 'Kind' is missing in 'TEXT'"),
        ("", "K", "Object 'apiVersion' is missing in 'TEXT'"),
        ("group/", "K", "Object 'apiVersion' is missing in 'TEXT'"),
        ("v1", "K", 'no kind "K" is registered for version "v1" in scheme'),
        ("/v1", "K", 'no kind "K" is registered for version "v1" in scheme'),
        (API_VERSION, "kubeSchedulerConfiguration", 'no kind "kubeSchedulerConfiguration" is registered'),
    ],
)
def test_envelope(api_version, kind, message):
    """A document must say which kind of which version it is."""
    value = read_document(f"apiVersion: '{api_version}'\nkind: '{kind}'").value

    with pytest.raises(DecodeError) as error:
        identify(value, "TEXT")

    assert str(error.value).startswith(message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("5", "cannot unmarshal number into Go value of type struct {"),
        ("true", "cannot unmarshal bool into Go value of type struct {"),
        (
            "apiVersion: 1\nkind: []",
            "cannot unmarshal number into Go struct field .apiVersion of type string",
        ),
        ("kind: {}", "cannot unmarshal object into Go struct field .kind of type string"),
    ],
)
def test_envelope_of_wrong_type(text, message):
    """An envelope of the wrong type names the type that was found."""
    with pytest.raises(DecodeError) as error:
        identify(read_document(text).value, text)

    assert str(error.value).startswith(f"couldn't get version/kind; json parse error: json: {message}")


def test_envelope_in_any_case():
    """Which kind a document is may be written in any letter case; the strict reading complains later."""
    value = read_document(f"APIVERSION: {API_VERSION}\nKind: KubeSchedulerConfiguration").value

    assert "KubeSchedulerConfiguration" == identify(value, "").kind
