"""The lease of a scheduler: who campaigns for it, and what is told on it.

Source: spec/core.md 8.5; spec/config.md 15.3.
"""

import asyncio

from berth.client.api import Api
from berth.client.events import EventRecorder, Reference
from berth.client.leases import LeaderElector, LeaseSettings, new_identity
from berth.client.write_guard import WriteGuard
from berth.config.loading import Loaded
from berth.config.types import LeaderElection
from berth.out_of_tree.conditions import Condition, Kind
from berth.scheduler.campaign import Campaign
from berth.scheduler.control_thread import ControlThread


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


def new_campaign(
    api: Api, election: LeaderElection, events: LeaseEvents, control: ControlThread
) -> Campaign | None:
    """The candidate for the lease, run by the control thread; None where there is no election.

    The scheduling loop, which calls this, records its events.
    """
    if not election.leader_elect:
        return None
    loop = asyncio.get_running_loop()

    def announce(note: str) -> None:
        loop.call_soon_threadsafe(events.announce, note)

    settings = LeaseSettings(
        election.resource_namespace,
        election.resource_name,
        election.lease_duration.seconds,
        election.renew_deadline.seconds,
        election.retry_period.seconds,
    )
    elector = LeaderElector(
        api,
        settings,
        new_identity(),
        announce=announce,
        may_hold=lambda: not control.turns.hangs(),
    )
    return Campaign(elector, control)


def write_guard(campaign: Campaign | None) -> WriteGuard:
    """The right to write: what is sent while the lease is fresh lands before the lease has run out."""
    if campaign is None:
        return WriteGuard()
    lease = campaign.settings
    return WriteGuard(campaign.is_fresh, landing_seconds=lease.duration - lease.renew_deadline)
