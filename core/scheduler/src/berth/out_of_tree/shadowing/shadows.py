"""All plugins that are in shadow, by profile.

    framework.decision_observers --chose--> _ProfileShadows --> Shadow of each plugin
    the attempt's record --ending, ended-----------------------^

A profile without shadows has no decision observer, so its cycles do no work for them.

Source: docs/protocol.md "Shadow".
"""

import logging
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from berth.framework.attempts.attempt import Attempt
from berth.framework.attempts.cycle_record import CycleRecord
from berth.framework.attempts.diagnosis import Diagnosis
from berth.framework.interface import PostFilterResult
from berth.framework.node_scores import NodeScores
from berth.framework.runtime import Framework
from berth.out_of_tree.enabling import Roster
from berth.out_of_tree.points.sidecar_plugin import SidecarPlugin
from berth.out_of_tree.shadowing.shadow import Shadow

log = logging.getLogger(__name__)


class _ProfileShadows:
    """The shadows of one profile, as the framework knows them."""

    def __init__(self) -> None:
        self.shadows: list[Shadow] = []

    def chose(self, attempt: Attempt, row: int, scores: NodeScores) -> None:
        """Tell each of them; whatever breaks in that is none of the cycle's business."""
        for shadow in self.shadows:
            try:
                shadow.chose(attempt, row, scores)
            except Exception:
                log.exception("not followed in shadow pod=%s", attempt.pod.key)

    def found_none(self, attempt: Attempt, diagnosis: Diagnosis, room: PostFilterResult) -> None:
        """Tell each of them, as above."""
        for shadow in self.shadows:
            try:
                shadow.found_none(attempt, diagnosis, room)
            except Exception:
                log.exception("not followed in shadow pod=%s", attempt.pod.key)


class Shadows:
    """Who is in shadow where; `tell_done` is how plugins are notified of an attempt's end."""

    def __init__(self, tell_done: Callable[..., Awaitable[None]]) -> None:
        self._tell_done = tell_done
        self._by_profile: dict[str, _ProfileShadows] = {}
        self._leaving: list[tuple[str, Shadow]] = []

    def enter(self, plugin: SidecarPlugin, framework: Framework, roster: Roster) -> None:
        """Let the plugin follow that profile's attempts from now on."""
        decision_observers = self._by_profile.setdefault(framework.profile_name, _ProfileShadows())
        decision_observers.shadows.append(Shadow(plugin, roster, self._tell_done))
        if decision_observers not in framework.decision_observers:
            framework.decision_observers.append(decision_observers)

    def leave(self, plugin: SidecarPlugin, framework: Framework) -> None:
        """Let the plugin follow no more attempts; what it reserved it is still asked to unreserve."""
        decision_observers = self._by_profile.get(framework.profile_name)
        if decision_observers is None:
            return
        for shadow in [each for each in decision_observers.shadows if each.plugin is plugin]:
            decision_observers.shadows.remove(shadow)
            self._leaving.append((framework.profile_name, shadow))
        if not decision_observers.shadows and decision_observers in framework.decision_observers:
            framework.decision_observers.remove(decision_observers)

    def has(self, plugin: SidecarPlugin, profile: str) -> bool:
        """Whether the plugin is in that profile's shadow."""
        decision_observers = self._by_profile.get(profile)
        return decision_observers is not None and any(
            each.plugin is plugin for each in decision_observers.shadows
        )

    def report(self, name: str) -> dict[str, dict[str, Any]]:
        """How that plugin compares with what was decided, by profile."""
        return {
            profile: shadow.tally.report()
            for profile, decision_observers in self._by_profile.items()
            for shadow in decision_observers.shadows
            if shadow.plugin.name == name
        }

    def ending(self, record: CycleRecord) -> None:
        """The attempt is over; its record is about to be read by others."""
        for shadow in self._of(record.profile):
            shadow.ending(record)

    def ended(self, record: CycleRecord) -> frozenset[str]:
        """Let every shadow know what became of the attempt; gives the plugins that are notified here."""
        if not (self._leaving or record.profile in self._by_profile):
            return frozenset()
        left = [shadow for profile, shadow in self._leaving if profile == record.profile]
        followed = {each.plugin.name for each in left if each.ended(record, followed_only=True)}
        self._leaving = [(profile, shadow) for profile, shadow in self._leaving if not shadow.over]
        if record.profile in self._by_profile:
            shadows = self._by_profile[record.profile].shadows
            followed |= {each.plugin.name for each in shadows if each.ended(record)}
        return frozenset(followed)

    def _of(self, profile: str) -> Iterator[Shadow]:
        if profile in self._by_profile:
            yield from self._by_profile[profile].shadows
        yield from (shadow for known, shadow in self._leaving if known == profile)

    def close(self) -> None:
        """Let go of all of them."""
        for profile in self._by_profile:
            for shadow in self._of(profile):
                shadow.close()
