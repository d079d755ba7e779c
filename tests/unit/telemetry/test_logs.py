"""Logs are klog's lines, or JSON with the same facts."""

import io
import json
import logging
import re

import pytest

from berth.telemetry.errors import SettingError
from berth.telemetry.logs import configure_logs, level_of, set_verbosity, verbosity_of

log = logging.getLogger("berth.somewhere")


@pytest.fixture
def logs():
    """Configure logs to a stream, and put logging back afterwards."""
    root, ours = logging.getLogger(), logging.getLogger("berth")
    before = (list(root.handlers), root.level, ours.level)
    stream = io.StringIO()

    def configure(**options):
        configure_logs(stream=stream, **options)
        return stream

    yield configure
    root.handlers[:] = before[0]
    root.setLevel(before[1])
    ours.setLevel(before[2])


def written(stream):
    return [json.loads(line) for line in stream.getvalue().splitlines()]


@pytest.mark.parametrize(("level", "letter"), [("info", "I"), ("warning", "W"), ("error", "E")])
def test_text(logs, level, letter):
    """A line has klog's header: severity, date, time, process, place."""
    stream = logs()
    getattr(log, level)("pod not bound pod=%s tries=%s", "shop/web-1", 2)
    header = rf"{letter}\d{{4}} \d\d:\d\d:\d\d\.\d{{6}} +\d+ test_logs\.py:\d+\]"
    expected = rf'{header} "pod not bound" pod="shop/web-1" tries=2\n'

    assert re.fullmatch(expected, stream.getvalue())


def test_message_stays_on_its_line(logs):
    """A value with line ends or quotes breaks neither the line nor the value."""
    stream = logs()
    log.info("refused err=%s", 'a\n"b"')

    assert stream.getvalue().endswith('] "refused" err="a\\n\\"b\\""\n')


@pytest.mark.parametrize(
    ("message", "arguments", "expected"),
    [
        ("pod not bound pod=%s tries=%s", ("a/b", 3), {"msg": "pod not bound", "pod": "a/b", "tries": 3}),
        ("took seconds=%.1f", (0.25,), {"msg": "took", "seconds": 0.2}),
        ("count=%s", (3,), {"msg": "count=3"}),
        ("leads lease=%s/%s", ("ns", "n"), {"msg": "leads lease=ns/n"}),
        ("sizes active=%s", (3,), {"msg": "sizes", "active": 3}),
        ("refused err=%s", (ValueError("x"),), {"msg": "refused", "err": "x"}),
        ("tried %d times pod=%s", (2, "a/b"), {"msg": "tried 2 times pod=a/b"}),
        ("a pod=%s was lost", ("a/b",), {"msg": "a pod=a/b was lost"}),
        ("moved msg=%s", ("x",), {"msg": "moved", "msg_": "x"}),
        ("plain", (), {"msg": "plain"}),
    ],
)
def test_json(logs, message, arguments, expected):
    """The pairs of a message are fields; what is no pair is text."""
    stream = logs(log_format="json")
    log.info(message, *arguments)
    found = written(stream)[0]

    assert {"ts", "caller"} <= found.keys()
    assert expected | {"v": 0} == {key: found[key] for key in found.keys() - {"ts", "caller"}}


def test_json_of_an_exception(logs):
    """A traceback is a field, so that an entry stays a line."""
    stream = logs(log_format="json")
    try:
        int("x")
    except ValueError:
        log.exception("failed")
    found = written(stream)[0]

    assert ("ERROR", "failed") == (found["severity"], found["msg"])
    assert "ValueError: invalid literal" in found["stacktrace"]


@pytest.mark.parametrize(("verbosity", "shown"), [(0, False), (3, False), (4, True), (10, True)])
def test_verbosity(logs, verbosity, shown):
    """DEBUG is shown from verbosity 4 on."""
    stream = logs(verbosity=verbosity)
    log.debug("detail")

    assert shown == ("detail" in stream.getvalue())


def test_verbosity_can_be_changed(logs):
    """A new verbosity holds at once."""
    stream = logs()
    set_verbosity(4)
    log.debug("detail")

    assert "detail" in stream.getvalue()


@pytest.mark.parametrize("verbosity", range(8))
def test_levels_and_verbosities(verbosity):
    """A level is shown by exactly the verbosities from its own on."""
    assert verbosity == verbosity_of(level_of(verbosity))


def test_configuring_twice(logs):
    """The last call holds; nothing is written twice."""
    logs()
    stream = logs()
    log.info("once")

    assert 1 == stream.getvalue().count("once")


def test_unknown_format(logs):
    """The flag and its value are named."""
    with pytest.raises(SettingError, match=r"--logging-format: 'xml'"):
        logs(log_format="xml")


HOSTILE = "a\nI0101 00:00:00.000000       1 leadership.py:1] lost\r\x1b[31m\x9b\u2028\u202eb\x00"


def test_a_message_is_one_printable_line(logs):
    """Line breaks, escapes of terminals and turns of direction are shown, not sent."""
    stream = logs()
    log.warning("not found name=%s", HOSTILE)
    (line,) = stream.getvalue().split("\n")[:-1]

    assert line.isprintable()
    assert "a\\nI0101" in line


def test_a_traceback_cannot_forge_a_line(logs):
    """Its lines are indented, and as printable as the message."""
    stream = logs()
    log.error("failed", exc_info=ValueError(HOSTILE))
    _, *trace = stream.getvalue().split("\n")[:-1]

    assert all(line.startswith("    ") and line.isprintable() for line in trace)
    assert any("ValueError: a" in line for line in trace)
