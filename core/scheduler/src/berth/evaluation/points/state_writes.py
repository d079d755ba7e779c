"""Records what plugins write into the CycleState, so that it can be copied for equal pods."""

from typing import Any, TypeAlias

from berth.framework.attempts.cycle_state import CycleState

StateWrites: TypeAlias = dict[str, dict[Any, Any]]
"""By plugin name: the values it wrote, by key."""


def record_writes(state_writes: StateWrites, plugin: str, state: CycleState, before: int) -> None:
    """Record what the plugin wrote into a state that had `before` values when it was called."""
    if len(state) > before:
        state_writes.setdefault(plugin, {}).update(state.written_since(before))
