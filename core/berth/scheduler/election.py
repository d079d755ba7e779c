"""The lease of a scheduler: who campaigns for it, and what is told on it.

Source: spec/core.md 8.5; spec/config.md 15.3.
"""

from collections.abc import Callable

from berth.client.api import Api
from berth.client.events import EventRecorder, Reference
from berth.client.leases import LeaderElector, LeaseSettings, new_identity
from berth.config.loading import Loaded
from berth.config.types import LeaderElection
from berth.out_of_tree.conditions import Condition, Kind


def new_elector(
    api: Api,
    election: LeaderElection,
    announce: Callable[[str], None],
    may_hold: Callable[[], bool],
) -> LeaderElector | None:
    """The candidate for the lease, None where there is no election; `announce` is called with who won."""
    if not election.leader_elect:
        return None
    settings = LeaseSettings(
        election.resource_namespace,
        election.resource_name,
        election.lease_duration.seconds,
        election.renew_deadline.seconds,
        election.retry_period.seconds,
    )
    return LeaderElector(api, settings, new_identity(), announce=announce, may_hold=may_hold)


class LeaseEvents:
    """Events about the lease, which stands for all schedulers of that name."""

    def __init__(self, recorder: EventRecorder, loaded: Loaded) -> None:
        self._recorder = recorder
        self._controller = loaded.profiles[0].scheduler_name
        election = loaded.configuration.leader_election
        self._lease = Reference(
            "coordination.k8s.io/v1", "Lease", election.resource_namespace, election.resource_name
        )

    def announce(self, note: str) -> None:
        """Tell who leads."""
        self._tell(note, "Normal", "LeaderElection", "LeaderElection")

    def plugin_condition(self, plugin: str, condition: Condition) -> None:
        """Let users know when a plugin can be asked again, or no more."""
        if condition.kind in (Kind.READY, Kind.CIRCUIT_CLOSED):
            text = f"plugin {plugin}: {condition.kind} is {condition.holds}: {condition.reason}"
            note = f"{text}: {condition.message}" if condition.message else text
            reason = f"Plugin{'' if condition.holds else 'Not'}{condition.kind}"
            self._tell(note, "Normal" if condition.holds else "Warning", reason, plugin)

    def _tell(self, note: str, kind: str, reason: str, action: str) -> None:
        self._recorder.event(
            self._lease, controller=self._controller, type=kind, reason=reason, action=action, note=note
        )
