"""The contract of plugins that plan a whole pod group at once, in place of one pod after the other.

    one by one (the start) -> plan -> each step tried by the engine -> the better of both is carried out

A plan is a proposal: it counts only if every Filter, Reserve and Permit plugin accepts each of its steps.
Source: docs/decisions/0033-joint-placement.md.
"""

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple, Protocol

import msgspec

from berth.framework.interface import Plugin
from berth.framework.node_scores import NodeScores
from berth.objects.pods.pod import Pod
from berth.snapshot.pod_info import PodInfo
from berth.snapshot.snapshot import Snapshot


class GroupPlan(msgspec.Struct, frozen=True):
    """The node of each pod by UID, in the order in which the pods are placed.

    The cycle state of a pod whose group goes by a plan holds it.
    """

    node_of: Mapping[str, str]


class TriedPlan(NamedTuple):
    """What came of trying a plan: the larger the worth, the better.

    The worth is whether the group goes, how many pods of each priority, the highest first, have a node, and
    the sum of the scores that these nodes had as the pods were placed. The plan is what was placed, in the
    order in which that was possible.
    """

    worth: tuple[bool, tuple[int, ...], int]
    plan: GroupPlan


class PlanningGround(Protocol):
    """What a planner may ask of the engine; what it places is taken back when it is done."""

    @property
    def nodes(self) -> Snapshot:
        """The snapshot of the cycle, with what was placed."""

    @property
    def seconds_left(self) -> float:
        """How long a solver may take, as the last guard behind bounds that are counts."""

    @property
    def attempts(self) -> int:
        """How often a pod was tried for plans: less for a plan that begins as the one before it."""

    async def scores(self, pod: Pod) -> NodeScores | None:
        """The nodes that the pod fits on now and the total score of each; None where it fits on none.

        Raises: PluginError where a plugin fails.
        """

    def leave_out(self, fit_nowhere: AbstractSet[str], followers: AbstractSet[str]) -> None:
        """Shorten trials: pods that no plan places are not tried, and only followers are tried again.

        A follower is a pod that others of the group may have to come before. Both are UIDs.
        """

    async def tried(self, plan: GroupPlan) -> TriedPlan | None:
        """What comes of the plan; a pod that it does not name goes where it scores highest.

        None where a plugin fails, or where there is no time left to try it.
        """

    async def place(self, pods: Iterable[PodInfo]) -> None:
        """Count the pods on the nodes that they name."""

    async def take_back(self) -> None:
        """Take back all that was placed."""


class PodGroupPlanPlugin(Plugin):
    """Says where the pods of a group go, all at once."""

    @property
    @abstractmethod
    def max_pods(self) -> int:
        """Groups of more pods are placed one by one."""

    @abstractmethod
    async def plan(self, pods: Sequence[Pod], start: TriedPlan, ground: PlanningGround) -> TriedPlan | None:
        """The best plan that was tried on the ground; None where none beats the start.

        `pods` are in the order in which they are tried one by one; `start` is what came of that. The same
        input gives the same plan.
        """
