"""Plugins with timers as processes of their own: gangs that give up and come back, and use that decays.

Called by tests as `python timed_plugin.py CLASS [wall]`, with the address in BERTH_PLUGIN_ADDRESS. With
`wall` it does not announce the clock, and lives by the machine's time.
"""

import math
import sys
from dataclasses import dataclass

from berth_sdk import Code, Plugin, Status, Wait, serve

CLOSED = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("the gang backs off after it gave up",))
USED_UP = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("the namespace has used up its share",))


@dataclass(frozen=True)
class GangSettings:
    """How many pods a gang has, and how long it waits for them and then lets others go first."""

    size: int = 3
    patience_seconds: float = 600.0
    backoff_seconds: float = 1800.0


class Gang(Plugin):
    """Pods of a gang go on together, or give their places up and come back later."""

    name = "gang"
    arguments = GangSettings

    def __init__(self):
        self._waiting = {}
        self._closed = False
        self._giving_up = None

    def pre_enqueue(self, pod):
        del pod
        return CLOSED if self._closed else None

    def permit(self, pod, node):
        del node
        settings = self.arguments_of(pod)
        self._waiting[pod.uid] = pod
        if len(self._waiting) == settings.size:
            self._giving_up.cancel()
            self.requeue.allow([uid for uid in self._waiting if uid != pod.uid], "complete")
            self._waiting.clear()
            return None
        if len(self._waiting) == 1:
            self._giving_up = self.clock.after(settings.patience_seconds, lambda: self._give_up(settings))
        return Wait(10 * settings.patience_seconds)

    def _give_up(self, settings):
        self._closed = True
        self.requeue.reject(self._waiting, "incomplete")
        self._waiting.clear()
        self.clock.after(settings.backoff_seconds, self._open)

    def _open(self):
        self._closed = False
        self.requeue.all_rejected("the gang has backed off")


@dataclass(frozen=True)
class QuotaSettings:
    """How much a namespace may have used, and how soon half of that is forgotten."""

    limit: float = 2.0
    half_life_seconds: float = 6 * 3600.0


class Quota(Plugin):
    """Each placed pod counts as 1 at first, and as half of what it counted each half-life later."""

    name = "quota"
    arguments = QuotaSettings

    def __init__(self):
        self._used, self._at = 0.0, 0.0
        self._timer = None

    def _now_used(self, settings):
        now = self.clock.now()
        self._used *= 0.5 ** ((now - self._at) / settings.half_life_seconds)
        self._at = now
        return self._used

    def pre_filter(self, pod):
        settings = self.arguments_of(pod)
        used = self._now_used(settings)
        if used + 1 <= settings.limit + 1e-6:
            return None
        if self._timer is None:
            wait = settings.half_life_seconds * math.log2(used / (settings.limit - 1))
            self._timer = self.clock.after(wait, self._forgotten)
        return USED_UP

    def reserve(self, pod, node):
        del node
        self._now_used(self.arguments_of(pod))
        self._used += 1

    def _forgotten(self):
        self._timer = None
        self.requeue.all_rejected("the namespace's use has decayed")


if __name__ == "__main__":
    plugin = {"Gang": Gang, "Quota": Quota}[sys.argv[1]]()
    plugin.uses_clock = "wall" not in sys.argv
    serve(plugin, grace_seconds=0.2)
