"""A profile's arguments: those of capacity-scheduling and of fair-share before it, too."""

from dataclasses import dataclass, field
from typing import Annotated, Literal

from berth_sdk import Meta

SYSTEM_CLUSTER_CRITICAL = 2_000_000_000
"""The priority from which on pods belong to the cluster itself."""

Weight = Annotated[float, Meta(gt=0)]


@dataclass(frozen=True)
class Settings:
    """How the cluster is divided, and what is taken back."""

    reclaim: bool | Literal["Never", "Quota", "FairShare"] = "Quota"
    """Whether pods of queues that have too much are evicted: more than quota, or than their fair share."""
    sparedPriority: int = SYSTEM_CLUSTER_CRITICAL  # noqa: N815 - as profiles spell it
    """The priority from which on no pod is evicted."""
    weights: dict[str, Weight] = field(default_factory=dict)
    """By namespace, of queues that are no Queue object."""
    weight: Weight = 1.0
    """That of all other such namespaces."""
    first: Literal["share", "priority"] = "share"
    """Whether priorities of pods rule over shares, or only within a queue."""
    halfLifeSeconds: Annotated[float, Meta(ge=0)] = 0.0  # noqa: N815
    """Of use in the past, which lowers a queue's weight; 0: the past does not count."""
    pastStrength: Annotated[float, Meta(ge=0, le=10)] = 1.0  # noqa: N815
    """How much the past counts."""

    @property
    def reclaims(self) -> bool:
        """Return whether anything is taken back."""
        return self.reclaim not in {False, "Never"}

    @property
    def by_fair_share(self) -> bool:
        """Return whether a queue may have its fair share back, and not its quota alone."""
        return self.reclaim == "FairShare"
