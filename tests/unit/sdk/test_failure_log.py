"""The Python SDK's log of the author's functions that fail."""

import logging

from berth_sdk.failure_log import LINES_AT_ONCE, FailureLog


def test_lines_are_bounded(caplog):
    """A function that fails at every pod has few lines, and the next one counts those left out."""
    now = 0.0
    failures = FailureLog(logging.getLogger("plugin"), lambda: now)
    for _ in range(100):
        failures.failed("score", ValueError("2 scores for 3 nodes"))
    now = 2.0
    failures.failed("score", ValueError("2 scores for 3 nodes"))

    assert LINES_AT_ONCE + 1 == len(caplog.messages)
    assert "plugin function failed function=score err=2 scores for 3 nodes left_out=80" == caplog.messages[-1]
