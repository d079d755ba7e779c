"""Whether one of a Scheduler's pods leads, as they report it; none where they do not elect a leader.

one leads --> Leading    its pod ends --> HandOver, for no longer than a lease lasts --> Leading, Standby
all stand by --> Standby    a lease can't be written --> LeaseNotAcquired, LeaseNotRenewed
"""

from collections.abc import Callable, Sequence
from typing import Final

from berth.config.duration import parse_duration
from berth.operator.kinds import Json, SchedulerKey, key_of
from berth.operator.reporting.conditions import LEADING, StatusCondition, pod_conditions

OF_POD: Final = "berth.dev/Leading"
"""The condition by which a scheduler reports it on its pod."""
_TROUBLES: Final = ("LeaseNotAcquired", "LeaseNotRenewed")
_REPORTED_SECONDS: Final = 1.0
"""How long a pod may take until it reports what changed."""


class LeadingConditions:
    """The condition of each Scheduler, which holds on while one of its pods hands the lease over to another.

    `look_again` is called with a Scheduler and after how many seconds its condition may be another one
    although nothing of it changed.
    """

    def __init__(
        self, monotonic: Callable[[], float], look_again: Callable[[SchedulerKey, float], None]
    ) -> None:
        self._monotonic = monotonic
        self._look_again = look_again
        self._vacant_since: dict[SchedulerKey, float] = {}

    def condition(self, scheduler: Json, pods: Sequence[Json]) -> list[StatusCondition]:
        """Give the condition, none where no pod has said anything yet."""
        key, found = key_of(scheduler), leading(pods)
        if not scheduler["spec"].get("replicas", 1) or any(
            one.holds or one.reason in _TROUBLES for one in found
        ):
            self.forget(key)
            return found
        if key not in self._vacant_since and not _held(scheduler):
            return found
        since = self._vacant_since.setdefault(key, self._monotonic())
        seconds = _hand_over_seconds(scheduler)
        left = since + seconds - self._monotonic()
        if left <= 0:
            return found
        self._look_again(key, left)
        return [
            StatusCondition(
                LEADING, True, "HandOver", f"the pod that led ended; another one leads within {seconds:g} s"
            )
        ]

    def forget(self, key: SchedulerKey) -> None:
        """Forget a Scheduler that is gone, or whose lease is held."""
        self._vacant_since.pop(key, None)


def leading(pods: Sequence[Json]) -> list[StatusCondition]:
    """Give the condition by what the pods report, none where none has reported yet."""
    reports = [
        (pod["metadata"]["name"], one) for pod in pods for one in pod_conditions(pod) if one["type"] == OF_POD
    ]
    if not reports:
        return []
    holds = any(one["status"] == "True" for _, one in reports)
    for name, one in reports:
        if one.get("reason") in _TROUBLES:
            return [StatusCondition(LEADING, holds, one["reason"], f"pod {name}: {one.get('message', '')}")]
    if holds:
        return [StatusCondition(LEADING, True, "Leading", "a pod of this Scheduler leads")]
    return [StatusCondition(LEADING, False, "Standby", reports[0][1].get("message", ""))]


def _held(scheduler: Json) -> bool:
    written = (scheduler.get("status") or {}).get("conditions") or ()
    return any((one["type"], one["status"]) == (LEADING, "True") for one in written)


def _hand_over_seconds(scheduler: Json) -> float:
    """Give how long a hand-over may take: the lease runs out, a standby asks for it and reports that."""
    election = scheduler["spec"].get("leaderElection") or {}
    lasts, retry = election.get("leaseDuration", "15s"), election.get("retryPeriod", "2s")
    return parse_duration(lasts).seconds + 2 * parse_duration(retry).seconds + _REPORTED_SECONDS
