"""What a scheduler counts, by the part that counts it; the defaults keep nothing."""

from collections.abc import Callable

import msgspec

from berth.binding.api_dispatcher import CallMetrics
from berth.event_handlers.handler import EventHandled, ignore_duration
from berth.framework.ports.claim_metrics import ClaimMetrics
from berth.pod_groups.pod_group_metrics import PodGroupMetrics
from berth.preemption.preemption_metrics import PreemptionMetrics
from berth.queue.queue_metrics import QueueMetrics


def _ignore_profile(profile: str) -> None:
    del profile


class CoreMetrics(msgspec.Struct, frozen=True, kw_only=True):
    """What the parts of a scheduler count with.

    `event_handled` observes the handling of a cluster event, by its label; `over_budget` counts a cycle of a
    profile that used more CPU than it may use.
    """

    queue: QueueMetrics = msgspec.field(default_factory=QueueMetrics)
    preemption: PreemptionMetrics = msgspec.field(default_factory=PreemptionMetrics)
    pod_groups: PodGroupMetrics = msgspec.field(default_factory=PodGroupMetrics)
    calls: CallMetrics = msgspec.field(default_factory=CallMetrics)
    claims: ClaimMetrics = msgspec.field(default_factory=ClaimMetrics)
    event_handled: EventHandled = ignore_duration
    over_budget: Callable[[str], None] = _ignore_profile
