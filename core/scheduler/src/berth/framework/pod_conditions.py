"""What a condition changes in a pod's status.

Source: pkg/scheduler/framework/api_calls/pod_status_patch.go syncStatus (Kubernetes v1.36).
"""

from datetime import UTC, datetime

from berth.objects.pods.pod import POD_SCHEDULED, Pod, PodCondition


def held(pod: Pod, kind: str) -> PodCondition | None:
    """The pod's condition of that type, None where it has none."""
    return next((c for c in pod.status.conditions if c.type == kind), None)


def changes(pod: Pod, condition: PodCondition) -> bool:
    """Whether writing the condition would change more than its times."""
    old = held(pod, condition.type)
    return old is None or (old.status, old.reason, old.message) != (
        condition.status,
        condition.reason,
        condition.message,
    )


def status_changes(pod: Pod, condition: PodCondition | None, nominated_node_name: str | None) -> bool:
    """Whether the condition or the nomination, where they are given, would change anything."""
    if condition is not None and changes(pod, condition):
        return True
    return nominated_node_name is not None and nominated_node_name != pod.nominated_node_name


def unscheduled(pod: Pod, reason: str, message: str, now: float) -> PodCondition:
    """PodScheduled=False, for that reason. Units: now in seconds since the epoch."""
    return PodCondition(
        type=POD_SCHEDULED,
        status="False",
        reason=reason,
        message=message,
        last_transition_time=datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        observed_generation=pod.metadata.generation or None,
    )
