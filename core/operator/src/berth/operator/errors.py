"""What can be wrong with a Scheduler, by the reason that its conditions will give.

PlanError
├── MissingPluginError          PluginNotFound: a SchedulerPlugin that it names is not there
├── ServedTwiceError            ProfileServedTwice: another scheduler serves a profile under another lease
├── NotControlledError          NotControlled: an object of a name that it needs is another's
│   └── ReservedNameError       the same of a name that is the operator's own
└── ConfigurationProblemError   InvalidConfiguration: a scheduler would not start with it
"""


class PlanError(Exception):
    """A Scheduler that cannot be rolled out as it is."""

    reason = ""


class MissingPluginError(PlanError):
    """Carries the names."""

    reason = "PluginNotFound"

    def __init__(self, *names: str) -> None:
        listed = ", ".join(names)
        super().__init__(
            f"no SchedulerPlugin {listed} in this namespace; create it, or remove it from spec.plugins"
        )


class ServedTwiceError(PlanError):
    """Carries who serves which profile, and what to do."""

    reason = "ProfileServedTwice"


class NotControlledError(PlanError):
    """Carries the object that is left as it is."""

    reason = "NotControlled"
    advice = (
        "is not controlled by this Scheduler, and is left as it is; delete or rename it, or give the "
        "Scheduler another name"
    )

    def __init__(self, kind: str, name: str) -> None:
        super().__init__(f"{kind} {name} is there, {self.advice}")
        self.kind = kind


class ReservedNameError(NotControlledError):
    """Carries the object that has the name of one of the operator's."""

    advice = "is not the operator's, and is left as it is; delete it: the operator needs the name"


class ConfigurationProblemError(PlanError):
    """Carries a line for each complaint."""

    reason = "InvalidConfiguration"

    def __init__(self, *lines: str) -> None:
        super().__init__("\n".join(lines))
