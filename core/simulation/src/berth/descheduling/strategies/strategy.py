"""What a strategy is: it proposes pods, and judges the nodes that the engine chose for them."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

import msgspec

from berth.config.descheduling.policy import ALL_NAMESPACES, Namespaces, PolicySelector
from berth.config.descheduling.policy_file import compiled
from berth.descheduling.load.load import Loads
from berth.descheduling.pod_facts import NO_FACTS, PodFacts
from berth.descheduling.simulated_cluster import SimulatedCluster
from berth.descheduling.waiting_units import WaitingUnit
from berth.framework.pluralize import pluralize
from berth.objects.pods.pod import Pod


class EvictionCandidate(NamedTuple):
    """Pods that stand badly, which move together or not at all, and what is wrong with them."""

    pods: tuple[Pod, ...]
    found: str
    needs_place: bool = True
    """False for pods that no longer run: nothing has to be found for them."""
    may_return: bool = False
    """Whether the same node will do, as for a pod that is only too old."""
    for_unit: WaitingUnit | None = None
    """What has to get room by it, or nothing moves."""
    why_not: str = ""
    """Why there is nothing to move."""

    def beside_cleared(self, nodes: tuple[str, ...]) -> tuple[str, ...]:
        """Those of equally good nodes that a pod is assumed to go to.

        Where room is made for what waits, and chance decides between nodes, it is none that is cleared.
        """
        cleared = {pod.node_name for pod in self.pods} if self.for_unit is not None else set()
        return tuple(node for node in nodes if node not in cleared) or nodes


class EvictionProposal(NamedTuple):
    """The pods that stand badly, in the order in which they are to be tried; where there are none, why."""

    candidates: Sequence[EvictionCandidate]
    why_none: str = ""
    failed: bool = False
    """Whether there is none because what the strategy goes by could not be had."""


class Judgement(NamedTuple):
    """Whether a node is better for the pod, and what it gains, or why not."""

    better: bool
    text: str


Judge = Callable[[str], Judgement]
"""Judges a node, by its name."""


class Scene(msgspec.Struct, frozen=True):
    """What strategies look at. `sources` are the nodes that pods may be taken from.

    `stays` are the UIDs of moved pods. `taken` counts them by strategy and node, `given` by strategy
    and new node. `moved` has each as it stood, one that waited without a node, with its new node.
    """

    simulated: SimulatedCluster
    facts: Mapping[str, PodFacts]
    ended: Mapping[str, Pod]
    sources: frozenset[str]
    loads: Loads = msgspec.field(default_factory=dict)
    moved: list[tuple[Pod, str]] = msgspec.field(default_factory=list)
    given: Counter[tuple[str, str]] = msgspec.field(default_factory=Counter)
    may_go: Callable[[Pod], bool] = lambda pod: True  # noqa: ARG005
    """Whether the profile, budgets and limits let a pod be evicted."""
    stays: set[str] = msgspec.field(default_factory=set)
    taken: Counter[tuple[str, str]] = msgspec.field(default_factory=Counter)

    @property
    def now(self) -> datetime:
        """The time."""
        return self.simulated.now

    def pods(self) -> list[Pod]:
        """The pods that may move, those of low priority first; a pod moves once in a plan."""
        found = [
            pod
            for pod in self.simulated.pods.values()
            if pod.node_name in self.sources
            and pod.node_name in self.simulated.nodes
            and pod.uid not in self.stays
        ]
        return sorted(found, key=_order)

    def ended_pods(self) -> list[Pod]:
        """The pods that ended on such nodes and have not been taken away."""
        found = [
            pod for pod in self.ended.values() if pod.node_name in self.sources and pod.uid not in self.stays
        ]
        return sorted(found, key=_order)

    def facts_of(self, pod: Pod) -> PodFacts:
        """The pod's facts; one that was made anew has none."""
        return NO_FACTS if pod.uid in self.stays else self.facts.get(pod.key, NO_FACTS)


class Strategy(Protocol):
    """One strategy with its arguments."""

    async def candidates(self, scene: Scene) -> EvictionProposal:
        """The pods that stand badly, or why none does."""

    async def judge_of(self, scene: Scene, pod: Pod) -> Judge:
        """Which nodes are better for the pod, which is taken out on trial.

        The scheduler may choose between many nodes: the engine is asked here, once for all of them. The judge
        is asked of the pod's own node only where the candidate may return to it.
        """


class Filter:
    """Which pods the strategy looks at: those of some namespaces, those that a selector matches."""

    def __init__(
        self, namespaces: Namespaces = ALL_NAMESPACES, selector: PolicySelector | None = None
    ) -> None:
        self._namespaces = namespaces
        self._selector = None if selector is None else compiled(selector)

    def has(self, pod: Pod) -> bool:
        """Whether the strategy looks at the pod."""
        chosen = self._selector is None or self._selector.matches(pod.labels)
        return chosen and self._namespaces.has(pod.namespace)

    def among(self, pods: Sequence[Pod]) -> list[Pod]:
        """Those of the pods."""
        return [pod for pod in pods if self.has(pod)]


def proposed(found: Sequence[EvictionCandidate], looked_at: Sequence[Pod], what: str) -> EvictionProposal:
    """What was found among these pods; `what` ends the sentence "none of 12 pods ..." where nothing was."""
    if found:
        return EvictionProposal(found)
    if not looked_at:
        return EvictionProposal(
            (), "no pod is left to look at by nodeSelector, namespaces, labelSelector and moves before"
        )
    return EvictionProposal((), f"none of {pluralize(len(looked_at), 'pod')} {what}")


def _order(pod: Pod) -> tuple[int, str]:
    return pod.priority, pod.key
