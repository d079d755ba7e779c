"""Observers of a profile's scheduling decisions, which cannot change them: shadow plugins."""

from typing import Protocol

from berth.framework.attempts.attempt import Attempt
from berth.framework.attempts.diagnosis import Diagnosis
from berth.framework.interface import PostFilterResult
from berth.framework.node_scores import NodeScores


class DecisionObserver(Protocol):
    """Called at each decision, before the pod is assumed; must be cheap and must not raise."""

    def on_node_chosen(self, attempt: Attempt, row: int, scores: NodeScores) -> None:
        """The node in that row was selected.

        Rows of `scores` with a negative total are not feasible. The arrays belong to the cycle and change in
        later ones: copy what is to be kept.
        """

    def on_no_node(self, attempt: Attempt, diagnosis: Diagnosis, room: PostFilterResult) -> None:
        """No node fits, and PostFilter has returned that result. The diagnosis belongs to the cycle, too."""
