"""The tasks that run for as long as the process does: watches, telling, following."""

import asyncio
from collections.abc import Coroutine
from typing import Any


class RunningTasks:
    """Starts tasks in a task group, and ends them all."""

    def __init__(self, group: asyncio.TaskGroup) -> None:
        self._group = group
        self._running: set[asyncio.Task[Any]] = set()

    def spawn(self, work: Coroutine[Any, Any, Any], name: str) -> "asyncio.Task[Any]":
        """Run it until it ends, or all are ended; an exception of it ends the process."""
        task = self._group.create_task(work, name=name)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    def cancel(self) -> None:
        """End what still runs."""
        for task in list(self._running):
            task.cancel()
