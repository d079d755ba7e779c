"""How a scheduler process is started and ended."""

import asyncio
import os
import signal

import pytest

from berth.config.command_line import parse_flags, read_settings
from berth.scheduler import process_start
from berth.scheduler import start as starting
from berth.scheduler.start import _end


@pytest.mark.parametrize(("flags", "served"), [([], False), (["--live-page"], True)])
async def test_the_live_page_is_served_where_a_flag_says_so(monkeypatch, flags, served):
    """It is off unless it is asked for."""
    started = []

    async def run(options, *_, **__):
        started.append(options)

    monkeypatch.setattr(process_start, "run", run)
    monkeypatch.setattr(starting, "configure_logs", lambda **_: None)
    options = parse_flags([*flags, "--release=1.36", "--secure-port=0"])
    try:
        await starting.start(options, read_settings(options))
    finally:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR2):
            asyncio.get_running_loop().remove_signal_handler(number)

    assert [served] == [process.live_page for process in started]


def test_a_second_signal_ends_the_process_at_once(monkeypatch):
    """The first lets it finish what is under way."""
    statuses = []
    monkeypatch.setattr(os, "_exit", statuses.append)
    stop = asyncio.Event()
    _end(stop)
    assert stop.is_set()
    assert [] == statuses
    _end(stop)

    assert [1] == statuses
