"""Logs on standard error, as kube-scheduler's look: klog's lines, or JSON.

Logging is structured: each call has a constant message followed by pairs, ` key=%s` or ` key=%.3f`, with an
argument for each (tests/unit/telemetry/test_log_calls.py holds that). Both formats show them as klog does:

    log.warning("status not written pod=%s err=%s", pod.key, error)

    W0102 03:04:05.000006   12345 failure.py:90] "status not written" pod="shop/web-1" error="gone"
    {"ts":..., "caller":"failure.py:90", "msg":"status not written", "v":0, "pod":"shop/web-1", ...}

Parts of messages are written by users, nodes and plugins: what is not printable is escaped, and the lines of
a traceback are indented, so that no text can look like a line of its own.

Verbosity is klog's: 0 shows what every operator should see, 4 is for debugging (Python's DEBUG).
"""

import logging
import re
import sys
from datetime import datetime
from math import ceil
from typing import IO, Any

import msgspec

from berth.telemetry.errors import SettingError

PACKAGE = "berth"
DEBUG_VERBOSITY = 4

_LEVEL_STEP = (logging.INFO - logging.DEBUG) / DEBUG_VERBOSITY
_LETTERS = {logging.WARNING: "W", logging.ERROR: "E", logging.CRITICAL: "F"}
_FORM = re.compile(r"([^%]*?)((?: \w+=%\S+)*)", re.DOTALL)
_PAIR = re.compile(r" (\w+)=%(s|\.\df)")
_PLAIN = (str, int, float, bool, type(None))


def configure_logs(*, verbosity: int = 0, log_format: str = "text", stream: IO[str] | None = None) -> None:
    """Send all logs of the process to standard error, or to the stream, in that format.

    Libraries' logs are shown from WARNING on. May be called again; the last call holds.

    Raises: SettingError on a format other than `text` and `json`.
    """
    if log_format not in _FORMATTERS:
        raise SettingError(f"--logging-format: {log_format!r} is neither text nor json")
    handler = logging.StreamHandler(sys.stderr if stream is None else stream)
    handler.setFormatter(_FORMATTERS[log_format]())
    root = logging.getLogger()
    for old in [each for each in root.handlers if isinstance(each.formatter, KlogFormatter | JsonFormatter)]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    set_verbosity(verbosity)


def set_verbosity(verbosity: int) -> None:
    """Show that much from now on."""
    logging.getLogger(PACKAGE).setLevel(level_of(verbosity))


def level_of(verbosity: int) -> int:
    """Python's level for klog's verbosity: 0 is INFO, 4 is DEBUG, in even steps."""
    return max(1, ceil(logging.INFO - _LEVEL_STEP * verbosity))


def verbosity_of(level: int) -> int:
    """The least verbosity that shows the level."""
    return max(0, ceil((logging.INFO - level) / _LEVEL_STEP))


class KlogFormatter(logging.Formatter):
    """klog's line: severity and date, time, process, place, text."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, and a traceback below it if there is one."""
        when = datetime.fromtimestamp(record.created).astimezone()
        letter = _LETTERS.get(record.levelno, "I")
        text, pairs = taken_apart(record)
        text = " ".join((_quoted(text), *(f"{key}={_shown(value)}" for key, value in pairs.items())))
        line = f"{letter}{when:%m%d %H:%M:%S.%f} {record.process:>7} {_caller(record)}] {text}"
        if not record.exc_info:
            return line
        trace = self.formatException(record.exc_info).split("\n")
        return "\n".join((line, *(f"    {printable(one)}" for one in trace)))


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{printable(escaped)}"'


def _shown(value: Any) -> str:
    return _quoted(value) if isinstance(value, str) else str(value).lower()


def printable(text: str) -> str:
    """The text without control characters, line breaks and what turns the direction of writing: escaped."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class JsonFormatter(logging.Formatter):
    """A JSON object a line: ts (seconds), caller, msg, v or severity, and the pairs."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        text, pairs = taken_apart(record)
        found: dict[str, Any] = {"ts": record.created, "caller": _caller(record), "msg": text}
        if record.levelno >= logging.WARNING:
            found["severity"] = record.levelname
        else:
            found["v"] = verbosity_of(record.levelno)
        found |= {f"{key}_" if key in found else key: value for key, value in pairs.items()}
        if record.exc_info:
            found["stacktrace"] = self.formatException(record.exc_info)
        return msgspec.json.encode(found).decode()


_FORMATTERS: dict[str, type[KlogFormatter | JsonFormatter]] = {"text": KlogFormatter, "json": JsonFormatter}


def taken_apart(record: logging.LogRecord) -> tuple[str, dict[str, Any]]:
    """The constant text and the pairs; a message of another form is all text."""
    form = _FORM.fullmatch(record.msg) if isinstance(record.msg, str) else None
    pairs = _PAIR.findall(form[2]) if form else []
    arguments = record.args if isinstance(record.args, tuple) else ()
    if form is None or len(pairs) != len(arguments):
        return record.getMessage(), {}
    return form[1], {key: _value(how, each) for (key, how), each in zip(pairs, arguments, strict=True)}


def _value(how: str, argument: Any) -> Any:
    """What a pair shows: numbers and truth values as they are, anything else as its text."""
    if how != "s":
        return float(f"%{how}" % argument)
    return argument if isinstance(argument, _PLAIN) else str(argument)


def _caller(record: logging.LogRecord) -> str:
    return f"{record.filename}:{record.lineno}"
