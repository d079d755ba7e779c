"""A record reaches everybody who wants it."""

import logging

from berth.telemetry.fan_out import fan_out
from tests.failures.reporting import reports
from tests.unit.telemetry.records import make_record


@reports("record-not-taken", log="`cycle record not taken`, with pod and cause")
def test_a_consumer_that_fails_does_not_stop_the_others(caplog):
    """The others get the record all the same, and the log names the pod."""
    reported = []

    def broken(_record):
        raise RuntimeError("boom")

    with caplog.at_level(logging.ERROR):
        fan_out(broken, reported.append)(make_record())

    assert [make_record()] == reported
    assert "cycle record not taken pod=shop/web-1" in caplog.text
