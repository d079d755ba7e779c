"""Texts that users choose stay theirs: they are cut where they are repeated, and forge nothing."""

import asyncio
import io
import logging
from types import SimpleNamespace

import pytest

from berth.client.events import shortened
from berth.explain.attempt_log import ATTEMPTS_PER_POD, AttemptLog
from berth.framework.status import unschedulable
from berth.telemetry.logs import JsonFormatter, KlogFormatter
from tests.hostile.deciding import a_core, a_pod
from tests.hostile.work import kept_bytes

FORGED = 'x\nI0101 00:00:00.000000       1 leadership.py:1] "lost the lease"\x1b[31m\u2028\u202e'
LONG = 400_000
NOTE_BYTES = 1_024


def written(formatter, text):
    """What a log of that format has of a message with the text in it."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter)
    record = logging.LogRecord("berth.x", logging.INFO, __file__, 1, "not written pod=%s", (text,), None)
    handler.handle(record)
    return stream.getvalue()


@pytest.mark.parametrize(
    "formatter",
    [
        JsonFormatter(),
        pytest.param(
            KlogFormatter(),
        ),
    ],
)
def test_a_message_is_one_line_whatever_it_holds(formatter):
    line = written(formatter, FORGED)

    assert line.count("\n") == 1
    assert "\x1b" not in line


@pytest.mark.parametrize("text", ["é" * 600, "\U0001f600" * 300, "x" * 5_000, "\ud7ff" * 400])
def test_an_event_ends_at_its_limit_between_two_characters(text):
    note = shortened(text)

    assert len(note.encode()) <= NOTE_BYTES
    assert note.endswith(" ...")


def message_of(pod):
    """What is said of a pod that fits nowhere."""
    return str(asyncio.run(a_core(2).decide(pod)).status.message)


@pytest.mark.parametrize(
    "shape",
    [
        {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c" * LONG}}]},
        {"resourceClaims": [{"name": "c", "resourceClaimName": "r" * LONG}]},
    ],
)
def test_what_is_said_of_a_pod_that_fits_nowhere_is_bounded(shape):
    assert len(message_of(a_pod(**shape))) <= 32_768


def test_the_log_of_attempts_does_not_keep_long_messages():
    attempts = AttemptLog(max_characters=500_000)

    def many():
        for number in range(40):
            attempts.on_record(attempt_with(f"{number}" + "m" * 100_000))

    assert kept_bytes(many) < 1 << 20


def attempt_with(message):
    """A finished attempt that failed with that message."""
    return SimpleNamespace(
        pod=SimpleNamespace(uid=message[:10], key=f"default/{message[:10]}"),
        profile="p",
        attempt=ATTEMPTS_PER_POD,
        result="unschedulable",
        node_name="",
        status=unschedulable(message),
        trace_id=b"",
        traced=False,
        dequeued_ns=0,
        enqueued_ns=0,
        wall_offset_ns=0,
        cycle_ended_ns=0,
        ended_ns=0,
        feasible_count=0,
        evaluated_count=0,
        score=None,
        ignored=(),
    )
