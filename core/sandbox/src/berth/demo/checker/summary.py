"""What a run came to: how full the cluster is, who bound what, and why the rest did not fit."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import msgspec

from berth.demo.checker.documents import Document, has_ended, node_facts, node_of
from berth.demo.checker.quantity import UnreadableError
from berth.demo.checker.requests import pod_requests

_FIT_ERROR = re.compile(r"0/[0-9]+ nodes are available:(?P<reasons>.*?)(?:\.(?: .*)?)?", re.DOTALL)
_ENTRY = re.compile(r"(?P<nodes>[0-9]+) (?P<reason>.*)", re.DOTALL)


@dataclass
class ResourceUse:
    """How much of one resource the cluster offers and its pods take, in the resource's base unit."""

    offered: Fraction = Fraction(0)
    taken: Fraction = Fraction(0)

    @property
    def ratio(self) -> float:
        """Give the taken part, 0.0 to 1.0; 0.0 where nothing is offered."""
        return float(self.taken / self.offered) if self.offered else 0.0


@dataclass
class ReasonCount:
    """Why pods did not fit: how many pods said so, and of how many nodes in all."""

    pods: int = 0
    nodes: int = 0


@dataclass
class PodCounts:
    """What became of the pods of one scheduler.

    `unschedulable` were tried and turned down; `waiting` have no verdict, gated pods included.
    """

    bound: int = 0
    unschedulable: int = 0
    waiting: int = 0
    reasons: dict[str, ReasonCount] = field(default_factory=dict)

    @property
    def pods(self) -> int:
        """Count them all."""
        return self.bound + self.unschedulable + self.waiting


class ClusterSummary(msgspec.Struct, frozen=True):
    """Resources by name, outcomes by schedulerName, and the reasons of all of them together."""

    resources: Mapping[str, ResourceUse]
    profiles: Mapping[str, PodCounts]
    reasons: Mapping[str, ReasonCount]


def summary(nodes: Sequence[Document], pods: Sequence[Document]) -> ClusterSummary:
    """Sum up one state of the API; documents that cannot be read count for nothing (`check` names them)."""
    profiles: dict[str, PodCounts] = defaultdict(PodCounts)
    for pod in pods:
        scheduler = (pod.get("spec") or {}).get("schedulerName") or "default-scheduler"
        _count(pod, profiles[scheduler])
    return ClusterSummary(
        _resources(nodes, pods), dict(sorted(profiles.items())), _together(profiles.values())
    )


def reasons_of(message: str) -> dict[str, int]:
    """Take a PodScheduled message apart: nodes by reason; a message about the pod alone counts no node.

    What preemption had to say, after the reasons, is left out.
    """
    match = _FIT_ERROR.fullmatch(message)
    text = match["reasons"].strip() if match else message.strip()
    found: dict[str, int] = {}
    for part in re.split(r", (?=[0-9]+ )", text) if match else [text]:
        entry = _ENTRY.fullmatch(part) if match else None
        reason = entry["reason"] if entry else part
        if reason:
            found[reason] = found.get(reason, 0) + (int(entry["nodes"]) if entry else 0)
    return found


def _count(pod: Document, outcome: PodCounts) -> None:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    verdict: Document = next((c for c in conditions if c.get("type") == "PodScheduled"), {})
    if node_of(pod):
        outcome.bound += 1
    elif verdict.get("status") == "False" and verdict.get("reason") != "SchedulingGated":
        outcome.unschedulable += 1
        for text, nodes in reasons_of(str(verdict.get("message") or "")).items():
            reason = outcome.reasons.setdefault(text, ReasonCount())
            reason.pods += 1
            reason.nodes += nodes
    else:
        outcome.waiting += 1


def _together(outcomes: Iterable[PodCounts]) -> dict[str, ReasonCount]:
    total: dict[str, ReasonCount] = defaultdict(ReasonCount)
    for outcome in outcomes:
        for text, reason in outcome.reasons.items():
            total[text].pods += reason.pods
            total[text].nodes += reason.nodes
    return dict(sorted(total.items(), key=lambda item: (-item[1].pods, item[0])))


def _resources(nodes: Sequence[Document], pods: Sequence[Document]) -> dict[str, ResourceUse]:
    uses: dict[str, ResourceUse] = defaultdict(ResourceUse)
    for node in nodes:
        try:
            for name, amount in node_facts(node).allocatable.items():
                uses[name].offered += amount
        except UnreadableError:
            continue
    for pod in pods:
        if not node_of(pod) or has_ended(pod):
            continue
        uses["pods"].taken += 1
        try:
            for name, amount in pod_requests(pod).items():
                uses[name].taken += amount
        except UnreadableError:
            continue
    return dict(sorted(uses.items()))
