"""What a plugin asks of preemption, which stands on a floor above plugins and comes to them by their Handle.

Source: pkg/scheduler/framework/preemption/preemption.go Preempt (Kubernetes v1.36); docs/architecture.md on
floors.
"""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from berth.framework.attempts.cycle_state import CycleState
from berth.framework.attempts.diagnosis import Diagnosis
from berth.framework.interface import GroupTrial, PodGroupPostFilterResult, PostFilterResult
from berth.framework.mirrors.group_trees import AnyGroup
from berth.objects.pods.pod import Pod
from berth.snapshot.pod_info import PodInfo


class PreemptionRequest(msgspec.Struct, frozen=True):
    """A pod that fits nowhere, why, and in the name of which plugin others may have to go for it.

    Of all nodes where it might help, at least `min_candidate_nodes_percentage` percent, and at least
    `min_candidate_nodes_absolute`, are looked at before one of them is chosen.
    """

    plugin: str
    pod: Pod
    state: CycleState
    diagnosis: Diagnosis
    min_candidate_nodes_percentage: int = 10
    min_candidate_nodes_absolute: int = 100


class GroupPreemptionRequest(msgspec.Struct, frozen=True):
    """A pod group that fits nowhere, its pods that were tried, and the ground to try victims on."""

    plugin: str
    group: AnyGroup
    pods: Sequence[Pod]
    trial: GroupTrial


class Preemption(Protocol):
    """Makes room for pods by evicting others."""

    def attempted(self) -> None:
        """Count an attempt, whatever comes of it."""

    async def preempt(self, request: PreemptionRequest) -> PostFilterResult:
        """Nominate a node and have its victims evicted, or say why not."""

    async def preempt_for_group(self, request: GroupPreemptionRequest) -> PodGroupPostFilterResult:
        """Have victims evicted so that the whole group fits, or say why not."""

    async def evict_for_group(
        self, request: GroupPreemptionRequest, proposals: Sequence[Sequence[PodInfo]]
    ) -> PodGroupPostFilterResult:
        """Have the first of these sets of victims evicted without which the group fits.

        None of them is, unless all plugins let the group go then.
        """

    async def evict(
        self, request: PreemptionRequest, node_name: str, victims: Sequence[Pod]
    ) -> PostFilterResult:
        """Nominate that node and have these victims evicted, whom the plugin chose itself.

        None of them is, unless all other Filter plugins let the pod on the node without them.
        """

    def running(self, uid: str) -> bool:
        """Whether evictions for the pod or pod group of that UID are still on their way."""
