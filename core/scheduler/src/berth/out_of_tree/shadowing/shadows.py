"""All plugins in shadow mode, by profile.

    framework.decision_observers --on_node_chosen--> _ProfileShadows --> Shadow of each plugin
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
from berth.out_of_tree.enabled_plugins import EnabledPlugins
from berth.out_of_tree.points.sidecar_plugin import SidecarPlugin
from berth.out_of_tree.shadowing.shadow import Shadow

log = logging.getLogger(__name__)


class _ProfileShadows:
    """The decision observer of one profile: forwards to its plugins in shadow mode."""

    def __init__(self) -> None:
        self.shadows: list[Shadow] = []

    def on_node_chosen(self, attempt: Attempt, row: int, scores: NodeScores) -> None:
        """Forward the choice; an error in that does not affect the cycle."""
        for shadow in self.shadows:
            try:
                shadow.on_node_chosen(attempt, row, scores)
            except Exception:
                log.exception("not followed in shadow pod=%s", attempt.pod.key)

    def on_no_node(self, attempt: Attempt, diagnosis: Diagnosis, room: PostFilterResult) -> None:
        """Forward the failure; an error in that does not affect the cycle."""
        for shadow in self.shadows:
            try:
                shadow.on_no_node(attempt, diagnosis, room)
            except Exception:
                log.exception("not followed in shadow pod=%s", attempt.pod.key)


class Shadows:
    """The plugins in shadow mode by profile; `tell_done` sends CycleDone."""

    def __init__(self, tell_done: Callable[..., Awaitable[None]]) -> None:
        self._tell_done = tell_done
        self._by_profile: dict[str, _ProfileShadows] = {}
        self._leaving: list[tuple[str, Shadow]] = []

    def enter(self, plugin: SidecarPlugin, framework: Framework, enabled: EnabledPlugins) -> None:
        """Start following that profile's attempts with the plugin."""
        decision_observers = self._by_profile.setdefault(framework.profile_name, _ProfileShadows())
        decision_observers.shadows.append(Shadow(plugin, enabled, self._tell_done))
        if decision_observers not in framework.decision_observers:
            framework.decision_observers.append(decision_observers)

    def leave(self, plugin: SidecarPlugin, framework: Framework) -> None:
        """Stop following attempts; Unreserve is still called for what it reserved."""
        decision_observers = self._by_profile.get(framework.profile_name)
        if decision_observers is None:
            return
        for shadow in [each for each in decision_observers.shadows if each.plugin is plugin]:
            decision_observers.shadows.remove(shadow)
            self._leaving.append((framework.profile_name, shadow))
        if not decision_observers.shadows and decision_observers in framework.decision_observers:
            framework.decision_observers.remove(decision_observers)

    def has(self, plugin: SidecarPlugin, profile: str) -> bool:
        """Whether the plugin is in shadow mode in that profile."""
        decision_observers = self._by_profile.get(profile)
        return decision_observers is not None and any(
            each.plugin is plugin for each in decision_observers.shadows
        )

    def report(self, name: str) -> dict[str, dict[str, Any]]:
        """The counts of that plugin's comparisons, by profile."""
        return {
            profile: shadow.tally.report()
            for profile, decision_observers in self._by_profile.items()
            for shadow in decision_observers.shadows
            if shadow.plugin.name == name
        }

    def ending(self, record: CycleRecord) -> None:
        """The attempt has ended; its record is about to be read."""
        for shadow in self._of(record.profile):
            shadow.ending(record)

    def ended(self, record: CycleRecord) -> frozenset[str]:
        """Forward the outcome of the attempt; returns the plugins that get CycleDone here."""
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
        """End all of them."""
        for profile in self._by_profile:
            for shadow in self._of(profile):
                shadow.close()
