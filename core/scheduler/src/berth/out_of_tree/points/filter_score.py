"""Filter and Score of a sidecar: one request for the nodes of a table, one vector back.

Both are asked in one call where the plugin allows it.

Source: docs/protocol.md.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Hashable
from functools import partial
from typing import Any, TypeVar

import numpy as np

from berth.config.catalogue import ExtensionPoint
from berth.config.out_of_tree.sidecars import FailurePolicy
from berth.framework.cycle_state import CycleState
from berth.framework.handle import Handle
from berth.framework.hypothetical_pod import HypotheticalPod
from berth.framework.interface import (
    UNASKED,
    UNASKED_CODE,
    FilterPlugin,
    MaybeAwaitable,
    NormalizeScorePlugin,
    ReasonCodes,
    Scores,
)
from berth.framework.status import Status
from berth.objects.pod import Pod
from berth.out_of_tree.calls import Caller
from berth.out_of_tree.errors import CallFailedError, SidecarError
from berth.out_of_tree.points.asking_ahead import ROWS_AHEAD, AskingAhead, LookAhead, example_of
from berth.out_of_tree.points.node_answers import (
    BOTH,
    SCORES,
    VERDICTS,
    Example,
    NodeAnswers,
    RowAnswers,
    SidecarAnswerCache,
)
from berth.out_of_tree.points.node_questions import NodeQuestion
from berth.out_of_tree.points.overlays import OverlaidRows, ask_overlays, differences
from berth.out_of_tree.points.packing import normalized
from berth.out_of_tree.points.sidecar_point import FILTER, PERMIT, RESERVE, SidecarCycleState, SidecarPoint
from berth.out_of_tree.transport.eager_coroutine import begin
from berth.snapshot.columns import Rows, every_row
from berth.snapshot.row_view import RowView
from berth.snapshot.snapshot import Snapshot
from berth_plugin_proto import identity_pb2, scheduling_pb2

SCORE = identity_pb2.EXTENSION_POINT_SCORE
FILTER_OVERLAYS = identity_pb2.EXTENSION_POINT_FILTER_OVERLAYS

Answer = TypeVar("Answer")


def all_pass(n: int) -> ReasonCodes:
    """Codes that reject no node. Shapes: result uint8 (n,)."""
    return np.zeros(n, dtype=np.uint8)


class FilterScorePoint(SidecarPoint, FilterPlugin, NormalizeScorePlugin):
    """Filter, Score and NormalizeScore.

    The plugin answers by the rows of the snapshot that its own state follows. Rows of other tables are found
    by their nodes' names; nodes with simulated pods are asked about as overlays.
    """

    basis_of_answers = True

    def __init__(self, caller: Caller, handle: Handle, look_ahead: LookAhead) -> None:
        super().__init__(caller, handle, look_ahead)
        self.asking_ahead = AskingAhead(look_ahead.classes)
        self.known = SidecarAnswerCache(caller.plugin)
        self._signed: tuple[Pod | None, int, Hashable | None] = None, 0, None

    def sign_pod(self, pod: Pod) -> Hashable | None:
        """The fields that the plugin named; None where it named none."""
        connection = self.caller.connection
        start = connection.starts if connection.ready else 0
        signed, since, signature = self._signed
        if signed is not pod or since != start:
            signature = self._validity.sign(pod)
            self._signed = pod, start, signature
        return signature

    def basis_generation(self, nodes: Snapshot) -> Hashable | None:
        """A number for the plugin's connection and version; None where it is not node-local."""
        del nodes
        return self._validity.basis(0)

    def basis(self, state: CycleState, pod: Pod, nodes: Snapshot) -> Hashable | None:
        """The cache key: the plugin's connection and version, if it is node-local and no call has failed.

        None, too, for a plugin that signs no pods.
        """
        del nodes
        if self.sign_pod(pod) is None:
            return None
        answers = self._answers(state)
        return None if answers.failed else self._validity.basis(self._of_nodes(answers, pod).normalization)

    def _of_nodes(self, answers: SidecarCycleState, pod: Pod) -> NodeAnswers:
        """The plugin's answers, with the rows dirty that changed before this cycle."""
        if answers.of_nodes is None:
            shown = self._handle.snapshot
            if answers.supposed is None:
                signature = self._signature(answers.caller, pod)
            else:
                signature = self._signature_of(answers.supposed, answers.caller)
            if signature is None:
                answers.of_nodes = NodeAnswers(self.name, len(shown))
            else:
                touched = answers.caller.feed.touched
                answers.of_nodes = self.known.of(
                    signature, partial(self._example, pod, signature), shown, touched
                )
        return answers.of_nodes

    def _signature(self, caller: Caller, pod: Pod) -> Hashable | None:
        """The signature under which answers are cached; None where they must not be."""
        basis = self._validity.basis(0) if caller is self.caller else None
        if basis is None:
            return None
        self.known.rest_on(basis)
        return self.sign_pod(pod)

    def _signature_of(self, supposed: HypotheticalPod, caller: Caller) -> Hashable | None:
        """The signature of a hypothetical pod; None where no answers are cached under it."""
        if self._signature(caller, supposed.before) is None:
            return None
        signature = self._validity.signs(supposed.object(caller.around.pods.get(supposed.before.uid)))
        return None if self.known.peek(signature) is None else signature

    def _example(self, pod: Pod, signature: Hashable) -> Example | None:
        """A pod to ask about ahead; None where there is none, or where no other pod has its signature."""
        example = example_of(pod, self.caller)
        return example if example and self._validity.signs(example.data) == signature else None

    def ask_ahead(self) -> None:
        """Prefetch answers for changed rows, for the signatures that were used last."""
        caller, basis = self.caller, self._validity.basis(0)
        # What the plugin does with the calls that it has not answered changes what it says of nodes.
        if basis is None or self.leaving or caller.feed.unanswered:
            return
        free = self.asking_ahead.free(caller)
        if free <= 0:
            return
        self.known.rest_on(basis)
        part = self._part_ahead(caller)
        stage = SCORES if part is SCORES else VERDICTS
        for said, example in self.known.recent(free, self._handle.snapshot, caller.feed.touched):
            if example is None or said.ahead is not None or said.failed_ahead:
                continue
            rows = said.missing(stage, None)
            if 0 < rows.size <= ROWS_AHEAD:
                self.asking_ahead.ask(caller, part, said, example, rows)

    def _ask_upcoming(self, caller: Caller) -> None:
        """Prefetch answers for all rows, for the next signatures in the queue, while a call is awaited."""
        for pod in self._look_ahead.upcoming(self._look_ahead.classes + 1):
            if self.asking_ahead.free(caller) <= 0:
                return
            if pod.spec.scheduler_name == self._handle.profile_name:
                self._ask_first(caller, pod)

    def _ask_first(self, caller: Caller, pod: Pod) -> None:
        """Prefetch answers for all rows for that pod's signature, if none are cached."""
        signature = self._signature(caller, pod)
        if signature is None or self.known.peek(signature) is not None:
            return
        example = self._example(pod, signature)
        if example is not None:
            shown, part = self._handle.snapshot, self._part_ahead(caller)
            said = self.known.of(signature, lambda: example, shown, caller.feed.touched)
            self.asking_ahead.ask(caller, part, said, example, every_row(len(said)))

    def _part_ahead(self, caller: Caller) -> RowAnswers:
        """What is asked of nodes first."""
        return self._asked_with(caller, VERDICTS) if self._offers(caller, FILTER) else SCORES

    def filter(self, state: CycleState, pod: Pod, nodes: Snapshot) -> MaybeAwaitable[ReasonCodes]:
        """The plugin's verdict on each node, asked at once and awaited later. Shapes: result uint16 (n,)."""
        answers = self._answers(state)
        if answers.passes_over or not self._offers(answers.caller, FILTER):
            return all_pass(len(nodes))
        shown, rows = self._handle.snapshot, self._rows(nodes)
        said = self._of_nodes(answers, pod)
        cut_out = nodes is shown or (isinstance(nodes, RowView) and nodes.whole is shown)
        overlaid = not cut_out and self._offers(answers.caller, FILTER_OVERLAYS)
        missing = said.misses(VERDICTS, rows)
        if not overlaid and not missing:
            return said.codes(rows)
        first = said.lasting and missing == len(said) and said.ahead is None
        answer = self._begin(state, self._filter(state, pod, nodes, rows, overlaid=overlaid))
        if first:
            self._ask_upcoming(answers.caller)
        return answer

    def _begin(self, state: CycleState, work: Coroutine[Any, Any, Answer]) -> Awaitable[Answer]:
        """Send the request.

        It is sent at once, unless Reserve of the previous pod may still have to be sent: that is sent in the
        event loop's next turn, and has to come first.
        """
        caller = self._answers(state).caller
        holds = self._offers(caller, RESERVE) or self._offers(caller, PERMIT)
        return begin(work, at_once=not holds)

    async def _filter(
        self, state: CycleState, pod: Pod, nodes: Snapshot, rows: Rows | None, *, overlaid: bool
    ) -> ReasonCodes:
        answers = self._answers(state)
        said = self._of_nodes(answers, pod)
        try:
            await self._bring(VERDICTS, state, pod, rows)
        except SidecarError as error:
            answers.passes_over = self._ignored(state, ExtensionPoint.FILTER, pod, error)
            if not answers.passes_over:
                raise
            return all_pass(len(nodes))
        codes = said.codes(rows)
        changed = differences(nodes, self._handle.snapshot) if overlaid else None
        return await self._with_overlays(state, pod, codes, changed) if changed else codes

    def fetch_verdicts(self, state: CycleState, pod: Pod, nodes: Snapshot, rows: Rows) -> Awaitable[None]:
        """Ask about those of the rows that the plugin has not answered for. Shapes: rows intp (k,)."""
        del nodes
        return self._begin(state, self._bring(VERDICTS, state, pod, rows))

    def fetch_scores(self, state: CycleState, pod: Pod, nodes: Snapshot, rows: Rows) -> Awaitable[None]:
        """The same for their scores. Shapes: rows intp (k,)."""
        del nodes
        return self._begin(state, self._bring(SCORES, state, pod, rows))

    async def _bring(self, part: RowAnswers, state: CycleState, pod: Pod, rows: Rows | None) -> None:
        """Ensure answers for the rows (None: all), awaiting those that are being prefetched.

        Raises: SidecarError.
        """
        answers = self._answers(state)
        said = self._of_nodes(answers, pod)
        if not said.lasting:
            rows = None
        ahead = said.ahead
        missing = at_once = said.missing(part, rows)
        if ahead is not None:
            at_once = ahead.left_out(missing)
        if at_once.size:
            await self._ask(part, state, pod, said, at_once)
        if ahead is not None and ahead.task is not None and at_once.size < missing.size:
            await asyncio.wait([ahead.task])
            missing = said.missing(part, rows)
            if missing.size:
                await self._ask(part, state, pod, said, missing)

    async def _ask(
        self, part: RowAnswers, state: CycleState, pod: Pod, said: NodeAnswers, rows: Rows
    ) -> None:
        answers = self._answers(state)
        caller = answers.caller
        question = NodeQuestion(caller, self._asked_with(caller, part), rows, len(said))
        missable = caller.connection.spec.policy_at(ExtensionPoint.SCORE, pod) is FailurePolicy.IGNORE
        try:
            found = await question.ask(caller.head(state, pod), state, said.take, missable=missable)
        except SidecarError as error:
            answers.failed = True
            if question.part is BOTH:
                answers.failure = error
            said.forget()
            raise
        if found.failure is not None:
            answers.failure, said.spoiled = found.failure, True

    def _asked_with(self, caller: Caller, part: RowAnswers) -> RowAnswers:
        """Verdicts come with scores where the plugin allows it."""
        together = part is VERDICTS and self._offers(caller, SCORE)
        return BOTH if together and not caller.connection.capabilities.score_needs_feasible else part

    def filter_row(self, state: CycleState, pod: Pod, nodes: Snapshot) -> Callable[[int], int] | None:
        """A function from a row to the plugin's code for it, `UNASKED` where it is to be asked first."""
        del nodes
        if not self._offers(self._answers(state).caller, FILTER):
            return lambda _row: 0
        known, signature = self.known, self._signature(self.caller, pod)

        def code(row: int) -> int:
            said = known.peek(signature)
            return UNASKED if said is None or said.is_dirty(VERDICTS, row) else said.code(row)

        return None if signature is None else code

    def score_row(self, state: CycleState, pod: Pod, nodes: Snapshot) -> Callable[[int], int] | None:
        """A function from a row to the plugin's raw score for it, `UNASKED` where it is to be asked first."""
        del nodes
        if not self._offers(self._answers(state).caller, SCORE):
            return lambda _row: 0
        known, signature = self.known, self._signature(self.caller, pod)

        def raw(row: int) -> int:
            said = known.peek(signature)
            return UNASKED if said is None or said.is_dirty(SCORES, row) else said.raw_score(row)

        return None if signature is None else raw

    def filter_rows(
        self, state: CycleState, pod: Pod, nodes: Snapshot
    ) -> Callable[[Rows], ReasonCodes] | None:
        """The same for some rows at once, `UNASKED_CODE` where they are to be asked first."""
        del nodes
        if not self._offers(self._answers(state).caller, FILTER):
            return lambda rows: all_pass(rows.size)
        known, signature = self.known, self._signature(self.caller, pod)

        def codes(rows: Rows) -> ReasonCodes:
            said = known.peek(signature)
            if said is None:
                return np.full(rows.size, UNASKED_CODE, dtype=np.uint16)
            found, unasked = said.codes(rows), said.are_dirty(VERDICTS, rows)
            if unasked is not None:
                found[unasked] = UNASKED_CODE
            return found

        return None if signature is None else codes

    def score_rows(self, state: CycleState, pod: Pod, nodes: Snapshot) -> Callable[[Rows], Scores] | None:
        """The same for some rows at once, `UNASKED` where they are to be asked first."""
        del nodes
        if not self._offers(self._answers(state).caller, SCORE):
            return lambda rows: np.zeros(rows.size, dtype=np.int64)
        known, signature = self.known, self._signature(self.caller, pod)

        def raws(rows: Rows) -> Scores:
            said = known.peek(signature)
            if said is None:
                return np.full(rows.size, UNASKED, dtype=np.int64)
            found, unasked = said.raw(rows), said.are_dirty(SCORES, rows)
            if unasked is not None:
                found[unasked] = UNASKED
            return found

        return None if signature is None else raws

    async def _with_overlays(
        self, state: CycleState, pod: Pod, codes: ReasonCodes, changed: OverlaidRows
    ) -> ReasonCodes:
        """The codes, with those of nodes on which other pods are asked for anew.

        Shapes: codes and result (n,), the table's rows.
        """
        answers = self._answers(state)
        try:
            theirs = self._of_nodes(answers, pod).numbered(
                *await ask_overlays(answers.caller, state, pod, changed)
            )
        except SidecarError as error:
            answers.failed = True
            if not self._ignored(state, ExtensionPoint.FILTER, pod, error):
                raise
            theirs = all_pass(len(changed.rows))
        found = codes.astype(np.uint16)
        found[changed.rows] = theirs
        return found

    def _rows(self, nodes: Snapshot) -> Rows | None:
        """The rows of that table's nodes in the state that the plugin was shown; None for all, in order.

        Raises: CallFailedError where a node is not in it.
        """
        shown = self._handle.snapshot
        if nodes is shown:
            return None
        if nodes.whole is shown:
            return every_row(len(shown))[nodes.rows]
        try:
            rows: Rows = np.array([shown.row_of[name] for name in nodes.names], dtype=np.intp)
        except KeyError as error:
            raise CallFailedError(self.name, f"was not sent node {error.args[0]} yet") from None
        return rows

    def filter_status(self, state: CycleState, code: int) -> Status:
        """What a code stands for in this cycle."""
        said = self._answers(state).of_nodes
        assert said is not None, "a code was given"
        return said.reasons[code - 1]

    def score(self, state: CycleState, pod: Pod, nodes: Snapshot) -> MaybeAwaitable[Scores]:
        """The raw scores, zero where the plugin has no opinion. Shapes: result int64 (n,)."""
        answers = self._answers(state)
        if not self._offers(answers.caller, SCORE):
            return np.zeros(len(nodes), dtype=np.int64)
        if answers.failure is not None:
            return self._without(answers.failure, state, pod, len(nodes))
        rows, said = self._rows(nodes), self._of_nodes(answers, pod)
        if not said.misses(SCORES, rows):
            return said.raw(rows)
        return self._begin(state, self._score(state, pod, nodes, rows))

    async def _score(self, state: CycleState, pod: Pod, nodes: Snapshot, rows: Rows | None) -> Scores:
        try:
            await self._bring(SCORES, state, pod, rows)
        except SidecarError as error:
            return self._without(error, state, pod, len(nodes))
        return self._of_nodes(self._answers(state), pod).raw(rows)

    def _without(self, error: SidecarError, state: CycleState, pod: Pod, n: int) -> Scores:
        """Scores of zero where the failure policy ignores the failure; raises it otherwise."""
        self._answers(state).failed = True
        if not self._ignored(state, ExtensionPoint.SCORE, pod, error):
            raise error
        return np.zeros(n, dtype=np.int64)

    def leaves_scores(self, state: CycleState) -> bool:
        """Whether the plugin scores from 0 to 100 itself."""
        said = self._answers(state).of_nodes
        return said is None or said.normalization == scheduling_pb2.NORMALIZATION_NONE

    def normalize_score(self, state: CycleState, pod: Pod, scores: Scores) -> Scores:
        """The scores of the nodes that are left, mapped as the plugin asked."""
        answers = self._answers(state)
        try:
            return normalized(self.name, scores, self._of_nodes(answers, pod).normalization)
        except SidecarError as error:
            answers.failed = True
            if not self._ignored(state, ExtensionPoint.SCORE, pod, error):
                raise
            return np.zeros_like(scores)
