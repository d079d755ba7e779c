"""What is planned for, and what a plan is: places, and the pods that leave first."""

from collections.abc import Sequence
from dataclasses import dataclass

from berth_queues.amounts import Amounts, add
from berth_queues.budgets import Budgets
from berth_queues.device_claims import DeviceClaims
from berth_queues.entitlement import Entitlement
from berth_queues.groups import Groups
from berth_queues.ledger import Holding, Ledger
from berth_queues.promises import Place, Promises


@dataclass(frozen=True, slots=True)
class Wanted:
    """A pod that is to be placed."""

    uid: str
    requests: Amounts


@dataclass(frozen=True, slots=True)
class Plan:
    """A place for each pod, and the pods that leave first; none if room is on its way already."""

    places: dict[str, Place]
    victims: tuple[Holding, ...]
    violations: int
    entitled: bool
    """Whether the queue is within what it is entitled to then."""


@dataclass(frozen=True, slots=True)
class Claimant:
    """The pods that are planned for: of one queue, with the priority of the most important one."""

    key: object
    queue: str
    priority: int
    pods: Sequence[Wanted]

    @property
    def asked(self) -> dict[str, int]:
        """Return what all of them want together."""
        total: dict[str, int] = {}
        for pod in self.pods:
            add(total, pod.requests)
        return total


@dataclass
class PlanState:
    """What plans are made of; pods from `spared_priority` on stay."""

    ledger: Ledger
    promises: Promises
    budgets: Budgets
    groups: Groups
    devices: DeviceClaims
    entitlement: Entitlement
    spared_priority: int
