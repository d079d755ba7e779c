"""Why a pod's volumes cannot be mounted: the kubelet says it in events, and not in the pod's status."""

from collections.abc import Iterable

from berth.operator.kinds import Json, SchedulerKey

FAILED_MOUNT = "FailedMount"
_NAMES_THE_CAUSE = "MountVolume"
"""How a message begins that has the cause; others only count the volumes that are still missing."""


def about_pod(event: Json) -> SchedulerKey:
    """Give the pod that an event is about."""
    about = event.get("involvedObject") or {}
    return SchedulerKey(about.get("namespace", ""), about.get("name", ""))


def mount_failure(pod: Json, events: Iterable[Json]) -> str:
    """Give what the kubelet said last of a pod's volumes; nothing once a container of it has started."""
    if _has_started(pod):
        return ""
    uid = pod["metadata"].get("uid")
    found = [one for one in events if (one.get("involvedObject") or {}).get("uid") == uid]
    last = max(found, key=_urgency, default={})
    return str(last.get("message", ""))


def _has_started(pod: Json) -> bool:
    """Say whether a container runs or ran: all volumes are mounted before the first."""
    status = pod.get("status") or {}
    every = (*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ()))
    return any(
        {"running", "terminated"} & (one.get("state") or {}).keys() or one.get("lastState") for one in every
    )


def _urgency(event: Json) -> tuple[bool, str]:
    last = event.get("lastTimestamp") or event.get("eventTime") or event.get("firstTimestamp") or ""
    return str(event.get("message", "")).startswith(_NAMES_THE_CAUSE), str(last)
