"""How a scheduler process is ended."""

import asyncio
import os

from berth.scheduler.start import _end


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
