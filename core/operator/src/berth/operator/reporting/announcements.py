"""Events and log lines of what changes about Schedulers: one when a state begins, one when it ends.

Called by: reconciler, with all conditions at each look; what was announced before is not announced again.
"""

import logging

from berth.client.events import EventRecorder, Reference
from berth.operator.kinds import VERSION, Json, key_of
from berth.operator.reporting.conditions import (
    ARGUMENTS_ACCEPTED,
    DEGRADED,
    KUBERNETES_TESTED,
    LEADING,
    StatusCondition,
)

log = logging.getLogger(__name__)

CONTROLLER = "berth-operator"
# Reasons of conditions that are false and need no attention.
_ORDINARY = frozenset(
    {
        "RolledOut",
        "Paused",
        "Starting",
        "NotDeployed",
        "ScaledToZero",
        "PluginNotReady",
        "Suspended",
        "Standby",
    }
)

# Conditions whose good state is no event of a new Scheduler.
_GOOD_IS_NO_NEWS = frozenset({DEGRADED, ARGUMENTS_ACCEPTED, LEADING, KUBERNETES_TESTED})


class Announcements:
    """Says what changes, as events of the object and in the operator's log."""

    def __init__(self, events: EventRecorder) -> None:
        self._events = events
        # By UID: the status in the mirror is behind, and is not written at all while the API server refuses.
        self._announced: dict[str, dict[str, StatusCondition]] = {}

    def conditions(self, kind: str, document: Json, found: list[StatusCondition]) -> None:
        """Say which conditions became others; bad ones as warnings."""
        uid = document["metadata"].get("uid", "")
        before = self._announced.get(uid)
        if before is None:
            before = dict(map(_written, (document.get("status") or {}).get("conditions") or ()))
        self._announced[uid] = {one.type: one for one in found}
        for one in found:
            old = before.get(one.type)
            bad = one.holds == (one.type == DEGRADED) and one.reason not in _ORDINARY
            if old is not None and _is_known(one, old, bad=bad):
                continue
            if old is None and not bad and one.type in _GOOD_IS_NO_NEWS:
                continue
            note = f"{one.type}={one.holds}: {one.message}" if one.message else f"{one.type}={one.holds}"
            self.say(kind, document, "Warning" if bad else "Normal", one.reason, note)

    def say(self, what: str, document: Json, kind: str, reason: str, note: str) -> None:
        """Make an event of an object, and log it."""
        self.event(what, document, kind, reason, note)
        level = logging.WARNING if kind == "Warning" else logging.INFO
        log.log(level, "event kind=%s object=%s reason=%s note=%s", what, key_of(document), reason, note)

    def event(self, what: str, document: Json, kind: str, reason: str, note: str) -> None:
        """Make an event of an object, without a line of the log."""
        key = key_of(document)
        about = Reference(VERSION, what, key.namespace, key.name, document["metadata"].get("uid", ""))
        self._events.event(
            about, controller=CONTROLLER, type=kind, reason=reason, action="Reconcile", note=note or reason
        )

    def keep_only(self, uids: set[str]) -> None:
        """Forget what was announced of objects that are gone."""
        for uid in self._announced.keys() - uids:
            del self._announced[uid]


def _written(condition: Json) -> tuple[str, StatusCondition]:
    kind, holds = condition["type"], condition["status"] == "True"
    return kind, StatusCondition(kind, holds, condition["reason"], condition.get("message", ""))


def _is_known(condition: StatusCondition, old: StatusCondition, *, bad: bool) -> bool:
    """Say whether the last event said this; of what is wrong the cause counts, too."""
    same = (old.holds, old.reason) == (condition.holds, condition.reason)
    return same and (not bad or old.message == condition.message)
