"""What can be wrong with a Scheduler, by the reason that its conditions will give.

PlanError
├── MissingPluginError          PluginNotFound: a SchedulerPlugin that it names is not there
├── ServedTwiceError            ProfileServedTwice: kube-scheduler schedules the same pods under another lease
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
    """Carries the profile, and who holds kube-scheduler's lease."""

    reason = "ProfileServedTwice"

    def __init__(self, profile: str, holder: str) -> None:
        super().__init__(
            f"profile {profile} is served by kube-scheduler, too: {holder} holds the lease "
            "kube-system/kube-scheduler; stop it, or share its lease, so that one leads at a time: set "
            "spec.leaderElection.resourceName to kube-scheduler and resourceNamespace to kube-system"
        )


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
