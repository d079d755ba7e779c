"""Asking a sidecar before a pod's turn comes, so that the pod finds the answers there.

    nothing to schedule --> rows that changed since, for pods like those asked about last
    a pod of a new kind --> all rows, for pods of other new kinds that are next in the queue

No pod waits for these questions, and none is the worse for their failure: what was not answered is asked at
its turn. The plugin is asked about a pod like one that is there, under a UID of its own: what it holds for
that pod concerns no other. Source: docs/decisions/0027-asking-ahead.md.
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
    """What asking ahead needs to know; with no `classes` nothing is asked ahead.

    `upcoming` gives about so many pods that are scheduled next, and `soon` is called where rows may have
    changed: it has `ask_ahead` called once there is nothing to schedule.
    """

    classes: int
    upcoming: Callable[[int], Iterable[Pod]]
    soon: Callable[[], None]


def example_of(pod: Pod, caller: Caller) -> Example | None:
    """A pod like that one, which the plugin has never heard of; None where that one is gone."""
    known = caller.around.pods.get(pod.uid)
    if not known:
        return None
    uid = str(uuid4())
    metadata = msgspec.structs.replace(pod.metadata, uid=uid)
    data = known.replace(pod.uid.encode(), uid.encode())
    return Example(msgspec.structs.replace(pod, metadata=metadata), data)


class AskingAhead:
    """The questions ahead to one plugin in one profile: at most `classes` at a time."""

    def __init__(self, classes: int) -> None:
        self._classes = classes
        self._tasks: dict[PrefetchedAnswer, asyncio.Task[None]] = {}

    @property
    def unanswered(self) -> int:
        """How many questions have no answer yet."""
        return len(self._tasks)

    def free(self, caller: Caller) -> int:
        """How many questions may be asked now."""
        connection = caller.connection
        healthy = connection.breaker.circuit is Circuit.CLOSED and not connection.spec.shadow
        return self._classes - self.unanswered if healthy else 0

    def ask(
        self, caller: Caller, part: RowAnswers, columns: AnswerColumns, example: Example, rows: Rows
    ) -> None:
        """Ask about these rows, for pods like the example. Shapes: rows intp (k,)."""
        ahead = columns.ahead = PrefetchedAnswer(rows)
        task = asyncio.get_running_loop().create_task(_ask(caller, part, columns, example, ahead))
        self._tasks[ahead] = task
        task.add_done_callback(lambda _: self._tasks.pop(ahead))

    async def end_of(self, ahead: PrefetchedAnswer) -> None:
        """Wait until that question is answered, or has failed."""
        task = self._tasks.get(ahead)
        if task is not None:
            await asyncio.wait([task])


async def _ask(
    caller: Caller, part: RowAnswers, columns: AnswerColumns, example: Example, ahead: PrefetchedAnswer
) -> None:
    def take(found: FilterScoreAnswer, rows: Rows) -> None:
        # Forgotten meanwhile, they would be answers of another plugin process or about other nodes.
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
