"""Filter and Score of a plugin in shadow mode, for one generation: called and validated as in a cycle.

Every failure is raised: failure policies are for plugins that take part. An answer about a later
generation is discarded: by then the pod itself may be on a node.

Source: docs/protocol.md "Shadow".
"""

from collections.abc import Iterator

import msgspec
import numpy as np

from berth.evaluation.caching.answer_columns import BOTH, SCORES, VERDICTS, RowAnswers
from berth.framework.attempts.cycle_state import CycleState
from berth.framework.interface import ReasonCodes, Scores
from berth.framework.status import Status
from berth.objects.pods.pod import Pod
from berth.out_of_tree.calls import Caller
from berth.out_of_tree.points.node_questions import NodeQuestion
from berth.snapshot.columns.growing import every_row
from berth_plugin_proto import scheduling_pb2


class ShadowOpinion(msgspec.Struct):
    """Codes, and raw scores if there are any. Shapes: codes (n,); raw int64 (n,)."""

    codes: ReasonCodes
    reasons: tuple[Status, ...] = ()
    raw: Scores | None = None
    normalization: int = scheduling_pb2.NORMALIZATION_NONE


class ShadowQuestion(msgspec.Struct, frozen=True):
    """The question about all `n` nodes of a generation, in the cycle of a pod."""

    caller: Caller
    n: int
    generation: int
    filters: bool
    scores: bool

    async def ask(self, state: CycleState, pod: Pod) -> ShadowOpinion | None:
        """The plugin's answer; None where it is about a later generation.

        Raises: SidecarError.
        """
        call = self.caller.head(state, pod)
        if call.generation != self.generation:
            return None
        opinion = ShadowOpinion(np.zeros(self.n, dtype=np.uint8))
        for part in self._parts():
            question = NodeQuestion(self.caller, part, every_row(self.n), self.n, self.generation)
            found = await question.ask(call, state, lambda *_: None)
            if found.generation != self.generation:
                return None
            if found.failure is not None:
                raise found.failure
            if found.codes is not None:
                opinion.codes, opinion.reasons = found.codes, found.reasons
            if found.normalization is not None:
                opinion.raw, opinion.normalization = found.raw, found.normalization
        return opinion

    def _parts(self) -> Iterator[RowAnswers]:
        """The calls to make, in this order."""
        if self.filters and self.scores and not self.caller.connection.capabilities.score_needs_feasible:
            yield BOTH
            return
        if self.filters:
            yield VERDICTS
        if self.scores:
            yield SCORES
