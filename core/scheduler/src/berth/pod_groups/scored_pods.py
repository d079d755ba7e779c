"""The algorithm of rehearsals: a pod goes to its plan's node or to the best one, and its score is noted.

Unlike in a cycle that decides, all nodes are looked at, by a plan as well, and a node that is the only one
has a score, too: the sums over two rehearsals can be compared.
"""

import random

import msgspec

from berth.cycle.schedule_pod import Decision
from berth.evaluation.caching.cached_evaluation import CachedEvaluation
from berth.evaluation.caching.node_plugins import NodePlugins
from berth.evaluation.caching.top_scores import highest_of
from berth.evaluation.find_nodes import NodeSearch, Rotation
from berth.evaluation.points.extending import add_extender_scores
from berth.evaluation.select_host import drawn, score_nodes
from berth.framework.attempts.attempt import Attempt
from berth.framework.group_plans import GroupPlan
from berth.framework.node_scores import NodeScores
from berth.framework.runtime import Framework
from berth.framework.status import PluginError, Status, failed, unschedulable
from berth.pod_groups.group_algorithm import SchedulingContext

SEED = 0
NOT_THERE = unschedulable("pod does not fit on the node that its group's plan names")


class ScoredPods(msgspec.Struct, frozen=True):
    """Implements berth.cycle.schedule_pod.PodAlgorithm."""

    search: NodeSearch
    chance: random.Random
    plan: GroupPlan | None = None

    @classmethod
    def on(cls, ground: SchedulingContext) -> "ScoredPods":
        """For rehearsals on that ground; ties are drawn from a seed, so that rehearsals cost no chance."""
        return cls(NodeSearch(ground.nominator, Rotation(), exhaustive=True), random.Random(SEED))

    def by(self, plan: GroupPlan) -> "ScoredPods":
        """The same by a plan; ties are drawn as for any other plan."""
        return ScoredPods(self.search, random.Random(SEED), plan)

    async def decide(self, framework: Framework, attempt: Attempt) -> Decision:
        """The plan's node, or the best one for a pod that no plan names."""
        scores = await self.scores(framework, attempt)
        if isinstance(scores, Status):
            return Decision(scores)
        name = None if self.plan is None else self.plan.node_of.get(attempt.pod.uid)
        if name is None:
            _, places = highest_of(scores.totals)
            place = int(drawn(places, self.chance))
        else:
            there = (scores.rows == attempt.nodes.row_of.get(name, -1)).nonzero()[0]
            if not there.size:
                return Decision(NOT_THERE)
            place = int(there[0])
        attempt.record.score = int(scores.totals[place])
        return Decision(node_name=attempt.nodes.names[scores.rows[place]])

    async def scores(self, framework: Framework, attempt: Attempt) -> NodeScores | Status:
        """What each node scored that the pod fits on, or the status that says why it fits on none."""
        evaluation = CachedEvaluation(NodePlugins(framework.plugins))
        found = await self.search.find(framework, attempt, evaluation)
        if isinstance(found, Status):
            return found
        try:
            scores = await score_nodes(attempt, evaluation, found)
        except PluginError as error:
            return failed(error)
        if framework.extenders:
            await add_extender_scores(framework.extenders, attempt, scores)
        return scores
