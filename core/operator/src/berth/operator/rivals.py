"""Schedulers that serve one profile under different leases: both would schedule its pods.

So the newcomer waits. A Scheduler holds a profile from when its Deployment has it (annotation
`berth.dev/profiles`), so that no restart of anything changes who waits. Of two that both hold it, or that
neither does, the one that was created later waits.
"""

import json
from collections.abc import Callable, Iterable

from berth.operator.errors import ServedTwiceError
from berth.operator.kinds import Json, SchedulerKey, key_of
from berth.operator.rendering.names import lease
from berth.operator.rendering.plan import PROFILES

Deployments = Callable[[SchedulerKey], Json | None]


def yields_to(scheduler: Json, others: Iterable[Json], deployment: Deployments) -> ServedTwiceError | None:
    """Say for whom a Scheduler, which holds a profile of theirs, has to stop; None where it need not.

    Raises: ServedTwiceError where its spec may not be rolled out before another one gives a profile up.
    """
    if not _runs(scheduler):
        return None
    held = _held(scheduler, deployment)
    waits, stops = [], []
    for rival in sorted((one for one in others if _compete(scheduler, one)), key=_age):
        holds = _held(rival, deployment)
        wanted = _profiles(rival)
        older = _age(rival) < _age(scheduler)
        for name in sorted(_profiles(scheduler) & (wanted | holds)):
            if name in held and name in holds:
                if older and name in wanted:
                    stops.append((name, rival))
            elif name in holds or (older and name not in held):
                waits.append((name, rival))
    if waits:
        raise _served_twice(waits)
    return _served_twice(stops) if stops else None


def _served_twice(found: list[tuple[str, Json]]) -> ServedTwiceError:
    lines = [
        f"profile {name} is served by Scheduler {key_of(rival)}, which was first "
        f"(created {rival['metadata'].get('creationTimestamp')})"
        for name, rival in found
    ]
    return ServedTwiceError(
        f"{'; '.join(lines)}: this one waits; remove the profile from one of them, or let both use one lease "
        "(spec.leaderElection)"
    )


def _age(scheduler: Json) -> tuple[str, SchedulerKey]:
    """Order by time of creation; what came in the same second by name."""
    return scheduler["metadata"].get("creationTimestamp", ""), key_of(scheduler)


def _compete(one: Json, other: Json) -> bool:
    if key_of(one) == key_of(other) or not _runs(other):
        return False
    leases = _lease(one), _lease(other)
    return None in leases or leases[0] != leases[1]


def _runs(scheduler: Json) -> bool:
    gone = scheduler["metadata"].get("deletionTimestamp")
    return not gone and bool(scheduler["spec"].get("replicas", 1))


def _lease(scheduler: Json) -> SchedulerKey | None:
    elects = (scheduler["spec"].get("leaderElection") or {}).get("leaderElect", True)
    return lease(scheduler) if elects else None


def _profiles(scheduler: Json) -> set[str]:
    return {profile["schedulerName"] for profile in scheduler["spec"]["profiles"]}


def _held(scheduler: Json, deployment: Deployments) -> set[str]:
    """Give the profiles that pods of a Scheduler serve: those of the spec where nothing else is written."""
    found = deployment(key_of(scheduler))
    if found is None or not found["spec"].get("replicas", 1):
        return set()
    written = (found["metadata"].get("annotations") or {}).get(PROFILES)
    try:
        return set(json.loads(written)) if written else _profiles(scheduler)
    except (ValueError, TypeError):  # someone's edit, which is changed back
        return _profiles(scheduler)
