"""Attempts that are repeated without an event: pods of groups that were rejected (decision 11).

    attempt --> in vain, too often since the cluster last changed --> no further attempt

An attempt on an unchanged cluster without a random choice has the same result again. One that chooses
among equal nodes may have another result, so it is repeated a number of times.

Called by: the engine.
"""

import random
from collections import Counter
from collections.abc import Iterable
from typing import Final

from berth.config.catalogue import ExtensionPoint
from berth.config.loading import LoadedConfig
from berth.framework.queueing.queued_pod import QueuedPodInfo

WITHOUT_CHOICE: Final = 2
"""The first may have begun before the last change had come to the scheduler."""
WITH_CHOICE: Final = 20


def goes_round(loaded: LoadedConfig) -> bool:
    """Whether a search may sample other nodes than the last one, though nothing changed."""
    percentages = [profile.percentage_of_nodes_to_score for profile in loaded.profiles]
    scored = all(profile.points.get(ExtensionPoint.SCORE) for profile in loaded.profiles)
    return bool(loaded.configuration.percentage_of_nodes_to_score or any(percentages)) or not scored


class CountedChance(random.Random):
    """A source of random numbers that counts the choices."""

    drawn = 0
    """How many choices that was."""

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        """A number of the range; a range of one number is no choice."""
        found = range(start) if stop is None else range(start, stop, step)
        self.drawn += len(found) > 1
        return super().randrange(start, stop, step)


class Retries:
    """The number of attempts of each pod since the cluster last changed.

    `may_change`: an attempt may have another result though nothing changed and nothing was random,
    such as one that calls sidecars.
    """

    def __init__(self, chance: CountedChance, *, may_change: bool) -> None:
        self._chance = chance
        self._may_change = may_change
        self._changes = 0
        self._choices = 0
        self._tried: Counter[str] = Counter()

    def tried(self, uid: str, changes: int) -> None:
        """Record a failed attempt, after that many changes of the cluster."""
        if changes != self._changes:
            self._changes = changes
            self._tried.clear()
        if uid not in self._tried:
            self._choices = self._chance.drawn
        self._tried[uid] += 1

    def in_vain(self, waiting: Iterable[QueuedPodInfo], changes: int) -> bool:
        """Whether all waiting pods were rejected with their groups, and would be again."""
        if changes != self._changes:
            return False
        chosen = self._may_change or self._choices != self._chance.drawn
        enough = WITH_CHOICE if chosen else WITHOUT_CHOICE
        return all(
            (record.group or record).rests and self._tried[record.pod.uid] >= enough for record in waiting
        )
