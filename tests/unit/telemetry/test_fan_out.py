"""A record reaches everybody who wants it."""

import logging

from berth.telemetry.fan_out import fan_out
from tests.unit.telemetry.records import make_record


def test_consumer_that_fails_costs_nobody_else(caplog):
    """The others are told all the same, and the log names the pod."""
    told = []

    def broken(_record):
        raise RuntimeError("boom")

    with caplog.at_level(logging.ERROR):
        fan_out(broken, told.append)(make_record())

    assert [make_record()] == told
    assert "pod=shop/web-1" in caplog.text
