"""Whether a pod may preempt at all.

Source: pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go PodEligibleToPreemptOthers
(Kubernetes v1.36).
"""

from berth.framework.attempts.diagnosis import Diagnosis
from berth.framework.status import Code
from berth.objects.pods.pod import Pod
from berth.snapshot.snapshot import Snapshot

DISRUPTION_TARGET = "DisruptionTarget"
PREEMPTION_BY_SCHEDULER = "PreemptionByScheduler"

NEVER = "not eligible due to preemptionPolicy=Never."
VICTIMS_LEAVING = "not eligible due to a terminating pod on the nominated node."


def why_not_eligible(pod: Pod, nodes: Snapshot, diagnosis: Diagnosis, promised: str = "") -> str:
    """The reason that keeps the pod from preempting, empty if there is none.

    `promised` is a node that it is nominated to, though that has not been written yet, or has not come back.
    """
    nominated = pod.nominated_node_name or promised
    if pod.spec.preemption_policy == "Never":
        return NEVER
    if not nominated:
        return ""
    row = nodes.row_of.get(nominated)
    if row is None or diagnosis.node_status(row).code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
        return ""
    leaving = (info.pod for info in nodes.pods[row].values() if info.pod.priority < pod.priority)
    return VICTIMS_LEAVING if any(leaves_for_another(victim) for victim in leaving) else ""


def leaves_for_another(pod: Pod) -> bool:
    """Whether the pod is terminating because of a preemption; only its first such condition counts."""
    if not pod.terminating:
        return False
    condition = next((c for c in pod.status.conditions if c.type == DISRUPTION_TARGET), None)
    return (
        condition is not None and condition.status == "True" and condition.reason == PREEMPTION_BY_SCHEDULER
    )
