"""Schedulers that serve the same profile under different leases: both would schedule its pods."""

from collections.abc import Iterable

from berth.operator.conditions import Problem
from berth.operator.kinds import Json, Key, key_of
from berth.operator.rendering.names import lease


def rivalry(scheduler: Json, others: Iterable[Json]) -> Problem | None:
    """Give the profiles that other Schedulers serve, too, without taking turns with this one by a lease."""
    rivals = [one for one in others if key_of(one) != key_of(scheduler) and _compete(scheduler, one)]
    lines = [
        f"profile {name} is served by Scheduler {key_of(rival)}, too"
        for rival in sorted(rivals, key=key_of)
        for name in sorted(_profiles(scheduler) & _profiles(rival))
    ]
    if not lines:
        return None
    remedy = "remove it from one of them, or let both use one lease (spec.leaderElection)"
    return Problem("ProfileServedTwice", f"{'; '.join(lines)}; {remedy}")


def _compete(one: Json, other: Json) -> bool:
    if not all(_runs(each) for each in (one, other)):
        return False
    leases = _lease(one), _lease(other)
    return None in leases or leases[0] != leases[1]


def _runs(scheduler: Json) -> bool:
    gone = scheduler["metadata"].get("deletionTimestamp")
    return not gone and bool(scheduler["spec"].get("replicas", 1))


def _lease(scheduler: Json) -> Key | None:
    elects = (scheduler["spec"].get("leaderElection") or {}).get("leaderElect", True)
    return lease(scheduler) if elects else None


def _profiles(scheduler: Json) -> set[str]:
    return {profile["schedulerName"] for profile in scheduler["spec"]["profiles"]}
