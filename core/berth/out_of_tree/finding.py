"""Filter and Score of a plugin in another process: the same questions, sent once, the same vectors back.

Both are asked in one round trip where the plugin allows it.

Source: docs/protocol.md; spec/core.md 4.4-4.10.
"""

import asyncio
from collections.abc import Coroutine, Hashable
from functools import partial
from typing import Any, TypeVar

import numpy as np

from berth.config.catalogue import ExtensionPoint
from berth.framework.cycle_state import CycleState
from berth.framework.interface import (
    FilterPlugin,
    MaybeAwaitable,
    NormalizeScorePlugin,
    ReasonCodes,
    Scores,
)
from berth.framework.status import Status
from berth.objects.pod import Pod
from berth.out_of_tree._generated import common_pb2, identity_pb2, scheduling_pb2
from berth.out_of_tree.answers import FILTER, Answers, AskedElsewhere
from berth.out_of_tree.errors import CallFailedError, ProtocolError, SidecarError
from berth.out_of_tree.overlays import Differences, ask_overlays, differences
from berth.out_of_tree.packing import normalized, scores_of, status_of, succeeded, verdicts_of
from berth.out_of_tree.standing import Basis
from berth.snapshot.columns import Rows, every_row
from berth.snapshot.snapshot import Snapshot

SCORE = identity_pb2.EXTENSION_POINT_SCORE
FILTER_OVERLAYS = identity_pb2.EXTENSION_POINT_FILTER_OVERLAYS

Vector = TypeVar("Vector", ReasonCodes, Scores)


def all_pass(n: int) -> ReasonCodes:
    """Codes that turn no node down. Shapes: result uint8 (n,)."""
    return np.zeros(n, dtype=np.uint8)


class FindsNodes(AskedElsewhere, FilterPlugin, NormalizeScorePlugin):
    """The points that look at nodes.

    The plugin answers for the rows of the snapshot that its state follows; other tables of the same nodes get
    their answers by the nodes' names, and by overlays where other pods are on them.
    """

    def sign_pod(self, pod: Pod) -> Hashable | None:
        """The fields that the plugin named; None where it named none."""
        return self._standing.sign(pod)

    def basis(self, state: CycleState, pod: Pod, nodes: Snapshot) -> Hashable | None:
        """The plugin's process as it is, if its answers are about single nodes and none is missing."""
        del pod, nodes
        answers = self._answers(state)
        return None if answers.failed else self._standing.basis(answers.normalization)

    def resume(self, state: CycleState, basis: Hashable) -> None:
        """Ask about the rows of each table only, from now on in this cycle."""
        assert isinstance(basis, Basis)
        answers = self._answers(state)
        answers.in_part, answers.normalization = True, basis.normalization

    def filter(self, state: CycleState, pod: Pod, nodes: Snapshot) -> MaybeAwaitable[ReasonCodes]:
        """The plugin's verdict on each node, asked at once and awaited later. Shapes: result uint8 (n,)."""
        answers = self._answers(state)
        if answers.codes is not None and nodes is self._handle.snapshot and not answers.in_part:
            return answers.codes
        return _started(self._filter(state, pod, nodes, answers))

    async def _filter(self, state: CycleState, pod: Pod, nodes: Snapshot, answers: Answers) -> ReasonCodes:
        if answers.in_part:
            answers.ask_about(self._on_rows(every_row(len(self._handle.snapshot)), nodes))
        if answers.codes is None:
            answers.codes = await self._ask_filter(state, pod, answers)
        codes = self._on_rows(answers.codes, nodes)
        if nodes is self._handle.snapshot or not self._offers(answers.caller, FILTER_OVERLAYS):
            return codes
        changed = differences(nodes, self._handle.snapshot)
        return await self._with_overlays(state, pod, codes, changed, answers) if changed else codes

    async def _ask_filter(self, state: CycleState, pod: Pod, answers: Answers) -> ReasonCodes:
        n, caller = len(self._handle.snapshot), answers.caller
        if not self._offers(caller, FILTER):
            return all_pass(n)
        try:
            if self._offers(caller, SCORE) and not caller.connection.capabilities.score_needs_feasible:
                return await self._ask_both(state, pod, answers, n)
            request = scheduling_pb2.FilterRequest(
                call=caller.head(state, pod), candidates=answers.candidates(n)
            )
            read = partial(self._verdicts, request, answers, n)
            return await caller.ask("Filter", request, state, read)
        except SidecarError:
            answers.failed = True
            if not self._ignored(caller, ExtensionPoint.FILTER, pod):
                raise
            return all_pass(n)

    async def _ask_both(self, state: CycleState, pod: Pod, answers: Answers, n: int) -> ReasonCodes:
        """Filter, and keep the scores for when they are asked for."""
        request = scheduling_pb2.FilterScoreRequest(
            call=answers.caller.head(state, pod), candidates=answers.candidates(n)
        )

        def read(both: scheduling_pb2.FilterScoreResponse) -> ReasonCodes:
            codes = self._verdicts(request, answers, n, both.filter)
            if both.HasField("score"):
                answers.scores = both.score
            elif _none_passed(codes, answers) or both.filter.status.code == common_pb2.CODE_SKIP:
                answers.raw = np.zeros(n, dtype=np.int64)
            else:
                text = "FilterScore let nodes pass and did not score them"
                answers.failure = ProtocolError(self.name, text)
            return codes

        try:
            return await answers.caller.ask("FilterScore", request, state, read)
        except SidecarError as error:
            answers.failure = error
            raise

    def _verdicts(
        self, request: Any, answers: Answers, n: int, response: scheduling_pb2.FilterResponse
    ) -> ReasonCodes:
        status = status_of(self.name, response.status)
        answers.caller.check_generation(request, response.generation)
        if status.rejected:
            return answers.numbered(np.ones(n, dtype=np.uint8), (status,))
        if status.skip:
            return all_pass(n)
        succeeded(self.name, "Filter", status)
        if not response.HasField("verdicts"):
            raise ProtocolError(self.name, "Filter says Success and gives no verdicts")
        return answers.numbered(*verdicts_of(self.name, response.verdicts, n, answers.asked))

    async def _with_overlays(
        self, state: CycleState, pod: Pod, codes: ReasonCodes, changed: Differences, answers: Answers
    ) -> ReasonCodes:
        """The codes, with those of nodes on which other pods are asked for anew.

        Shapes: codes and result (n,), the table's rows.
        """
        try:
            theirs = answers.numbered(*await ask_overlays(answers.caller, state, pod, changed))
        except SidecarError:
            answers.failed = True
            if not self._ignored(answers.caller, ExtensionPoint.FILTER, pod):
                raise
            theirs = all_pass(len(changed.rows))
        found = codes.astype(np.uint16)
        found[changed.rows] = theirs
        return found

    def _on_rows(self, vector: Vector, nodes: Snapshot) -> Vector:
        """The vector's entries for that table's rows.

        Raises: CallFailedError where a node is not in the state that the plugin was shown.
        """
        shown = self._handle.snapshot
        if nodes.whole is shown:
            return vector[nodes.rows]
        try:
            rows: Rows = np.array([shown.row_of[name] for name in nodes.names], dtype=np.intp)
        except KeyError as error:
            raise CallFailedError(self.name, f"was not told of node {error.args[0]} yet") from None
        return vector[rows]

    def filter_status(self, state: CycleState, code: int) -> Status:
        """What a code stands for in this cycle."""
        return self._answers(state).reasons[code - 1]

    def score(self, state: CycleState, pod: Pod, nodes: Snapshot) -> MaybeAwaitable[Scores]:
        """The raw scores, zero where the plugin has no opinion. Shapes: result int64 (n,)."""
        answers = self._answers(state)
        if answers.in_part:
            rows = self._on_rows(every_row(len(self._handle.snapshot)), nodes)
            if not answers.covers(rows):
                answers.ask_about(rows)
        if answers.raw is None:
            answers.raw = self._at_hand(pod, answers)
        if answers.raw is not None:
            return self._on_rows(answers.raw, nodes)
        return _started(self._score(state, pod, nodes, answers))

    def _at_hand(self, pod: Pod, answers: Answers) -> Scores | None:
        """The scores where nobody need be asked: they came with the verdicts, or the plugin gives none.

        Raises: SidecarError, unless the failure policy passes over it.
        """
        n = len(self._handle.snapshot)
        if not self._offers(answers.caller, SCORE):
            return np.zeros(n, dtype=np.int64)
        try:
            if answers.failure is not None:
                raise answers.failure
            return None if answers.scores is None else self._raw_scores(answers, n, answers.scores)
        except SidecarError as error:
            return self._without(error, pod, answers)

    def _without(self, error: SidecarError, pod: Pod, answers: Answers) -> Scores:
        """No opinion, where the failure policy passes over the failure; raises it otherwise."""
        answers.failed = True
        if not self._ignored(answers.caller, ExtensionPoint.SCORE, pod):
            raise error
        return np.zeros(len(self._handle.snapshot), dtype=np.int64)

    async def _score(self, state: CycleState, pod: Pod, nodes: Snapshot, answers: Answers) -> Scores:
        answers.raw = await self._ask_score(state, pod, answers)
        return self._on_rows(answers.raw, nodes)

    async def _ask_score(self, state: CycleState, pod: Pod, answers: Answers) -> Scores:
        n, caller = len(self._handle.snapshot), answers.caller
        request = scheduling_pb2.ScoreRequest(call=caller.head(state, pod), candidates=answers.candidates(n))

        def read(response: scheduling_pb2.ScoreResponse) -> Scores:
            caller.check_generation(request, response.generation)
            return self._raw_scores(answers, n, response)

        try:
            return await caller.ask("Score", request, state, read)
        except SidecarError as error:
            return self._without(error, pod, answers)

    def _raw_scores(self, answers: Answers, n: int, response: scheduling_pb2.ScoreResponse) -> Scores:
        status = status_of(self.name, response.status)
        if status.skip:
            return np.zeros(n, dtype=np.int64)
        succeeded(self.name, "Score", status)
        answers.normalization = response.scores.normalization
        return scores_of(self.name, response.scores, n)

    def leaves_scores(self, state: CycleState) -> bool:
        """Whether the plugin scores from 0 to 100 itself."""
        return self._answers(state).normalization == scheduling_pb2.NORMALIZATION_NONE

    def normalize_score(self, state: CycleState, pod: Pod, scores: Scores) -> Scores:
        """The scores of the nodes that are left, mapped as the plugin asked."""
        answers = self._answers(state)
        try:
            return normalized(self.name, scores, answers.normalization)
        except SidecarError:
            answers.failed = True
            if not self._ignored(answers.caller, ExtensionPoint.SCORE, pod):
                raise
            return np.zeros_like(scores)


def _none_passed(codes: ReasonCodes, answers: Answers) -> bool:
    """Whether every node that was asked about was turned down."""
    return bool((codes if answers.asked is None else codes[answers.asked]).all())


def _started(answer: Coroutine[Any, Any, Vector]) -> "asyncio.Task[Vector]":
    """The answer as a task: it is asked for with the loop's next turn, not once somebody waits for it."""
    task = asyncio.get_running_loop().create_task(answer)
    task.add_done_callback(_looked_at)
    return task


def _looked_at(task: "asyncio.Future[Any]") -> None:
    """Nobody may want the answer any more; then its failure is of no interest either."""
    if not task.cancelled():
        task.exception()
