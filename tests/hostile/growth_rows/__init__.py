"""The rows of the growth table: every field that may repeat, by the kind that has it."""

from tests.hostile.growth_rows import (
    answers,
    devices,
    groups,
    nodes,
    pods,
    selectors,
    shared_devices,
    storage,
)

ROWS = [
    *pods.ROWS,
    *nodes.ROWS,
    *selectors.ROWS,
    *storage.ROWS,
    *devices.ROWS,
    *shared_devices.ROWS,
    *groups.ROWS,
    *answers.ROWS,
]

__all__ = ["ROWS"]
