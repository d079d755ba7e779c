"""The contract of a plugin whose answers take a round trip: one question, about some rows, answered later.

`FilterResults` and `ScoreResults` ask about the rows that are dirty in the plugin's columns, and read the
columns by row once the question is answered.
"""

from abc import abstractmethod
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Any

import numpy as np

from berth.evaluation.caching.answer_columns import SCORES, VERDICTS, AnswerColumns, RowAnswers
from berth.evaluation.points.plugin_calls import end_unread
from berth.framework.attempts.attempt import Attempt
from berth.framework.attempts.cycle_state import CycleState
from berth.framework.interface import FilterPlugin, NormalizeScorePlugin, ReasonCodes, RowForm, Scores
from berth.framework.status import PluginError
from berth.objects.pods.pod import Pod
from berth.snapshot.columns.growing import Mask, Rows
from berth.snapshot.columns.row_journal import RowJournal
from berth.snapshot.snapshot import Snapshot


class RemotePlugin(FilterPlugin, NormalizeScorePlugin):
    """A sidecar, as evaluation asks it. `cache_key` may change once the plugin has answered."""

    in_process = False

    @property
    @abstractmethod
    def touched(self) -> RowJournal:
        """Rows whose answers may have changed, because the plugin was sent news about their nodes."""

    @abstractmethod
    def shared_cache_key(self, nodes: Snapshot) -> Hashable | None:
        """The part of the cache key that all pods share; None where the plugin is not node-local."""

    @abstractmethod
    def answers(self, state: CycleState, part: RowAnswers) -> bool:
        """Whether the plugin implements that part in this attempt; if not, all codes and scores are 0."""

    @abstractmethod
    def columns(self, state: CycleState, pod: Pod) -> AnswerColumns:
        """The columns to read, with the rows dirty that changed before this attempt."""

    @abstractmethod
    def ask(self, state: CycleState, pod: Pod, part: RowAnswers, rows: Rows) -> Awaitable[None]:
        """Call the plugin for the dirty ones of these rows; once awaited, the columns have its answers.

        Shapes: rows intp (k,). Raises: any exception fails the cycle with its text.
        """

    def filter_by_row(self, state: CycleState, pod: Pod, nodes: Snapshot) -> RowForm[ReasonCodes]:
        """Codes are read from the columns."""
        del state, pod, nodes
        return RowForm(zero)

    def score_by_row(self, state: CycleState, pod: Pod, nodes: Snapshot) -> RowForm[Scores]:
        """Scores are read from the columns."""
        del state, pod, nodes
        return RowForm(zero)

    def read(self, attempt: Attempt, part: RowAnswers) -> AnswerColumns | None:
        """The columns that this part is read from; None where all of it is 0."""
        return self.columns(attempt.state, attempt.pod) if self.answers(attempt.state, part) else None

    def codes_of(self, attempt: Attempt, rows: Rows) -> ReasonCodes:
        """The codes of rows that are answered. Shapes: rows intp (k,); result (k,)."""
        columns = self.read(attempt, VERDICTS)
        return np.zeros(rows.size, dtype=np.uint8) if columns is None else columns.codes(rows)

    def scores_of(self, attempt: Attempt, rows: Rows) -> Scores:
        """The raw scores of rows that are answered. Shapes: rows intp (k,); result (k,)."""
        columns = self.read(attempt, SCORES)
        return np.zeros(rows.size, dtype=np.int64) if columns is None else columns.raw(rows)


def unanswered(plugins: Sequence[RemotePlugin], attempt: Attempt, part: RowAnswers, rows: Rows) -> Rows:
    """The rows that are dirty for some of these plugins. Shapes: rows and result intp (k,)."""
    dirty: Mask = np.zeros(rows.size, dtype=bool)
    for plugin in plugins:
        columns = plugin.read(attempt, part)
        more = None if columns is None else columns.are_dirty(part, rows)
        if more is not None:
            dirty |= more
    return rows[dirty]


async def ask_side_by_side(
    plugins: Sequence[RemotePlugin],
    attempt: Attempt,
    part: RowAnswers,
    rows: Rows,
    *,
    point: int,
    error: Callable[[Any, Exception], PluginError],
) -> None:
    """Have these plugins answer for the rows, all at the same time. Shapes: rows intp (k,).

    Raises: PluginError, as `error` words it.
    """
    record, state, pod = attempt.record, attempt.state, attempt.pod
    concerned = [plugin for plugin in plugins if plugin.answers(state, part)]
    answers = [
        (plugin, record.begin(plugin.name, point), plugin.ask(state, pod, part, rows)) for plugin in concerned
    ]
    unread = list(answers)
    try:
        for plugin, mark, answer in answers:
            del unread[0]
            try:
                await answer
            except Exception as failure:
                raise error(plugin, failure) from failure
            record.end(mark)
    finally:
        await end_unread([answer for _, _, answer in answers])
        # The interval of one that failed stays open; the others were cancelled because of it.
        for _, mark, _ in unread:
            record.end(mark)


def zero(_row: int) -> int:
    """The code, or the score, of a plugin that is not asked."""
    return 0
