"""Pods that Permit plugins keep waiting, and how their waiting ends.

    waiting --allowed by every plugin--> success
       |----rejected, or one plugin's time is up--> unschedulable
       |----preempted--> error

The first outcome counts; it may be delivered before the binding cycle begins to wait for it.

Source: pkg/scheduler/framework/runtime/waiting_pods_map.go (Kubernetes v1.36).
"""

from collections.abc import Iterator, Mapping

from berth.framework.clock import Clock
from berth.framework.ports.background import Background, Promise, Timer
from berth.framework.status import SUCCESS, Status, failed, unschedulable
from berth.objects.pods.pod import Pod

NO_MESSAGES: Mapping[str, str] = {}


class WaitingPod:
    """One pod and the plugins it waits for, each with its own time limit.

    `messages` are the plugins' own words for what the pod waits for, `until` when each of them gives up.
    Units: seconds of the monotonic clock.
    """

    def __init__(
        self,
        pod: Pod,
        timeouts_seconds: Mapping[str, float],
        background: Background,
        *,
        since: float,
        messages: Mapping[str, str] = NO_MESSAGES,
    ) -> None:
        self.pod = pod
        self.since = since
        self.messages = messages
        self.until = {plugin: since + seconds for plugin, seconds in timeouts_seconds.items()}
        self._outcome: Promise = background.outcome()
        self._timers: dict[str, Timer] = {}
        for plugin, seconds in timeouts_seconds.items():
            message = f"rejected due to timeout after waiting {go_duration(seconds)} at plugin {plugin}"
            expire = _Expiry(self, plugin, message)
            self._timers[plugin] = background.call_later(seconds, expire)

    def pending_plugins(self) -> list[str]:
        """Whom the pod waits for."""
        return list(self._timers)

    def allow(self, plugin: str) -> None:
        """That plugin allows the pod; once all plugins have, the pod goes on."""
        timer = self._timers.pop(plugin, None)
        if timer is not None:
            timer.cancel()
        if not self._timers:
            self._outcome.set(SUCCESS)

    def reject(self, plugin: str, message: str) -> bool:
        """Turn the pod down; False where an outcome was already given."""
        return self._deliver(unschedulable(message).from_plugin(plugin))

    def preempt(self, plugin: str, message: str) -> bool:
        """Turn the pod down in favour of another; False where an outcome was already given."""
        return self._deliver(failed(message).from_plugin(plugin))

    async def outcome(self) -> Status:
        """How the waiting ended."""
        status: Status = await self._outcome
        return status

    def _deliver(self, status: Status) -> bool:
        if not self._outcome.set(status):
            return False
        for timer in self._timers.values():
            timer.cancel()
        return True


class _Expiry:
    """What happens when a plugin's time is up."""

    def __init__(self, waiting: WaitingPod, plugin: str, message: str) -> None:
        self._waiting, self._plugin, self._message = waiting, plugin, message

    def __call__(self) -> None:
        self._waiting.reject(self._plugin, self._message)


class WaitingPods:
    """All waiting pods of all profiles, by UID."""

    def __init__(self, background: Background, clock: Clock) -> None:
        self._background = background
        self._clock = clock
        self._by_uid: dict[str, WaitingPod] = {}

    def add(
        self, pod: Pod, timeouts_seconds: Mapping[str, float], messages: Mapping[str, str] = NO_MESSAGES
    ) -> None:
        """Let a pod wait; the clocks of its plugins start now."""
        self._by_uid[pod.uid] = WaitingPod(
            pod, timeouts_seconds, self._background, since=self._clock.monotonic(), messages=messages
        )

    def get(self, uid: str) -> WaitingPod | None:
        """The waiting pod of that UID."""
        return self._by_uid.get(uid)

    def __iter__(self) -> Iterator[WaitingPod]:
        return iter(list(self._by_uid.values()))

    def __len__(self) -> int:
        return len(self._by_uid)

    async def wait(self, uid: str) -> Status | None:
        """How the pod's waiting ends; None at once where it is not waiting."""
        waiting = self._by_uid.get(uid)
        if waiting is None:
            return None
        try:
            return await waiting.outcome()
        finally:
            self._by_uid.pop(uid, None)


def go_duration(seconds: float) -> str:
    """A duration as Go prints it: `15m0s`, `10s`, `1.5s`, `300ms`."""
    if seconds < 1:
        return f"{seconds * 1000:g}ms" if seconds else "0s"
    hours, rest = divmod(seconds, 3600)
    minutes, rest = divmod(rest, 60)
    text = f"{rest:g}s"
    if hours:
        return f"{int(hours)}h{int(minutes)}m{text}"
    return f"{int(minutes)}m{text}" if minutes else text
