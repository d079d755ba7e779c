"""Trying plans, and single moves from the best of them: for what no program of numbers of pods can say.

Affinity that only scores, and scores that are relative to those of other nodes, depend on who is where.
"""

from collections.abc import Iterator, Sequence

import msgspec

from berth.framework.group_plans import GroupPlan, PlanningGround, TriedPlan
from berth.plugins.joint_placement.model import PodKind
from berth.snapshot.snapshot import Snapshot

ALTERNATIVES = 4
"""A pod is moved to so many of the nodes that score highest for its kind."""


class PlanTrials(msgspec.Struct):
    """The best plan so far; no other is tried once pods were tried `max_attempts` times."""

    ground: PlanningGround
    best: TriedPlan
    max_attempts: int

    @property
    def over(self) -> bool:
        """Whether no other plan is tried."""
        return self.ground.attempts >= self.max_attempts

    async def tries(self, plan: GroupPlan) -> bool:
        """Try the plan; whether it is the best one now."""
        tried = None if self.over else await self.ground.tried(plan)
        if tried is None or tried.worth <= self.best.worth:
            return False
        self.best = tried
        return True

    async def improve(self, kinds: Sequence[PodKind]) -> None:
        """Take the first move that gains, and look for the next one, until none gains or it is over."""
        gained = True
        while gained and not self.over:
            gained = False
            for plan in _moves(self.best.plan, kinds, self.ground.nodes):
                gained = await self.tries(plan)
                if gained or self.over:
                    break


def _moves(plan: GroupPlan, kinds: Sequence[PodKind], nodes: Snapshot) -> Iterator[GroupPlan]:
    """The plan with one pod on another node, or in place of another; of pods alike the last one moves.

    The pod that moves comes last: the next plan begins with the same pods on the same nodes.
    """
    for kind in kinds:
        order = (-kind.scores).argsort(kind="stable")[:ALTERNATIVES]
        names = [nodes.names[row] for row in kind.rows[order].tolist()]
        for here, uid in _last_on(plan, kind).items():
            rest = _without(plan, uid)
            for name in names:
                if name != here:
                    yield GroupPlan({**rest, uid: name})
    waiting = [next((p.uid for p in kind.pods if p.uid not in plan.node_of), "") for kind in kinds]
    for kind in kinds:
        for here, uid in _last_on(plan, kind).items():
            rest = _without(plan, uid)
            for other in waiting:
                if other:
                    yield GroupPlan({**rest, other: here})


def _without(plan: GroupPlan, uid: str) -> dict[str, str]:
    return {other: name for other, name in plan.node_of.items() if other != uid}


def _last_on(plan: GroupPlan, kind: PodKind) -> dict[str, str]:
    """The last of the kind's pods on each node, by the node's name."""
    uids = {pod.uid for pod in kind.pods}
    return {name: uid for uid, name in plan.node_of.items() if uid in uids}
