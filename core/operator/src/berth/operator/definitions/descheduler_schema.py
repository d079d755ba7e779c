"""Of a Scheduler's spec the field `descheduler`: plans by the clock, and the evictions that they ask for."""

from berth.operator.definitions.schema import (
    TEXT_LENGTH,
    Schema,
    duration,
    fields,
    flag,
    free,
    integer,
    listed,
    resources,
    rule,
    text,
)

MAX_NAME = 34
"""Of a Scheduler with a descheduler: names of CronJobs have no more than 52 characters."""
MAX_POLICY_PROFILES = 100
_MONTHS = "JAN|FEB|MAR|APR|MAY|JUN|JUL|AUG|SEP|OCT|NOV|DEC"
_DAYS = "SUN|MON|TUE|WED|THU|FRI|SAT"
_FIELDS = (
    "[0-5]?[0-9]",
    "[01]?[0-9]|2[0-3]",
    "0?[1-9]|[12][0-9]|3[01]",
    f"0?[1-9]|1[0-2]|(?i:{_MONTHS})",
    f"[0-6]|(?i:{_DAYS})",
)
_MACROS = "hourly|daily|midnight|weekly|monthly|yearly|annually"


def descheduler() -> Schema:
    """Give the field's schema."""
    policy = fields(
        {
            "profiles": listed(
                free(),
                "The policy's profiles, in the form that the descheduler takes.",
                most=MAX_POLICY_PROFILES,
                minItems=1,
            )
        },
        "A DeschedulerPolicy of descheduler/v1alpha2; its apiVersion and kind may be left out.",
        required=("profiles",),
        x__kubernetes__preserve__unknown__fields=True,
    )
    return fields(
        {
            "policy": policy,
            "schedule": text(
                "When plans are made, in the form of a CronJob's schedule.",
                longest=128,
                rules=[_of_cron()],
                default="*/30 * * * *",
            ),
            "timeZone": text(
                "The time zone of the schedule, such as Europe/Berlin; the control plane's own if not given.",
                shortest=1,
            ),
            "suspend": flag("Whether no plans are made until this is false again.", default=False),
            "dryRun": flag(
                "Whether plans are only logged and nothing is evicted; with false they are carried out.",
                default=True,
            ),
            "maxEvictionsPerMinute": integer(
                "How many pods are evicted in a minute at most.", least=1, most=6000, default=20
            ),
            "patience": duration(
                "How long a pod may take to leave its node before the rest is left to the next plan.",
                default="5m",
            ),
            "activeDeadlineSeconds": integer(
                "Seconds after which a plan and its evictions are broken off.", least=60, default=7200
            ),
            "image": text(
                "The descheduler's image; the operator's choice if not given.",
                longest=TEXT_LENGTH,
                shortest=1,
            ),
            "resources": resources(
                "Resources of its container; requests of 100m CPU and 256Mi memory if not given."
            ),
        },
        "Evicts pods that would be better placed on other nodes, by a schedule; never if not given.",
        required=("policy",),
    )


def _of_cron() -> Schema:
    """Raises what the API server would only say of the CronJob: fields, their ranges, and macros."""
    each = [rf"(\*|\?|({values})(-({values}))?)(/[1-9][0-9]?)?" for values in _FIELDS]
    five = " +".join(f"({one}(,{one})*)" for one in each)
    return rule(
        f"self.matches(r'^(@({_MACROS})|{five})$')",
        "write five fields as for cron, such as */30 * * * * or 0 3 * * MON-FRI, or @hourly",
    )


def in_tree_plugins_alone() -> Schema:
    """The rule that a Scheduler with a descheduler has no sidecars."""
    return rule(
        "!has(self.descheduler) || (!has(self.plugins) || self.plugins.size() == 0) && "
        "(!has(self.extenders) || self.extenders.size() == 0)",
        "plans are made without sidecars and extenders, so they would not be this "
        "scheduler's; remove plugins and extenders, or descheduler",
        ".descheduler",
    )


def short_name() -> Schema:
    """The rule that the CronJob's name stays one."""
    return rule(
        f"!has(self.spec.descheduler) || self.metadata.name.size() <= {MAX_NAME}",
        f"with spec.descheduler the name has {MAX_NAME} characters or fewer, because a CronJob is called "
        "berth-NAME-descheduler; give it a shorter name",
    )
