"""What plugins leave in a cycle's state, noted so that equal pods can be given the same."""

from typing import Any, TypeAlias

from berth.framework.cycle_state import CycleState

Written: TypeAlias = dict[str, dict[Any, Any]]
"""By plugin: the values that it wrote, by their keys."""


def note_written(written: Written, plugin: str, state: CycleState, before: int) -> None:
    """Note what the plugin wrote into a state that had so many values before it."""
    if len(state) > before:
        written.setdefault(plugin, {}).update(state.written_since(before))
