"""Filter and Score of a sidecar: one request for the nodes of a table, one vector back.

Both are asked in one call where the plugin allows it.

Source: docs/protocol.md.
"""

from collections.abc import Awaitable, Hashable
from functools import partial

import numpy as np

from berth.config.catalogue import ExtensionPoint
from berth.config.out_of_tree.sidecars import FailurePolicy
from berth.evaluation.caching.answer_columns import BOTH, SCORES, VERDICTS, AnswerColumns, RowAnswers
from berth.evaluation.caching.plugin_columns import Example, PluginColumns
from berth.evaluation.caching.remote_plugin import RemotePlugin
from berth.framework.attempts.cycle_state import CycleState
from berth.framework.handle import Handle
from berth.framework.hypothetical_pod import HypotheticalPod
from berth.framework.interface import MaybeAwaitable, NormalizedBy, ReasonCodes, Scores
from berth.framework.status import Status
from berth.objects.pods.pod import Pod
from berth.out_of_tree.calls import Caller
from berth.out_of_tree.errors import CallFailedError, SidecarError
from berth.out_of_tree.packing import normalized
from berth.out_of_tree.points.asking_ahead import ROWS_AHEAD, AskingAhead, LookAhead, example_of
from berth.out_of_tree.points.node_questions import NodeQuestion, taken_in
from berth.out_of_tree.points.overlays import OverlaidRows, ask_overlays, differences
from berth.out_of_tree.points.sidecar_point import FILTER, SidecarPoint
from berth.out_of_tree.transport.sent_call import UnderWay
from berth.snapshot.columns.growing import Rows, every_row
from berth.snapshot.columns.row_journal import RowJournal
from berth.snapshot.row_view import RowView
from berth.snapshot.snapshot import Snapshot
from berth_plugin_proto import identity_pb2, scheduling_pb2

SCORE = identity_pb2.EXTENSION_POINT_SCORE
FILTER_OVERLAYS = identity_pb2.EXTENSION_POINT_FILTER_OVERLAYS


def all_pass(n: int) -> ReasonCodes:
    """Codes that reject no node. Shapes: result uint8 (n,)."""
    return np.zeros(n, dtype=np.uint8)


class FilterScorePoint(SidecarPoint, RemotePlugin):
    """Filter, Score and NormalizeScore.

    The plugin answers by the rows of the snapshot that its own state follows. Rows of other tables are found
    by their nodes' names; nodes with simulated pods are asked about as overlays.
    """

    def __init__(self, caller: Caller, handle: Handle, look_ahead: LookAhead, cached: PluginColumns) -> None:
        super().__init__(caller, handle, look_ahead, cached)
        self.asking_ahead = AskingAhead(look_ahead.classes)
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

    @property
    def touched(self) -> RowJournal:
        """The rows of nodes that the plugin was sent a pod or a call about."""
        return self.caller.feed.touched

    def shared_cache_key(self, nodes: Snapshot) -> Hashable | None:
        """The key of an answer that is not normalized; None where the plugin is not node-local."""
        del nodes
        return self._validity.cache_key(None)

    def cache_key(self, state: CycleState, pod: Pod, nodes: Snapshot) -> Hashable | None:
        """The key of answers about this pod; None where they must not be cached."""
        del nodes
        if self.sign_pod(pod) is None:
            return None
        answers = self._answers(state)
        return None if answers.failed else self._validity.cache_key(self.columns(state, pod).normalization)

    def answers(self, state: CycleState, part: RowAnswers) -> bool:
        """Whether the plugin has the extension point."""
        return self._offers(self._answers(state).caller, SCORE if part is SCORES else FILTER)

    def columns(self, state: CycleState, pod: Pod) -> AnswerColumns:
        """The plugin's answers, with the rows dirty that changed before this cycle."""
        answers = self._answers(state)
        if answers.columns is None:
            if answers.supposed is None:
                signature = self._signature(answers.caller, pod)
            else:
                signature = self._signature_of(answers.supposed, answers.caller)
            if signature is None:
                answers.columns = AnswerColumns(len(self._handle.snapshot))
            else:
                answers.columns = self._columns_of(answers.caller, signature, pod)
        return answers.columns

    def _columns_of(self, caller: Caller, signature: Hashable, pod: Pod) -> AnswerColumns:
        return self.cached.of(signature, caller.feed.touched, partial(self._example, pod, signature))

    def _signature(self, caller: Caller, pod: Pod) -> Hashable | None:
        """The signature under which answers are cached; None where they must not be."""
        key = self._validity.cache_key(None) if caller is self.caller else None
        if key is None:
            return None
        self.cached.follow_cache_key(key)
        return self.sign_pod(pod)

    def _signature_of(self, supposed: HypotheticalPod, caller: Caller) -> Hashable | None:
        """The signature of a hypothetical pod; None where no answers are cached under it."""
        if self._signature(caller, supposed.before) is None:
            return None
        signature = self._validity.signs(supposed.object(caller.around.pods.get(supposed.before.uid)))
        return signature if self.cached.knows(signature) else None

    def _example(self, pod: Pod, signature: Hashable) -> Example | None:
        """A pod to ask about ahead; None where there is none, or where no other pod has its signature."""
        example = example_of(pod, self.caller)
        return example if example and self._validity.signs(example.data) == signature else None

    def ask_ahead(self) -> None:
        """Prefetch answers for changed rows, for the signatures that were used last."""
        caller, key = self.caller, self._validity.cache_key(None)
        # Calls that are not answered yet may change the plugin's answers about nodes.
        if key is None or self.leaving or caller.feed.unanswered:
            return
        free = self.asking_ahead.free(caller)
        if free <= 0:
            return
        self.cached.follow_cache_key(key)
        part = self._part_ahead(caller)
        stage = SCORES if part is SCORES else VERDICTS
        for columns, example in self.cached.recent(free):
            if example is None or columns.ahead is not None or columns.failed_ahead:
                continue
            rows = columns.missing(stage, None)
            if 0 < rows.size <= ROWS_AHEAD:
                self.asking_ahead.ask(caller, part, columns, example, rows)

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
        if signature is None or self.cached.knows(signature):
            return
        example = self._example(pod, signature)
        if example is not None:
            columns = self.cached.of(signature, caller.feed.touched, lambda: example)
            self.asking_ahead.ask(caller, self._part_ahead(caller), columns, example, every_row(len(columns)))

    def _part_ahead(self, caller: Caller) -> RowAnswers:
        """The part to prefetch first: Filter where the plugin has it, else Score."""
        return self._asked_with(caller, VERDICTS) if self._offers(caller, FILTER) else SCORES

    def filter(self, state: CycleState, pod: Pod, nodes: Snapshot) -> MaybeAwaitable[ReasonCodes]:
        """Send the question for all nodes; the awaited result is the codes. Shapes: result uint16 (n,)."""
        answers = self._answers(state)
        if answers.passes_over or not self._offers(answers.caller, FILTER):
            return all_pass(len(nodes))
        shown, rows = self._handle.snapshot, self._rows(nodes)
        columns = self.columns(state, pod)
        cut_out = nodes is shown or (isinstance(nodes, RowView) and nodes.whole is shown)
        overlaid = not cut_out and self._offers(answers.caller, FILTER_OVERLAYS)
        missing = columns.misses(VERDICTS, rows)
        if not overlaid and not missing:
            return columns.codes(rows)
        first = columns.lasting and missing == len(columns) and columns.ahead is None
        answer = self._filter(state, pod, nodes, rows, overlaid=overlaid)
        if first:
            self._ask_upcoming(answers.caller)
        return answer

    def _filter(
        self, state: CycleState, pod: Pod, nodes: Snapshot, rows: Rows | None, *, overlaid: bool
    ) -> UnderWay[ReasonCodes]:
        asked = self._bring(VERDICTS, state, pod, rows)

        async def codes() -> ReasonCodes:
            answers, columns = self._answers(state), self.columns(state, pod)
            try:
                await asked
            except SidecarError as error:
                answers.passes_over = self._ignored(state, ExtensionPoint.FILTER, pod, error)
                if not answers.passes_over:
                    raise
                return all_pass(len(nodes))
            found = columns.codes(rows)
            changed = differences(nodes, self._handle.snapshot) if overlaid else None
            return await self._with_overlays(state, pod, found, changed) if changed else found

        return UnderWay(codes(), asked)

    def ask(self, state: CycleState, pod: Pod, part: RowAnswers, rows: Rows) -> Awaitable[None]:
        """Ask about the dirty ones of these rows. Shapes: rows intp (k,)."""
        return self._bring(part, state, pod, rows)

    def _bring(self, part: RowAnswers, state: CycleState, pod: Pod, rows: Rows | None) -> UnderWay[None]:
        """Ensure answers for the rows (None: all), awaiting those that are being prefetched.

        Raises, where it is awaited: SidecarError.
        """
        columns = self.columns(state, pod)
        if not columns.lasting:
            rows = None
        ahead = columns.ahead
        missing = at_once = columns.missing(part, rows)
        if ahead is not None:
            at_once = ahead.left_out(missing)
        asked = self._ask(part, state, pod, at_once) if at_once.size else None

        async def brought() -> None:
            if asked is not None:
                await asked
            if ahead is not None and at_once.size < missing.size:
                await self.asking_ahead.end_of(ahead)
                left = columns.missing(part, rows)
                if left.size:
                    await self._ask(part, state, pod, left)

        return UnderWay(brought(), asked)

    def _ask(self, part: RowAnswers, state: CycleState, pod: Pod, rows: Rows) -> UnderWay[None]:
        """Send one question about these rows. Raises, where it is awaited: SidecarError."""
        answers, columns = self._answers(state), self.columns(state, pod)
        caller = answers.caller
        question = NodeQuestion(caller, self._asked_with(caller, part), rows, len(columns))
        missable = caller.connection.spec.policy_at(ExtensionPoint.SCORE, pod) is FailurePolicy.IGNORE
        call = caller.head(state, pod)
        sent = question.send(call, state, columns.take)
        sent.begin()

        async def answered() -> None:
            try:
                found = await question.read(sent, call, state, columns.take, missable=missable)
            except SidecarError as error:
                answers.failed = True
                if question.part is BOTH:
                    answers.failure = error
                columns.forget()
                raise
            if found.failure is not None:
                answers.failure, columns.spoiled = found.failure, True

        return UnderWay(answered(), sent)

    def _asked_with(self, caller: Caller, part: RowAnswers) -> RowAnswers:
        """Verdicts come with scores where the plugin allows it."""
        together = part is VERDICTS and self._offers(caller, SCORE)
        return BOTH if together and not caller.connection.capabilities.score_needs_feasible else part

    async def _with_overlays(
        self, state: CycleState, pod: Pod, codes: ReasonCodes, changed: OverlaidRows
    ) -> ReasonCodes:
        """The codes, with those of nodes on which other pods are asked for anew.

        Shapes: codes and result (n,), the table's rows.
        """
        answers = self._answers(state)
        try:
            theirs = taken_in(
                self.name,
                self.columns(state, pod).numbered,
                *await ask_overlays(answers.caller, state, pod, changed),
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
        """The rows of that table's nodes in the plugin's state; None where they are all rows, in order.

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
        """The status of a code in this cycle."""
        columns = self._answers(state).columns
        assert columns is not None, "a code was given"
        return columns.reasons[code - 1]

    def score(self, state: CycleState, pod: Pod, nodes: Snapshot) -> MaybeAwaitable[Scores]:
        """The raw scores, zero where the plugin has no opinion. Shapes: result int64 (n,)."""
        answers = self._answers(state)
        if not self._offers(answers.caller, SCORE):
            return np.zeros(len(nodes), dtype=np.int64)
        if answers.failure is not None:
            return self._without(answers.failure, state, pod, len(nodes))
        rows, columns = self._rows(nodes), self.columns(state, pod)
        if not columns.misses(SCORES, rows):
            return columns.raw(rows)
        return self._score(state, pod, nodes, rows)

    def _score(self, state: CycleState, pod: Pod, nodes: Snapshot, rows: Rows | None) -> UnderWay[Scores]:
        asked = self._bring(SCORES, state, pod, rows)

        async def scores() -> Scores:
            try:
                await asked
            except SidecarError as error:
                return self._without(error, state, pod, len(nodes))
            return self.columns(state, pod).raw(rows)

        return UnderWay(scores(), asked)

    def _without(self, error: SidecarError, state: CycleState, pod: Pod, n: int) -> Scores:
        """Scores of zero where the failure policy ignores the failure; raises it otherwise."""
        self._answers(state).failed = True
        if not self._ignored(state, ExtensionPoint.SCORE, pod, error):
            raise error
        return np.zeros(n, dtype=np.int64)

    def normalized_by(self, state: CycleState) -> NormalizedBy:
        """The plugin's normalization; None where its scores are 0 to 100 already."""
        columns = self._answers(state).columns
        if columns is None or columns.normalization in (None, scheduling_pb2.NORMALIZATION_NONE):
            return NormalizedBy.NOTHING
        return NormalizedBy.ALL

    def normalize_score(self, state: CycleState, pod: Pod, scores: Scores) -> Scores:
        """The scores of the feasible nodes, normalized as the plugin announced."""
        answers = self._answers(state)
        try:
            how = self.columns(state, pod).normalization
            return normalized(self.name, scores, scheduling_pb2.NORMALIZATION_NONE if how is None else how)
        except SidecarError as error:
            answers.failed = True
            if not self._ignored(state, ExtensionPoint.SCORE, pod, error):
                raise
            return np.zeros_like(scores)
