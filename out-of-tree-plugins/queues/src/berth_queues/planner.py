"""Plans for pods of one queue: which way of making room is tried first.

The first of these that makes room:

    a pod of a queue   pods of queues that have more than they are entitled to, where it has less
                       less important pods of its own queue
                       both: of its own until it is within what it is entitled to, then of the others
    a pod in no queue  less important pods in no queue
"""

from collections.abc import Collection
from dataclasses import dataclass

from berth_queues.candidates import Candidates
from berth_queues.plan import Claimant, Plan, PlanState
from berth_queues.plan_search import Search


@dataclass
class Planner:
    """Plans on what is counted now; nothing of a plan stays counted."""

    state: PlanState
    reclaims: bool

    def plan(self, claimant: Claimant, candidates: Candidates, leaving: Collection[str] = ()) -> Plan | None:
        """Return the plan that costs least where pods may go to these nodes, None if there is none.

        Pods that are `leaving`, by UID, count as gone: they were evicted for the claimant before.
        """
        ways = ((False, True), (True, False), (True, True)) if self.reclaims else ((True, False),)
        with self.state.ledger.registry.simulated():
            for own, others in ways:
                with self.state.ledger.registry.simulated():
                    plan = Search(self.state, claimant, candidates, leaving, own=own, others=others).run()
                if plan is not None:
                    return plan
        return None
