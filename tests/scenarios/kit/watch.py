"""The watch between the API server's stand-in and the scheduler's handlers."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from berth.objects.pods.pod import Pod

FINISHED = frozenset({"Succeeded", "Failed"})


def never(_kind):
    """No kind lags."""
    return False


@dataclass
class Watch:
    """Carries changes to the handler of each kind, in order; held back, it is a watch that lags.

    Kinds without a handler are not watched. `lags` says whether changes of a kind are held back.
    """

    handlers: dict[type, Any] = field(default_factory=dict)
    lags: Callable[[type], bool] = never
    _seen: dict[tuple[type, str], Any] = field(default_factory=dict)
    _waiting: deque = field(default_factory=deque)

    def tell(self, kind, key, new):
        """The object of that key is now `new`, None where it is gone."""
        self._waiting.append((kind, key, new))

    def deliver(self):
        """Hand over everything that waits and is not held back."""
        held = []
        while self._waiting:
            change = self._waiting.popleft()
            if self.lags(change[0]):
                held.append(change)
            else:
                self._hand_over(*change)
        self._waiting.extendleft(reversed(held))

    def hold(self, *kinds):
        """Lag from now on, with these kinds or with all."""
        self.lags = lambda kind: not kinds or kind in kinds

    def release(self):
        """Catch up."""
        self.lags = never
        self.deliver()

    def _hand_over(self, kind, key, new):
        old, handler = self._seen.pop((kind, key), None), self.handlers.get(kind)
        if handler is None:
            return
        if kind is Pod and new is not None and new.status.phase in FINISHED:
            # The field selector leaves finished pods out: their last state comes with a deletion.
            if old is not None:
                handler.on_delete(new)
            return
        if new is not None:
            self._seen[kind, key] = new
        if new is None and old is not None:
            handler.on_delete(old)
        elif new is not None and old is None:
            handler.on_add(new)
        elif new is not None:
            handler.on_update(old, new)
