"""Waiting within a call: whatever has to wait has a task first.

A call over ttrpc is begun without one, since most need none (ttrpc.py). It goes on in a task from the point
on where it would wait; timeouts and the author's own waiting can't do without one.
"""

import asyncio
import types
from collections.abc import Generator


@types.coroutine
def in_task() -> Generator[None, None, None]:
    """Go on within a task, a new one where there is none."""
    if asyncio.current_task() is None:
        yield
