"""The condition of a group, whose type goes by release: how the owner of a group learns what came of it.

Source: pkg/scheduler/schedule_one_podgroup.go updatePodGroupCondition (Kubernetes v1.36).
"""

import logging
from datetime import UTC, datetime

import msgspec

from berth.framework.clock import Clock
from berth.framework.mirrors.group_trees import AnyGroup
from berth.framework.mirrors.listers import AssumeCache
from berth.framework.ports.background import Background
from berth.framework.ports.pod_group_writing import PodGroupWriter
from berth.objects.pod_groups import CompositePodGroup, PodGroup, PodGroupCondition
from berth.pod_groups.group_result import GroupResult
from berth.snapshot.pod_group_states import AnyKey, TreeKey

log = logging.getLogger(__name__)


class GroupConditions(msgspec.Struct, frozen=True):
    """Writes conditions beside the cycles; until the watch brings one back, it is taken as written."""

    groups: AssumeCache[PodGroup]
    composites: AssumeCache[CompositePodGroup]
    writer: PodGroupWriter
    background: Background
    clock: Clock
    type: str
    """Of a pod group's condition, as the release calls it."""
    type_of_trees: str
    """Of a CompositePodGroup's; empty where the release writes none."""

    def tell(self, key: AnyKey, result: GroupResult) -> None:
        """Write what the result says, if that is news; a group once scheduled stays so."""
        group, kind = self._found(key)
        if not kind:
            return
        if group is None:
            log.error("pod group not found, its condition is not written group=%s", key)
            return
        condition = changed_condition(kind, group, result, self.clock.wall())
        if condition is None:
            return
        if condition.status != "True":
            log.info(
                "pod group not scheduled group=%s reason=%s message=%s",
                key,
                condition.reason,
                condition.message,
            )
        updated = _with_condition(group, condition)
        if isinstance(updated, PodGroup):
            self.groups.assume(updated)
        else:
            self.composites.assume(updated)
        self.background.spawn(self._write(group, updated, condition), f"status of pod group {key}")

    def _found(self, key: AnyKey) -> tuple[AnyGroup | None, str]:
        """The group, and the type of its condition."""
        if isinstance(key, TreeKey):
            return self.composites.get(key.name, key.namespace), self.type_of_trees
        return self.groups.get(key.name, key.namespace), self.type

    async def _write(self, group: AnyGroup, updated: AnyGroup, condition: PodGroupCondition) -> None:
        try:
            await self.writer.write_condition(group, condition)
        except Exception as error:  # noqa: BLE001 - only the status is stale; the next attempt writes again
            if isinstance(updated, PodGroup):
                self.groups.restore([updated])
            else:
                self.composites.restore([updated])
            log.warning("pod group's status not written group=%s err=%s", group.key, error)


def changed_condition(
    condition_type: str, group: AnyGroup, result: GroupResult, now: float
) -> PodGroupCondition | None:
    """The condition to write; None where the group has it already, or has been scheduled before."""
    old = next((c for c in group.status.conditions if c.type == condition_type), None)
    new = _condition(condition_type, group, result, now)
    if old is None:
        return new
    if old.status == "True" and new.status != "True":
        return None
    if old.status == new.status:
        new = msgspec.structs.replace(new, last_transition_time=old.last_transition_time)
    return None if new == old else new


def _condition(condition_type: str, group: AnyGroup, result: GroupResult, now: float) -> PodGroupCondition:
    status = result.status
    reason = "Scheduled" if status.ok else "Unschedulable" if status.rejected else "SchedulerError"
    return PodGroupCondition(
        type=condition_type,
        status="True" if status.ok else "False",
        reason=reason,
        message=status.message,
        observed_generation=group.metadata.generation or None,
        last_transition_time=datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    )


def _with_condition(group: AnyGroup, condition: PodGroupCondition) -> AnyGroup:
    others = [c for c in group.status.conditions if c.type != condition.type]
    status = msgspec.structs.replace(group.status, conditions=(*others, condition))
    return msgspec.structs.replace(group, status=status)
