"""Attempts that are repeated without an event: pods of groups that were turned down (decision 11).

    attempt --> in vain, so often since the cluster last changed --> nothing is left that can change anything

An attempt that has the same cluster before it and no choice to make comes to the same again. One that chooses
among equal nodes may come to something else, so it is repeated a number of times.

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
    """Whether a search may look at other nodes than the last one did, though nothing changed."""
    percentages = [profile.percentage_of_nodes_to_score for profile in loaded.profiles]
    scored = all(profile.points.get(ExtensionPoint.SCORE) for profile in loaded.profiles)
    return bool(loaded.configuration.percentage_of_nodes_to_score or any(percentages)) or not scored


class CountedChance(random.Random):
    """Chance that counts the choices that were left to it."""

    drawn = 0
    """How many choices that was."""

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        """Any number of the range; where there is but one, that is no choice."""
        found = range(start) if stop is None else range(start, stop, step)
        self.drawn += len(found) > 1
        return super().randrange(start, stop, step)


class Retries:
    """How often each pod was tried since the cluster last changed.

    `may_change`: an attempt may come to something else though nothing changed and nothing was left to chance,
    as one that asks other processes.
    """

    def __init__(self, chance: CountedChance, *, may_change: bool) -> None:
        self._chance = chance
        self._may_change = may_change
        self._changes = 0
        self._choices = 0
        self._tried: Counter[str] = Counter()

    def tried(self, uid: str, changes: int) -> None:
        """Take note of an attempt that was turned down, after so many changes of the cluster."""
        if changes != self._changes:
            self._changes = changes
            self._tried.clear()
        if uid not in self._tried:
            self._choices = self._chance.drawn
        self._tried[uid] += 1

    def in_vain(self, waiting: Iterable[QueuedPodInfo], changes: int) -> bool:
        """Whether all that wait were turned down with their groups, and would be again."""
        if changes != self._changes:
            return False
        chosen = self._may_change or self._choices != self._chance.drawn
        enough = WITH_CHOICE if chosen else WITHOUT_CHOICE
        return all(
            (record.group or record).rests and self._tried[record.pod.uid] >= enough for record in waiting
        )
