"""What a plugin in shadow says of the nodes of one generation: asked as in a cycle, and read as strictly.

Whatever fails is raised here: a failure policy is for plugins whose word counts. An answer about a later
generation is none: by then the pod itself may stand on a node.

Source: docs/protocol.md "Shadow".
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from berth.framework.attempts.cycle_state import CycleState
from berth.framework.interface import ReasonCodes, Scores
from berth.framework.status import Status
from berth.objects.pods.pod import Pod
from berth.out_of_tree.calls import Caller
from berth.out_of_tree.errors import ProtocolError
from berth.out_of_tree.points.packing import scores_of, status_of, succeeded, verdicts_of
from berth_plugin_proto import common_pb2, scheduling_pb2

T = TypeVar("T")


@dataclass(slots=True)
class ShadowOpinion:
    """Verdicts, and raw scores if there are any. Shapes: codes (n,); raw int64 (n,)."""

    codes: ReasonCodes
    reasons: tuple[Status, ...] = ()
    raw: Scores | None = None
    normalization: int = scheduling_pb2.NORMALIZATION_NONE


@dataclass(frozen=True, slots=True)
class ShadowQuestion:
    """What to ask a plugin of all `n` nodes of a generation, in the cycle of a pod."""

    caller: Caller
    n: int
    generation: int
    filters: bool
    scores: bool

    async def ask(self, state: CycleState, pod: Pod) -> ShadowOpinion | None:
        """The plugin's opinion; None where it can no longer be had for that generation.

        Raises: SidecarError.
        """
        caller, call = self.caller, self.caller.head(state, pod)
        if call.generation != self.generation:
            return None
        together = self.filters and self.scores
        if together and not caller.connection.capabilities.score_needs_feasible:
            both = scheduling_pb2.FilterScoreRequest(call=call)
            read = self._if_current(both, lambda found: found.filter.generation, self._both)
            return await caller.ask("FilterScore", both, state, read)
        opinion: ShadowOpinion | None = ShadowOpinion(np.zeros(self.n, dtype=np.uint8))
        if self.filters:
            first = scheduling_pb2.FilterRequest(call=call)
            verdicts = self._if_current(first, lambda found: found.generation, self._verdicts)
            opinion = await caller.ask("Filter", first, state, verdicts)
        if self.scores and opinion is not None:
            then = scheduling_pb2.ScoreRequest(call=call)
            scored = self._if_current(then, lambda found: found.generation, self._scored)
            scores = await caller.ask("Score", then, state, scored)
            return None if scores is None else ShadowOpinion(opinion.codes, opinion.reasons, *scores)
        return opinion

    def _if_current(
        self, request: Any, generation: Callable[[Any], int], read: Callable[[Any], T]
    ) -> Callable[[Any], T | None]:
        """Read a response that is about the generation in question; None of one that is about a later one."""

        def of(response: Any) -> T | None:
            answered = generation(response)
            self.caller.check_generation(request, answered)
            return read(response) if answered == self.generation else None

        return of

    def _both(self, response: scheduling_pb2.FilterScoreResponse) -> ShadowOpinion:
        opinion = self._verdicts(response.filter)
        if response.HasField("score"):
            opinion.raw, opinion.normalization = self._scored(response.score)
        elif not opinion.codes.all() and response.filter.status.code != common_pb2.CODE_SKIP:
            raise ProtocolError(self.caller.plugin, "FilterScore let nodes pass and did not score them")
        return opinion

    def _verdicts(self, response: scheduling_pb2.FilterResponse) -> ShadowOpinion:
        plugin = self.caller.plugin
        status = status_of(plugin, response.status)
        if status.rejected:
            return ShadowOpinion(np.ones(self.n, dtype=np.uint8), (status,))
        if status.skip:
            return ShadowOpinion(np.zeros(self.n, dtype=np.uint8))
        succeeded(plugin, "Filter", status)
        if not response.HasField("verdicts"):
            raise ProtocolError(plugin, "Filter says Success and gives no verdicts")
        return ShadowOpinion(*verdicts_of(plugin, response.verdicts, self.n))

    def _scored(self, response: scheduling_pb2.ScoreResponse) -> tuple[Scores | None, int]:
        plugin = self.caller.plugin
        status = status_of(plugin, response.status)
        if status.skip:
            return None, scheduling_pb2.NORMALIZATION_NONE
        succeeded(plugin, "Score", status)
        return scores_of(plugin, response.scores, self.n), response.scores.normalization
