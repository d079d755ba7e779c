"""Who is shown what a profile decides, and has no say in it."""

from typing import Protocol

from berth.framework.attempt import Attempt
from berth.framework.diagnosis import Diagnosis
from berth.framework.interface import PostFilterResult
from berth.framework.node_scores import NodeScores


class Witness(Protocol):
    """Sees choices as they are made, before anything comes of them; it must be cheap and must not raise."""

    def chose(self, attempt: Attempt, row: int, scores: NodeScores) -> None:
        """The pod goes to the node in that row.

        Rows of `scores` with a negative total are out of the question. The arrays are the cycle's own, and
        change with later ones: take a copy to keep them.
        """

    def found_none(self, attempt: Attempt, diagnosis: Diagnosis, room: PostFilterResult) -> None:
        """The pod fits nowhere, and that is what PostFilter plugins have done about it.

        The diagnosis' arrays are the cycle's own, too.
        """
