"""Trying plans, and single moves from the best of them: for what no program of numbers of pods can say.

Affinity that only scores, and scores that are relative to those of other nodes, depend on who is where.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from berth.framework.group_plans import GroupPlan, PlanningGround, TriedPlan
from berth.plugins.joint_placement.model import Kind
from berth.snapshot.snapshot import Snapshot

ALTERNATIVES = 4
"""A pod is moved to so many of the nodes that score highest for its kind."""


@dataclass(slots=True)
class Trials:
    """The best plan so far; `steps_left` is how many pods may still be placed to try others."""

    ground: PlanningGround
    best: TriedPlan
    steps_left: int

    async def tries(self, plan: GroupPlan) -> bool:
        """Try the plan; whether it is the best one now."""
        self.steps_left -= len(plan.node_of)
        tried = await self.ground.tried(plan) if self.steps_left >= 0 else None
        if tried is None or tried.worth <= self.best.worth:
            return False
        self.best = tried
        return True

    async def improve(self, kinds: Sequence[Kind]) -> None:
        """Take the first move that gains, and look for the next one, until none gains or no step is left."""
        gained = True
        while gained and self.steps_left > 0:
            gained = False
            for plan in _moves(self.best.plan, kinds, self.ground.nodes):
                gained = await self.tries(plan)
                if gained or self.steps_left <= 0:
                    break


def _moves(plan: GroupPlan, kinds: Sequence[Kind], nodes: Snapshot) -> Iterator[GroupPlan]:
    """The plan with one pod on another node, or in place of another; of pods alike the last one moves."""
    for kind in kinds:
        order = (-kind.scores).argsort(kind="stable")[:ALTERNATIVES]
        names = [nodes.names[row] for row in kind.rows[order].tolist()]
        for here, uid in _last_on(plan, kind).items():
            for name in names:
                if name != here:
                    yield GroupPlan({**plan.node_of, uid: name})
    waiting = [next((p.uid for p in kind.pods if p.uid not in plan.node_of), "") for kind in kinds]
    for kind in kinds:
        for here, uid in _last_on(plan, kind).items():
            rest = {other: name for other, name in plan.node_of.items() if other != uid}
            for other in waiting:
                if other:
                    yield GroupPlan({**rest, other: here})


def _last_on(plan: GroupPlan, kind: Kind) -> dict[str, str]:
    """The last of the kind's pods on each node, by the node's name."""
    uids = {pod.uid for pod in kind.pods}
    return {name: uid for uid, name in plan.node_of.items() if uid in uids}
