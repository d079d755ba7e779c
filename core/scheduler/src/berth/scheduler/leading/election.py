"""The leases of a scheduler, one for each shard: who campaigns for them, and the events on them.

Source: client-go tools/leaderelection/leaderelection.go (Kubernetes v1.36).
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence

from berth.client.api import Api
from berth.client.events import EventRecorder, Reference
from berth.client.leases import LeaderElector, LeaseSettings, LeaseSpread
from berth.client.write_guard import WriteGuard
from berth.config.loading import LoadedConfig
from berth.config.types import LeaderElection
from berth.out_of_tree.connections.conditions import ConditionType, PluginCondition
from berth.scheduler.leading.campaign import Campaign
from berth.scheduler.leading.leaderships import lease_name
from berth.scheduler.loop.control_thread import ControlThread

_ANNOUNCED = frozenset({ConditionType.READY, ConditionType.CIRCUIT_CLOSED, ConditionType.ARGUMENTS_ACCEPTED})


class LeaseEvents:
    """Events about a shard's lease, which stands for all schedulers of that name."""

    def __init__(self, recorder: EventRecorder, loaded: LoadedConfig, shard: str) -> None:
        self._recorder = recorder
        self._controller = loaded.profiles[0].scheduler_name
        election = loaded.configuration.leader_election
        name = lease_name(election.resource_name, shard)
        self._lease = Reference("coordination.k8s.io/v1", "Lease", election.resource_namespace, name)

    def announce(self, note: str) -> None:
        """Tell who leads."""
        self._tell(note, "Normal", "LeaderElection", "LeaderElection", by_note=True)

    def trouble(self, why: str) -> None:
        """Say why the lease can't be acquired or renewed."""
        note = f"the lease was not acquired or renewed: {why}"
        self._tell(note, "Warning", "LeaseNotRenewed", "LeaderElection", by_note=True)

    def plugin_condition(self, plugin: str, condition: PluginCondition) -> None:
        """Let users know when a plugin can be asked again, or no more, and when it refuses arguments."""
        if condition.kind in _ANNOUNCED:
            text = f"plugin {plugin}: {condition.kind} is {condition.holds}: {condition.reason}"
            note = f"{text}: {condition.message}" if condition.message else text
            reason = f"Plugin{'' if condition.holds else 'Not'}{condition.kind}"
            self._tell(note, "Normal" if condition.holds else "Warning", reason, plugin)

    def _tell(self, note: str, kind: str, reason: str, action: str, *, by_note: bool = False) -> None:
        # Who leads, and why none does, are events apart; what a plugin says of itself is a series.
        self._recorder.event(
            self._lease,
            controller=self._controller,
            type=kind,
            reason=reason,
            action=action,
            note=note,
            by_note=by_note,
        )


def new_campaigns(
    api: Api,
    election: LeaderElection,
    events: Mapping[str, LeaseEvents],
    control: ControlThread,
    *,
    identity: str,
    annotations: Mapping[str, Callable[[], Mapping[str, str]]],
) -> dict[str, Campaign]:
    """The candidate for each shard's lease, run by the control thread; none where there is no election.

    They share an identity, and each knows which leases the others hold. The scheduling loop, which calls
    this, records the events. `annotations` are those of each shard's lease while it is held.
    """
    if not election.leader_elect:
        return {}
    loop, spread = asyncio.get_running_loop(), LeaseSpread()

    def campaign(shard: str) -> Campaign:
        def announce(note: str) -> None:
            loop.call_soon_threadsafe(events[shard].announce, note)

        def on_trouble(why: str) -> None:
            loop.call_soon_threadsafe(events[shard].trouble, why)

        elector = LeaderElector(
            api,
            _settings(election, shard),
            identity,
            announce=announce,
            on_trouble=on_trouble,
            may_hold=lambda: not control.turns.hangs(),
            spread=spread,
            annotations=annotations[shard],
        )
        return Campaign(elector, control)

    return {shard: campaign(shard) for shard in events}


def _settings(election: LeaderElection, shard: str) -> LeaseSettings:
    return LeaseSettings(
        election.resource_namespace,
        lease_name(election.resource_name, shard),
        election.lease_duration.seconds,
        election.renew_deadline.seconds,
        election.retry_period.seconds,
    )


def write_guard(campaigns: Sequence[Campaign]) -> WriteGuard:
    """The right to write: what is sent while its lease is fresh lands before that lease has run out.

    What belongs to no shard's term is written by who holds them all.
    """
    if not campaigns:
        return WriteGuard()
    lease = campaigns[0].settings
    return WriteGuard(
        lambda: all(campaign.is_fresh() for campaign in campaigns),
        landing_seconds=lease.duration - lease.renew_deadline,
    )
