"""What all event handlers have in common: they can be followed by a watch, and start move passes."""

from collections.abc import Callable
from typing import Any, Protocol

from berth.event_handlers.errors import FollowUpError
from berth.framework.clock import Clock
from berth.framework.cluster_event import ClusterEvent
from berth.queue.scheduling_queue import SchedulingQueue

EventHandled = Callable[[str, float], None]
"""(event label, seconds): event_handling_duration_seconds."""


def ignore_duration(event: str, duration_seconds: float) -> None:
    """No-op metrics."""
    del event, duration_seconds


class ResourceHandler(Protocol):
    """What the event handlers of one kind offer to a watch."""

    synced: bool

    def on_add(self, obj: Any, /) -> None:
        """An object is new."""

    def on_update(self, old: Any, new: Any, /) -> None:
        """An object changed."""

    def on_delete(self, obj: Any, /) -> None:
        """An object is gone."""

    def on_synced(self) -> None:
        """The first list was handled in full."""


class SyncedHandler:
    """Takes note that the first list was handled."""

    def __init__(self) -> None:
        self.synced = False

    def on_synced(self) -> None:
        """The first list was handled in full."""
        self.synced = True


class MovingHandler(SyncedHandler):
    """Retries pods that an event may help, and says how long that took."""

    def __init__(self, queue: SchedulingQueue, clock: Clock, handled: EventHandled) -> None:
        super().__init__()
        self._queue = queue
        self._clock = clock
        self._handled = handled

    def _move(self, event: ClusterEvent, old: Any, new: Any, started: float) -> None:
        self._follow_up(self._queue.move_all, event, old, new)
        self._handled(event.label, self._clock.monotonic() - started)

    def _follow_up(self, step: Callable[..., object], *arguments: Any) -> None:
        """Do what comes after an object was taken in. Raises: FollowUpError."""
        try:
            step(*arguments)
        except Exception as error:
            raise FollowUpError(f"{type(error).__name__}: {error}") from error

    def _move_each(self, events: list[ClusterEvent], old: Any, new: Any, started: float) -> None:
        """A move pass for each event; each is charged with what came before the first."""
        before = self._clock.monotonic() - started
        for event in events:
            self._move(event, old, new, self._clock.monotonic() - before)
