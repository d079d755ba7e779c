"""Asking a plugin in another process about nodes: a request, and what its answer says, row by row.

Source: proto/berth/plugin/v1/scheduling.proto; docs/protocol.md "Scheduling calls".
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from berth.framework.cycle_state import CycleState
from berth.framework.interface import ReasonCodes, Scores
from berth.out_of_tree.calls import Caller
from berth.out_of_tree.errors import ProtocolError, SidecarError
from berth.out_of_tree.points.node_answers import BOTH, SCORES, VERDICTS, Found, Part
from berth.out_of_tree.points.packing import bitmap, scores_of, status_of, succeeded, verdicts_of
from berth.snapshot.columns import Rows
from berth_plugin_proto import common_pb2, scheduling_pb2

_CALLS = {BOTH: "FilterScore", VERDICTS: "Filter", SCORES: "Score"}


@dataclass(frozen=True, slots=True)
class NodeQuestion:
    """What to ask a plugin about some rows, of `n` in all."""

    caller: Caller
    part: Part
    rows: Rows
    n: int

    async def ask(
        self, call: common_pb2.Call, state: CycleState, take: Callable[[Found, Rows], None]
    ) -> Found:
        """What it answers, once `take` has taken it in. Raises: SidecarError."""
        candidates = None
        if self.rows.size < self.n:
            candidates = scheduling_pb2.Candidates(bitmap=bitmap(self.rows, self.n))
        name = _CALLS[self.part]
        request = getattr(scheduling_pb2, f"{name}Request")(call=call, candidates=candidates)

        def read(response: Any) -> Found:
            found = self._found(request, response)
            take(found, self.rows)
            return found

        return await self.caller.ask(name, request, state, read)

    def _found(self, request: Any, response: Any) -> Found:
        if self.part is SCORES:
            self.caller.check_generation(request, response.generation)
            found = Found()
            self._read_scores(response, found)
            return found
        verdicts = response.filter if self.part is BOTH else response
        found = self._verdicts(request, verdicts)
        if self.part is BOTH:
            self._read_both(response, found)
        return found

    def _verdicts(self, request: Any, response: scheduling_pb2.FilterResponse) -> Found:
        plugin = self.caller.plugin
        status = status_of(plugin, response.status)
        self.caller.check_generation(request, response.generation)
        if status.rejected:
            return Found(np.ones(self.n, dtype=np.uint8), (status,))
        if status.skip:
            return Found(np.zeros(self.n, dtype=np.uint8))
        succeeded(plugin, "Filter", status)
        if not response.HasField("verdicts"):
            raise ProtocolError(plugin, "Filter says Success and gives no verdicts")
        asked = None if self.rows.size == self.n else self.rows
        return Found(*verdicts_of(plugin, response.verdicts, self.n, asked))

    def _read_both(self, response: scheduling_pb2.FilterScoreResponse, found: Found) -> None:
        """Take over the scores; what is wrong with them leaves the verdicts as they are."""
        assert found.codes is not None, "verdicts come with them"
        if response.HasField("score"):
            try:
                self._read_scores(response.score, found)
            except SidecarError as error:
                found.failure = error
        elif self._all_turned_down(found.codes) or response.filter.status.code == common_pb2.CODE_SKIP:
            found.raw = self._no_opinion()
        else:
            text = "FilterScore let nodes pass and did not score them"
            found.failure = ProtocolError(self.caller.plugin, text)

    def _read_scores(self, response: scheduling_pb2.ScoreResponse, found: Found) -> None:
        plugin = self.caller.plugin
        status = status_of(plugin, response.status)
        if status.skip:
            found.raw = self._no_opinion()
            return
        succeeded(plugin, "Score", status)
        found.raw = scores_of(plugin, response.scores, self.n)
        found.normalization = response.scores.normalization

    def _all_turned_down(self, codes: ReasonCodes) -> bool:
        return bool((codes if self.rows.size == self.n else codes[self.rows]).all())

    def _no_opinion(self) -> Scores:
        return np.zeros(self.n, dtype=np.int64)
