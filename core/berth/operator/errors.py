"""What can be wrong with a Scheduler, by the reason that its conditions will give.

PlanError
├── MissingPluginError          PluginNotFound: a SchedulerPlugin that it names is not there
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


class ConfigurationProblemError(PlanError):
    """Carries a line for each complaint."""

    reason = "InvalidConfiguration"

    def __init__(self, *lines: str) -> None:
        super().__init__("\n".join(lines))
