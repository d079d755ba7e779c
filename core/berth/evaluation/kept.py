"""What the plugins of one cycle answered about all nodes, kept for equal pods to come.

Filled by `filtering.py` and `scoring.py` as they go; the cycle makes a memory of it (`remembered.py`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from berth.framework.cycle_state import CycleState
from berth.framework.interface import ReasonCodes, Scores


@dataclass(slots=True)
class Kept:
    """Answers by plugin.

    Shapes: codes and raw (n,), as the plugins gave them: some are views of columns that change.
    """

    codes: dict[str, ReasonCodes] = field(default_factory=dict)
    raw: dict[str, Scores] = field(default_factory=dict)
    whole: bool = False
    """Whether no node was left out from the start."""
    scored: bool = False
    """Whether plugins were asked for scores at all."""
    values: dict[str, Mapping[Any, Any]] = field(default_factory=dict)
    """What each plugin left in the cycle's state before nodes were looked at, or scored."""

    def note_values(self, plugin: str, state: CycleState, before: int) -> None:
        """Keep what the plugin left in a state that had so many values before it."""
        if len(state) > before:
            self.values[plugin] = {**self.values.get(plugin, {}), **state.written_since(before)}
