"""What a scheduler counts, by the part that counts it; telemetry/metrics/registry.py implements all of it."""

from dataclasses import dataclass, field
from typing import Protocol

from berth.binding.api_dispatcher import CallMetrics, NoCallMetrics
from berth.event_handlers.handler import ignore_duration
from berth.framework.ports.claim_metrics import ClaimMetrics, NoClaimMetrics
from berth.pod_groups.pod_group_metrics import NoPodGroupMetrics, PodGroupMetrics
from berth.preemption.preemption_metrics import NoPreemptionMetrics, PreemptionMetrics
from berth.queue.queue_metrics import NoMetrics, QueueMetrics


class CoreMetrics(Protocol):
    """The metrics interface of a scheduler."""

    @property
    def queue(self) -> QueueMetrics:
        """Of the scheduling queue."""

    @property
    def preemption(self) -> PreemptionMetrics:
        """Of preemption."""

    @property
    def pod_groups(self) -> PodGroupMetrics:
        """Of pod-group cycles."""

    @property
    def calls(self) -> CallMetrics:
        """Of API calls that are made beside the cycles."""

    @property
    def claims(self) -> ClaimMetrics:
        """Of claimed volumes and devices."""

    def event_handled(self, event: str, seconds: float, /) -> None:
        """Observe the handling of a cluster event, by its label."""

    def over_budget(self, profile: str, /) -> None:
        """Count a cycle of that profile that used more CPU than it may."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NoCoreMetrics:
    """Metrics that count nothing, but where a part is given."""

    queue: QueueMetrics = field(default_factory=NoMetrics)
    preemption: PreemptionMetrics = field(default_factory=NoPreemptionMetrics)
    pod_groups: PodGroupMetrics = field(default_factory=NoPodGroupMetrics)
    calls: CallMetrics = field(default_factory=NoCallMetrics)
    claims: ClaimMetrics = field(default_factory=NoClaimMetrics)

    def event_handled(self, event: str, seconds: float) -> None:
        """Do nothing."""
        ignore_duration(event, seconds)

    def over_budget(self, profile: str) -> None:
        """Do nothing."""
        del profile
