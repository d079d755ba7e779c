"""Logs on standard error, as kube-scheduler's look: klog's lines, or JSON.

A message is written as constant text plus `key=%s` pairs; the JSON format takes the pairs apart again:

    log.warning("status not written pod=%s error=%s", pod.key, error)

    W0102 03:04:05.000006   12345 failure.py:90] status not written pod=shop/web-1 error=gone
    {"ts":..., "caller":"failure.py:90", "msg":"status not written", "v":0, "pod":"shop/web-1", ...}

Parts of messages are written by users, nodes and plugins: what is not printable is escaped, and the lines of
a traceback are indented, so that no text can look like a line of its own.

Verbosity is klog's: 0 shows what everybody should see, 4 is for debugging (Python's DEBUG).
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
_PAIR = re.compile(r"\s(\w+)=(\S+)")
_PLACEHOLDER = re.compile(r"%[^%\s]*?[a-zA-Z]")
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
        text = printable(record.getMessage())
        line = f"{letter}{when:%m%d %H:%M:%S.%f} {record.process:>7} {_caller(record)}] {text}"
        if not record.exc_info:
            return line
        trace = self.formatException(record.exc_info).split("\n")
        return "\n".join((line, *(f"    {printable(one)}" for one in trace)))


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
    template, arguments = record.msg, record.args
    first = _PAIR.search(template) if isinstance(template, str) and isinstance(arguments, tuple) else None
    if first is None or _PAIR.sub("", template[first.start() :]):
        return record.getMessage(), {}
    text, rest = _filled(template[: first.start()], list(arguments or ()))
    pairs: dict[str, Any] = {}
    for key, value in _PAIR.findall(template[first.start() :]):
        only = value == "%s" and isinstance(rest[0], _PLAIN)
        pairs[key], rest = (rest[0], rest[1:]) if only else _filled(value, rest)
    return str(text).rstrip(": "), pairs


def _filled(template: str, arguments: list[Any]) -> tuple[str, list[Any]]:
    """The template with as many arguments as it takes, and those left."""
    count = len(_PLACEHOLDER.findall(template.replace("%%", "")))
    return template % tuple(arguments[:count]), arguments[count:]


def _caller(record: logging.LogRecord) -> str:
    return f"{record.filename}:{record.lineno}"
