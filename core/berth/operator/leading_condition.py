"""Whether one of a Scheduler's pods leads, as they report it; none where they do not elect a leader.

one leads --> Leading    all stand by --> Standby    else a lease can't be written --> LeaseNotAcquired
"""

from collections.abc import Sequence
from typing import Final

from berth.operator.conditions import LEADING, Condition, pod_conditions
from berth.operator.kinds import Json

OF_POD: Final = "berth.dev/Leading"
"""The condition by which a scheduler reports it on its pod."""
_TROUBLES: Final = ("LeaseNotAcquired", "LeaseNotRenewed")


def leading(pods: Sequence[Json]) -> list[Condition]:
    """Give the condition, none where no pod has said anything yet."""
    reports = [
        (pod["metadata"]["name"], one) for pod in pods for one in pod_conditions(pod) if one["type"] == OF_POD
    ]
    if not reports:
        return []
    holds = any(one["status"] == "True" for _, one in reports)
    for name, one in reports:
        if one.get("reason") in _TROUBLES:
            return [Condition(LEADING, holds, one["reason"], f"pod {name}: {one.get('message', '')}")]
    if holds:
        return [Condition(LEADING, True, "Leading", "a pod of this Scheduler leads")]
    return [Condition(LEADING, False, "Standby", reports[0][1].get("message", ""))]
