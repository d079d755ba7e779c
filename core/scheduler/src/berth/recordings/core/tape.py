"""A tape that runs: the span that is under way, and the chance of each step."""

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from berth.framework.clock import Clock
from berth.recordings.core.spans import CYCLE, FOLLOW, POP, STEP, RecordingClock, TapeSpan
from berth.snapshot.snapshot import Snapshot

Sink = Callable[[TapeSpan], None]
"""Takes a span that is over. It returns at once, and does not raise."""

DRAWS = frozenset({CYCLE, STEP})
"""Spans in which a core draws by chance."""


def seed_of(seed: int, span: int) -> int:
    """The seed of a span's own chance."""
    return (seed << 64) + span


class Tape:
    """Gives the spans of one core to a sink, each once it is over.

    The chance of a step comes from the tape's seed and the number of the span, so that a decision that draws
    once more leaves those after it alone.
    """

    def __init__(self, clock: Clock, seed: int, sink: Sink) -> None:
        self.clock = RecordingClock(clock)
        self.chance = random.Random(seed)
        self.snapshot: Snapshot | None = None
        """Followed from the moment at which there is one."""
        self._seed = seed
        self._sink = sink
        self._spans = self._generation = 0

    @property
    def running(self) -> bool:
        """Whether a span is under way."""
        return self.clock.running

    @contextmanager
    def span(self, kind: str, *arguments: Any) -> Iterator[TapeSpan]:
        """A span from here to the end of the block."""
        assert not self.clock.running, "spans do not overlap"
        if self.snapshot is not None and self.snapshot.generation != self._generation:
            self._put(TapeSpan(FOLLOW, ()))
        span = self.clock.span = TapeSpan(kind, arguments)
        if kind in DRAWS:
            self.chance.seed(seed_of(self._seed, self._spans))
        self.clock.running = True
        try:
            yield span
        finally:
            self.clock.running = False
            if kind != POP or span.arguments[1] or span.monotonic:
                self._put(span)
            if self.snapshot is not None:
                self._generation = self.snapshot.generation

    def note(self, *output: Any) -> None:
        """Put an output to the span that is under way."""
        self.clock.span.outputs.append(output)

    def _put(self, span: TapeSpan) -> None:
        self._spans += 1
        self._sink(span)
