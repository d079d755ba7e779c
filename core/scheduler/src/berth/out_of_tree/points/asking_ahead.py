"""Prefetches a sidecar's answers, so that they are cached when a pod is popped.

    activeQ is empty  --> rows that changed since, for the signatures that were used last
    a new signature   --> all rows, for other new signatures that are next in the queue

No pod waits for a prefetch, and its failure affects no pod: rows without an answer are asked about in the
pod's own cycle. The plugin is asked about a copy of a pending pod with a UID of its own, so that what it
holds for the copy affects no other pod. Source: docs/decisions/0027-asking-ahead.md.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from uuid import uuid4

import msgspec

from berth.evaluation.caching.answer_columns import AnswerColumns, PrefetchedAnswer, RowAnswers
from berth.evaluation.caching.plugin_columns import Example
from berth.framework.attempts.cycle_state import CycleState
from berth.objects.pods.pod import Pod
from berth.out_of_tree.calls import Caller
from berth.out_of_tree.connections.breaker import Circuit
from berth.out_of_tree.errors import SidecarError
from berth.out_of_tree.points.node_questions import FilterScoreAnswer, NodeQuestion
from berth.snapshot.columns.growing import Rows

log = logging.getLogger(__name__)

CLASSES_AHEAD = 4
"""This many questions ahead a plugin has to answer at a time, for as many kinds of pods."""
ROWS_AHEAD = 64
"""Where more rows changed, pods of that kind have not come for long."""


class LookAhead(msgspec.Struct, frozen=True):
    """Settings of asking ahead; with 0 `classes` nothing is asked ahead.

    `upcoming` returns about that many pods that are scheduled next, and `soon` is called where rows may have
    changed: it makes the scheduler call `ask_ahead` once activeQ is empty.
    """

    classes: int
    upcoming: Callable[[int], Iterable[Pod]]
    soon: Callable[[], None]


def example_of(pod: Pod, caller: Caller) -> Example | None:
    """A copy of that pod which the plugin does not know; None where the pod is gone."""
    known = caller.around.pods.get(pod.uid)
    if not known:
        return None
    uid = str(uuid4())
    metadata = msgspec.structs.replace(pod.metadata, uid=uid)
    data = known.replace(pod.uid.encode(), uid.encode())
    return Example(msgspec.structs.replace(pod, metadata=metadata), data)


class AskingAhead:
    """The prefetches from one plugin in one profile: at most `classes` at a time."""

    def __init__(self, classes: int) -> None:
        self._classes = classes
        self._tasks: dict[PrefetchedAnswer, asyncio.Task[None]] = {}

    @property
    def unanswered(self) -> int:
        """How many prefetches have no answer yet."""
        return len(self._tasks)

    def free(self, caller: Caller) -> int:
        """How many prefetches may be started now."""
        connection = caller.connection
        healthy = connection.breaker.circuit is Circuit.CLOSED and not connection.spec.shadow
        return self._classes - self.unanswered if healthy else 0

    def ask(
        self, caller: Caller, part: RowAnswers, columns: AnswerColumns, example: Example, rows: Rows
    ) -> None:
        """Prefetch the answers about these rows for the example's signature. Shapes: rows intp (k,)."""
        ahead = columns.ahead = PrefetchedAnswer(rows)
        task = asyncio.get_running_loop().create_task(_ask(caller, part, columns, example, ahead))
        self._tasks[ahead] = task
        task.add_done_callback(lambda _: self._tasks.pop(ahead))

    async def end_of(self, ahead: PrefetchedAnswer) -> None:
        """Wait until that prefetch is answered, or has failed."""
        task = self._tasks.get(ahead)
        if task is not None:
            await asyncio.wait([task])


async def _ask(
    caller: Caller, part: RowAnswers, columns: AnswerColumns, example: Example, ahead: PrefetchedAnswer
) -> None:
    def take(found: FilterScoreAnswer, rows: Rows) -> None:
        # Cleared meanwhile, the answers would be another process's, or about other nodes.
        if columns.ahead is not ahead:
            return
        if found.failure is not None:
            raise found.failure
        columns.take(found, rows, ahead.changed)

    call = caller.head(CycleState(), example.pod)
    call.pod.object = example.data
    question = NodeQuestion(caller, part, ahead.rows, len(columns))
    try:
        await question.ask(call, CycleState(), take)
    except SidecarError as error:
        log.debug("not answered ahead plugin=%s err=%s", caller.plugin, error)
        columns.failed_ahead = True
    finally:
        if columns.ahead is ahead:
            columns.ahead = None
