"""Extenders: webhooks that take part in scheduling after the plugins, for all profiles alike.

What the core asks of one, as the adapters provide it; `extending.py` does the asking.

Source: staging/src/k8s.io/kube-scheduler/framework/extender.go (Kubernetes v1.36).
"""

from collections.abc import Awaitable, Collection, Mapping, Sequence
from typing import Protocol

import msgspec

from berth.framework.attempts.attempt import Attempt
from berth.framework.attempts.cycle_state import CycleState
from berth.objects.node import Node
from berth.objects.pods.pod import Pod

EXTENDER = "Extender"
"""Who is to blame, in the queue's eyes, when extenders leave fewer nodes than they were given."""


class ExtenderVerdicts(msgspec.Struct, frozen=True):
    """The names of the nodes that pass, all of them among those asked about, and why others do not."""

    passed: Collection[str]
    failed: Mapping[str, str] = msgspec.field(default_factory=dict)
    unresolvable: Mapping[str, str] = msgspec.field(default_factory=dict)
    """What no removal of pods changes; counts more than `failed`."""


class Victims(msgspec.Struct, frozen=True):
    """The pods that would have to leave a node, and how many budgets that violates."""

    pods: tuple[Pod, ...]
    pdb_violations: int = 0


class Extender(Protocol):
    """One extender. Its methods raise whatever went wrong, with the text that users read."""

    @property
    def name(self) -> str:
        """Its URL prefix."""

    @property
    def ignorable(self) -> bool:
        """Whether its errors are passed over."""

    @property
    def weight(self) -> int:
        """What its scores are multiplied by."""

    @property
    def filters(self) -> bool:
        """Whether it can be asked to filter."""

    @property
    def prioritizes(self) -> bool:
        """Whether it can be asked for scores."""

    @property
    def preempts(self) -> bool:
        """Whether it has a say in who is evicted."""

    @property
    def binds(self) -> bool:
        """Whether it binds pods itself."""

    def interested(self, pod: Pod) -> bool:
        """Whether it is to be asked about this pod at all."""

    async def filter(self, attempt: Attempt, nodes: Sequence[Node]) -> ExtenderVerdicts:
        """Which of the nodes pass."""

    def prioritize(self, attempt: Attempt, nodes: Sequence[Node]) -> Awaitable[Mapping[str, int]]:
        """A score by node name; the question is on its way when this returns."""

    async def preempt(self, attempt: Attempt, victims: Mapping[str, Victims]) -> dict[str, Victims]:
        """The candidate nodes that are left, each with the pods to evict there."""

    async def bind(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Bind the pod; returning means that it is bound."""
