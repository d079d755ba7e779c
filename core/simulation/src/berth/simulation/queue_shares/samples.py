"""Samples of each queue's state at intervals of virtual time, and their summary.

    plugin --GET /state--> queues by name --> sample --> ... --> sums and means by queue

A plugin shows them as `queues` of the JSON at its /state (`state()` of the SDKs).
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final

import msgspec

MAX_SAMPLES: Final = 1_000
"""When there are more, every second one is dropped, and the next ones are twice as far apart."""
DIGITS: Final = 3


class QueueState(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    """A queue's state at one time, and the outcome of its pods until then.

    Units: amounts as schedulers count them, cpu in thousandths; virtual seconds. What a plugin does
    not show is empty.
    """

    parent: str = ""
    quota: dict[str, int] = {}
    """What it may use without borrowing."""
    used: dict[str, int] = {}
    fair_share: dict[str, float] = {}
    borrowed: dict[str, int] = {}
    waiting: int = 0
    """Pods."""
    placed: int = 0
    evicted: int = 0
    """Pods that had to go for others."""
    waited_seconds: float = 0.0
    """All waits of placed pods together."""
    longest_wait_seconds: float = 0.0
    """Of those that wait still as well."""


class QueueSample(msgspec.Struct, rename="camel", frozen=True):
    """All queues at one moment. Units: virtual seconds."""

    at_seconds: float
    queues: dict[str, QueueState]


class QueueAmounts(msgspec.Struct, rename="camel", frozen=True):
    """A queue's use of one resource over the whole time: means and maxima."""

    quota: int
    """At the end."""
    used: float
    max_used: int
    fair_share: float
    borrowed: float
    max_borrowed: int


class QueueSummary(msgspec.Struct, rename="camel", frozen=True, kw_only=True):
    """The summary of a queue over the whole time."""

    parent: str
    placed: int
    waiting: int
    """At the end."""
    evicted: int
    mean_wait_seconds: float
    """Of placed pods."""
    longest_wait_seconds: float
    resources: dict[str, QueueAmounts]


class ShownQueues(msgspec.Struct):
    """The part of a plugin's state that is read here; None where it shows no queues."""

    queues: dict[str, QueueState] | None = None


class Samples:
    """Collects samples, at most one in each interval. Units: virtual seconds."""

    def __init__(self, every: float) -> None:
        self.every = every
        self.taken: list[QueueSample] = []

    @property
    def due(self) -> float:
        """When the next sample is due."""
        return self.taken[-1].at_seconds + self.every if self.taken else 0.0

    def take(self, at: float, queues: dict[str, QueueState]) -> None:
        """Add a sample, which replaces one of the same time."""
        if self.taken and self.taken[-1].at_seconds == at:
            self.taken.pop()
        self.taken.append(QueueSample(at, queues))
        if len(self.taken) > MAX_SAMPLES:
            self.taken, self.every = self.taken[::2], self.every * 2


def summarized(samples: Sequence[QueueSample]) -> dict[str, QueueSummary]:
    """The summary of the samples by queue; each sample holds until the next. Cost: their size."""
    if not samples:
        return {}
    names = sorted({name for sample in samples for name in sample.queues})
    weights = [after.at_seconds - before.at_seconds for before, after in pairwise(samples)] + [0.0]
    if not any(weights):
        weights[-1] = 1.0
    return {name: _summary([each.queues.get(name) for each in samples], weights) for name in names}


def _summary(states: Sequence[QueueState | None], weights: Sequence[float]) -> QueueSummary:
    seen = [(state or QueueState(), weight) for state, weight in zip(states, weights, strict=True)]
    last = next(state for state in reversed(states) if state is not None)
    named = {
        name
        for state, _ in seen
        for name in (*state.quota, *state.used, *state.borrowed)
        if _amounts(state, name)
    }
    return QueueSummary(
        parent=last.parent,
        placed=last.placed,
        waiting=seen[-1][0].waiting,
        evicted=last.evicted,
        mean_wait_seconds=round(last.waited_seconds / last.placed, DIGITS) if last.placed else 0.0,
        longest_wait_seconds=round(last.longest_wait_seconds, DIGITS),
        resources={name: _over_time(name, seen) for name in sorted(named)},
    )


def _amounts(state: QueueState, name: str) -> bool:
    return bool(state.quota.get(name) or state.used.get(name) or state.borrowed.get(name))


def _over_time(name: str, seen: Sequence[tuple[QueueState, float]]) -> QueueAmounts:
    whole = sum(weight for _, weight in seen)

    def mean(amount: Callable[[QueueState], float]) -> float:
        return round(sum(amount(state) * weight for state, weight in seen) / whole, DIGITS)

    return QueueAmounts(
        quota=seen[-1][0].quota.get(name, 0),
        used=mean(lambda state: state.used.get(name, 0)),
        max_used=max(state.used.get(name, 0) for state, _ in seen),
        fair_share=mean(lambda state: state.fair_share.get(name, 0.0)),
        borrowed=mean(lambda state: state.borrowed.get(name, 0)),
        max_borrowed=max(state.borrowed.get(name, 0) for state, _ in seen),
    )
