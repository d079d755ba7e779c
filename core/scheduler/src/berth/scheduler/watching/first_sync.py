"""What has to be known before the first pod is tried: every watch has reported all its objects."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

from berth.client.watching.reflector import Reflector
from berth.scheduler.loop.event_loop import give_back_what_is_free, leave_alone_what_there_is
from berth.scheduler.loop.running_tasks import RunningTasks
from berth.scheduler.scheduler import Scheduler
from berth.telemetry.metrics.informer_metrics import Mirrored

log = logging.getLogger(__name__)

PLUGIN_GRACE_SECONDS = 2.0


class FirstSync:
    """Starts the watches and waits for them, once; `synced` is set once all have reported.

    `settle` gives sidecars that long to follow.
    """

    def __init__(
        self,
        mirrors: Sequence[Reflector[Any]],
        scheduler: Scheduler,
        settle: Callable[[float], Awaitable[None]],
        tasks: RunningTasks,
    ) -> None:
        self.synced = asyncio.Event()
        self._mirrors = mirrors
        self._scheduler = scheduler
        self._settle = settle
        self._tasks = tasks
        self._watching = False

    def check(self) -> str:
        """The health check `sched-handler-sync`: which kinds are not listed yet, and why, empty for none."""
        if self.synced.is_set():
            return ""
        missing = [each for each in self._mirrors if not each.synced.is_set()]
        kinds = ", ".join(f"{each.source.resource.plural}{_why(each)}" for each in missing)
        return f"handlers are not fully synchronized{f', not listed: {kinds}' if kinds else ''}"

    def errors(self) -> dict[str, float]:
        """How often the lists and watches of each kind broke off."""
        return {each.source.resource.plural: float(each.statistics.errors) for each in self._mirrors}

    def informers(self) -> list[Mirrored]:
        """The mirrors, as the metrics of informers show them."""
        return [
            Mirrored(each.source.resource, each.handling, partial(_version, each)) for each in self._mirrors
        ]

    async def run(self) -> None:
        """Return once everything is known, and the plugins had their time to follow."""
        log.info("Starting informers and waiting for sync...")
        self._watch()
        for reflector in self._mirrors:
            await reflector.synced.wait()
        log.info("Sync completed")
        leave_alone_what_there_is()
        give_back_what_is_free()
        # Plugins are sent the first generation before the first pod is tried.
        self._scheduler.cache.update_snapshot(self._scheduler.snapshot)
        self.synced.set()
        await self._settle(PLUGIN_GRACE_SECONDS)

    def _watch(self) -> None:
        """Start the watches; they stay where a wait for them was cut off by a lost lease."""
        for reflector in () if self._watching else self._mirrors:
            self._tasks.spawn(reflector.run(), f"watch of {reflector.source.resource.plural}")
        self._watching = True


def _why(mirror: Reflector[Any]) -> str:
    return f" ({mirror.last_error})" if mirror.last_error else ""


def _version(reflector: Reflector[Any]) -> str:
    return reflector.resource_version
