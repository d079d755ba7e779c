"""Queue lengths and rates of the last five minutes."""

import numpy as np
import pytest

from berth.live_page.history import SECONDS, SERIES, History
from berth.live_page.recent_attempts import RecentAttempts
from berth.queue.sub_queues import QueueSizes
from berth.testing.handles import ManualClock


class Source:
    """A history over a queue and counts that a test sets."""

    def __init__(self):
        self.sizes = QueueSizes(0, 0, 0, 0)
        self.recent = RecentAttempts()
        self.clock = ManualClock()
        self.history = History(lambda: self.sizes, self.recent, self.clock)
        self.history.sample()

    def after(self, seconds, *, sizes=(0, 0, 0, 0), attempts=0, scheduled=0):
        self.clock.seconds += seconds
        self.sizes = QueueSizes(*sizes)
        self.recent.attempts += attempts
        self.recent.scheduled += scheduled
        self.history.sample()

    def series(self, name):
        return np.frombuffer(self.history.points().series[name], dtype="<u4").tolist()


def test_each_series_has_its_points():
    source = Source()
    source.after(1, sizes=(1, 2, 3, 4), attempts=30, scheduled=20)

    assert [[0, 1], [0, 2], [0, 3], [0, 4], [0, 30], [0, 20]] == [source.series(name) for name in SERIES]


def test_a_point_for_each_second_that_a_long_turn_took():
    """Rates are by the time that passed."""
    source = Source()
    source.after(4, sizes=(7, 0, 0, 0), attempts=100)

    assert ([0, 7, 7, 7, 7], [0, 25, 25, 25, 25]) == (source.series("active"), source.series("attempts"))


@pytest.mark.parametrize("seconds", [SECONDS, 10**6])
def test_the_last_five_minutes_are_kept(seconds):
    source = Source()
    source.after(seconds, sizes=(5, 0, 0, 0))
    source.after(1, sizes=(6, 0, 0, 0))

    assert [5] * (SECONDS - 1) + [6] == source.series("active")


def test_the_same_points_where_nothing_changes():
    """So that a page that polls gets nothing new of an idle cluster."""
    source = Source()
    source.after(SECONDS)
    before = source.history.points()
    source.after(1)

    assert before == source.history.points()
