"""Whether a Scheduler's descheduler makes its plans, as the CronJob's status has it.

no CronJob --> NotDeployed    suspended --> Suspended    no time yet --> Scheduled
the last one at work --> Running    ended well --> Succeeded    otherwise --> JobFailed
"""

from berth.operator.kinds import Json
from berth.operator.reporting.conditions import DESCHEDULING, StatusCondition


def descheduling(chosen: Json | None, cron_job: Json | None) -> list[StatusCondition]:
    """Give the condition, none where spec.descheduler is not there."""
    return [] if chosen is None else [_condition(cron_job)]


def _condition(cron_job: Json | None) -> StatusCondition:
    if cron_job is None:
        return StatusCondition(DESCHEDULING, False, "NotDeployed", "there is no CronJob yet")
    name, spec, status = cron_job["metadata"]["name"], cron_job["spec"], cron_job.get("status") or {}
    if spec.get("suspend"):
        return StatusCondition(
            DESCHEDULING, False, "Suspended", "spec.descheduler.suspend is true; no plans are made"
        )
    last, well = status.get("lastScheduleTime", ""), status.get("lastSuccessfulTime", "")
    if not last:
        text = f"no plan has been due yet, by the schedule {spec['schedule']}"
        return StatusCondition(DESCHEDULING, True, "Scheduled", text)
    if status.get("active"):
        return StatusCondition(
            DESCHEDULING, True, "Running", f"the plan of {last} is being made or carried out"
        )
    # Both are of RFC 3339 in UTC and of whole seconds: they compare as texts.
    if well >= last:
        return StatusCondition(
            DESCHEDULING, True, "Succeeded", f"the plan of {last} was made and carried out"
        )
    text = (
        f"the Job of {last} did not succeed: the cluster or metrics could not be read, or evictions were "
        f"refused; see the log of the latest Job of CronJob {name}"
    )
    return StatusCondition(DESCHEDULING, False, "JobFailed", text)
