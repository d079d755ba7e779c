"""FilterScore calls: the request about rows, and the decoded codes and scores by row.

Source: proto/berth/plugin/v1/scheduling.proto; docs/protocol.md "Scheduling calls".
"""

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import msgspec
import numpy as np

from berth.evaluation.caching.answer_columns import (
    BOTH,
    SCORES,
    VERDICTS,
    AnsweredRows,
    RowAnswers,
    TooManyReasonsError,
)
from berth.framework.attempts.cycle_state import CycleState
from berth.framework.interface import ReasonCodes, Scores
from berth.framework.status import Status
from berth.out_of_tree.calls import Caller
from berth.out_of_tree.errors import CallFailedError, LateError, ProtocolError, SidecarError
from berth.out_of_tree.packing import candidates_of, scores_of, status_of, succeeded, verdicts_of
from berth.out_of_tree.transport.sent_call import SentCall
from berth.snapshot.columns.growing import Rows
from berth_plugin_proto import common_pb2, scheduling_pb2

P = ParamSpec("P")
T = TypeVar("T")

_CALLS = {
    BOTH: ("FilterScore", scheduling_pb2.FilterScoreRequest),
    VERDICTS: ("Filter", scheduling_pb2.FilterRequest),
    SCORES: ("Score", scheduling_pb2.ScoreRequest),
}


class FilterScoreAnswer(AnsweredRows):
    """A response; `failure` is the error of the scores, where the verdicts are valid."""

    failure: SidecarError | None = None
    generation: int = 0
    """The generation of the plugin's state that it is about."""


class NodeQuestion(msgspec.Struct):
    """What to ask a plugin about some rows, of `n` in all."""

    caller: Caller
    part: RowAnswers
    rows: Rows
    n: int
    generation: int | None = None
    """The only generation that an answer may be about; one about a later one is not read. None: any."""
    within: Rows | None = None
    """The rows among the entries of the answer; None where there is an entry for each row that is asked."""

    async def ask(
        self,
        call: common_pb2.Call,
        state: CycleState,
        take: Callable[[FilterScoreAnswer, Rows], None],
    ) -> FilterScoreAnswer:
        """The response, after `take` stored it. Raises: SidecarError."""
        return await self.send(call, state, take)

    async def read(
        self,
        sent: SentCall[FilterScoreAnswer],
        call: common_pb2.Call,
        state: CycleState,
        take: Callable[[FilterScoreAnswer, Rows], None],
        *,
        missable: bool,
    ) -> FilterScoreAnswer:
        """Await the response to that call of `send`.

        Where scores are `missable`, a plugin that fails a combined call is called again for its verdicts
        alone: the scores may have failed it. After a deadline it is not: no time is left.

        Raises: SidecarError.
        """
        try:
            return await sent
        except CallFailedError as error:
            if self.part is not BOTH or not missable or isinstance(error, LateError):
                raise
            alone = NodeQuestion(self.caller, VERDICTS, self.rows, self.n)
            try:
                found = await alone.ask(call, state, take)
            except SidecarError:
                raise error from None
            found.failure = error
            return found

    def send(
        self, call: common_pb2.Call, state: CycleState, take: Callable[[FilterScoreAnswer, Rows], None]
    ) -> SentCall[FilterScoreAnswer]:
        """Send the request; `take` stores the response when it is awaited."""
        listed = self.caller.connection.capabilities.listed_candidates
        candidates = candidates_of(self.rows, self.n, listed=listed)
        if candidates is not None and not candidates.HasField("indices"):
            self.within = self.rows
        name, message = _CALLS[self.part]
        request = message(call=call, candidates=candidates)

        def read(response: Any) -> FilterScoreAnswer:
            found = self._found(request, response)
            taken_in(self.caller.plugin, take, found, self.rows)
            return found

        return self.caller.ask(name, request, state, read)

    @property
    def _entries(self) -> int:
        """The length of the response's vectors."""
        return self.rows.size if self.within is None else self.n

    def _found(self, request: Any, response: Any) -> FilterScoreAnswer:
        first = response.filter if self.part is BOTH else response
        found = FilterScoreAnswer(generation=first.generation)
        status = None if self.part is SCORES else status_of(self.caller.plugin, first.status)
        self.caller.check_generation(request, first.generation)
        if self.generation not in (None, first.generation):
            return found
        if status is not None:
            self._read_verdicts(first, status, found)
        if self.part is BOTH:
            self._read_both(response, found)
        elif self.part is SCORES:
            self._read_scores(response, found)
        return found

    def _read_verdicts(
        self, response: scheduling_pb2.FilterResponse, status: Status, found: FilterScoreAnswer
    ) -> None:
        plugin = self.caller.plugin
        if status.rejected:
            found.codes, found.reasons = np.ones(self.rows.size, dtype=np.uint8), (status,)
            return
        if status.skip:
            found.codes = np.zeros(self.rows.size, dtype=np.uint8)
            return
        succeeded(plugin, "Filter", status)
        if not response.HasField("verdicts"):
            raise ProtocolError(plugin, "Filter says Success and gives no verdicts")
        codes, found.reasons = verdicts_of(plugin, response.verdicts, self._entries, self.within)
        found.codes = codes if self.within is None else codes[self.within]

    def _read_both(self, response: scheduling_pb2.FilterScoreResponse, found: FilterScoreAnswer) -> None:
        """Decode both; invalid scores leave the verdicts valid."""
        assert found.codes is not None, "verdicts come with them"
        if response.HasField("score"):
            try:
                self._read_scores(response.score, found)
            except SidecarError as error:
                found.failure = error
        elif _all_turned_down(found.codes) or response.filter.status.code == common_pb2.CODE_SKIP:
            found.raw = self._no_opinion()
        else:
            text = "FilterScore let nodes pass and did not score them"
            found.failure = ProtocolError(self.caller.plugin, text)

    def _read_scores(self, response: scheduling_pb2.ScoreResponse, found: FilterScoreAnswer) -> None:
        plugin = self.caller.plugin
        status = status_of(plugin, response.status)
        if status.skip:
            found.raw = self._no_opinion()
            return
        succeeded(plugin, "Score", status)
        scores = response.scores
        raw = scores_of(plugin, scores, self._entries)
        found.raw = raw if self.within is None else raw[self.within]
        found.normalization = scores.normalization

    def _no_opinion(self) -> Scores:
        return np.zeros(self.rows.size, dtype=np.int64)


def _all_turned_down(codes: ReasonCodes) -> bool:
    return int(np.count_nonzero(codes)) == codes.size


def taken_in(plugin: str, take: Callable[P, T], *answer: P.args, **options: P.kwargs) -> T:
    """Store a response in the columns. Raises: ProtocolError where these would have too many reasons."""
    try:
        return take(*answer, **options)
    except TooManyReasonsError as error:
        raise ProtocolError(plugin, str(error)) from None
