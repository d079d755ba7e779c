"""Asks sidecars for queueing hints.

    queue --questions--> HintAsker: one call at a time for each plugin and profile, events x pods
                             |
                             +--answers--> queue.hints_answered

While a call is under way, further questions are batched for the next one, so that a burst of events costs few
calls. A failed call means Queue for all of its questions, and so does an event that exceeds the limit of
questions to a slow plugin. The queue does not wait meanwhile.

Source: docs/protocol.md "Hints"; KEP-4247.
"""

import asyncio
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import msgspec
import numpy as np

from berth.framework.cluster_event import ActionType, EventResource, QueueingHint
from berth.framework.queueing.queued_pod import QueuedPodInfo
from berth.objects.node import Node
from berth.objects.pods.pod import Pod
from berth.out_of_tree.calls import Caller
from berth.out_of_tree.connections.event_interest import ACTIONS, Bytes, actions_of_change
from berth.out_of_tree.errors import SidecarError
from berth.out_of_tree.packing import bits_of, hints_of
from berth.queue.requeueing.hint_questions import HintQuestion
from berth.snapshot.columns.growing import Mask, Rows
from berth_plugin_proto import queueing_pb2

MAX_EVENTS = 64
MAX_BYTES = 3 << 20
"""What the events of one call may come to: gRPC takes 4 MiB."""
MAX_POD_BYTES = 3 << 18
"""What the objects of pods in one call may come to: with the events' they stay below gRPC's 4 MiB."""
MAX_PODS = 16_384
"""How many pods one call is about, by their UIDs: with the events they stay below gRPC's 4 MiB."""
MAX_WAITING = 1024
"""How many events may wait for a plugin that answers slowly."""
_BY_ACTION = {action: number for number, action in ACTIONS.items()}


class _Asked(msgspec.Struct):
    """An event, and the questions about it."""

    message: queueing_pb2.ClusterEvent
    old: Any
    new: Any
    questions: list[HintQuestion] = msgspec.field(default_factory=list)


class HintAsker:
    """Asks one plugin on behalf of one profile; `caller` is called for each question: versions change."""

    def __init__(
        self,
        caller: Callable[[], Caller],
        data: Bytes,
        answered: Callable[[Iterable[HintQuestion]], None],
        *,
        resizes_count_by_pod: bool,
    ) -> None:
        self._caller = caller
        self._data = data
        self._answered = answered
        self._by_pod = resizes_count_by_pod
        self._waiting: list[_Asked] = []
        self._task: asyncio.Task[None] | None = None

    def ask(self, question: HintQuestion) -> None:
        """Add questions to the next call; returns at once."""
        asked = self._waiting[-1] if self._waiting else None
        if asked is None or asked.old is not question.old or asked.new is not question.new:
            if len(self._waiting) >= MAX_WAITING:
                self._count(QueueingHint.QUEUE.value, 0, len(question.records))
                self._answered([question])
                return
            asked = _Asked(self._message(question), question.old, question.new)
            self._waiting.append(asked)
        asked.questions.append(question)
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run(), name="queueing hints")

    def close(self) -> None:
        """End; pods with open questions are queued."""
        if self._task is not None:
            self._task.cancel()
        self._queue_all(self._waiting)
        self._waiting = []

    def _queue_all(self, batch: Iterable[_Asked]) -> None:
        if questions := [question for asked in batch for question in asked.questions]:
            self._answered(questions)

    async def _run(self) -> None:
        while self._waiting:
            batch = self._next_batch()
            try:
                self._answered(await self._ask(batch))
            except SidecarError as error:
                self._caller().connection.log.warning("hints failed, the pods are queued err=%s", error)
                self._count(QueueingHint.QUEUE.value, 0, _pods(batch))
                self._queue_all(batch)
            except BaseException:
                self._queue_all(batch)
                raise

    def _next_batch(self) -> list[_Asked]:
        size = count = 0
        for asked in self._waiting[:MAX_EVENTS]:
            size += asked.message.ByteSize()
            if count and size > MAX_BYTES:
                break
            count += 1
        batch, self._waiting = self._waiting[:count], self._waiting[count:]
        return batch

    async def _ask(self, batch: list[_Asked]) -> list[HintQuestion]:
        """The questions, each with the pods for which the answer is Queue. Raises: SidecarError."""
        column: dict[QueuedPodInfo, int] = {}
        columns = [
            [[column.setdefault(r, len(column)) for r in q.records] for q in a.questions] for a in batch
        ]
        pods = [record.pod for record in column]
        parts = [await self._table(batch, pods[i : i + MAX_PODS]) for i in range(0, len(pods), MAX_PODS)]
        table = np.hstack(parts)
        queued = [
            question.about(np.flatnonzero(row[asked_about]).tolist())
            for row, asked, places in zip(table, batch, columns, strict=True)
            for question, asked_about in zip(asked.questions, places, strict=True)
        ]
        count, yes = _pods(batch), sum(len(question.records) for question in queued)
        self._count(QueueingHint.QUEUE.value, yes, 0)
        self._count(QueueingHint.SKIP.value, count - yes, 0)
        return queued

    async def _table(self, batch: list[_Asked], pods: list[Pod]) -> Mask:
        """The hints, True for Queue. Shapes: bool (events, pods). Raises: SidecarError."""
        table, unknown = await self._call(batch, pods, with_objects=False)
        if unknown.any():
            await self._ask_again(batch, pods, table, np.flatnonzero(unknown))
        return table

    async def _ask_again(self, batch: list[_Asked], pods: list[Pod], table: Mask, unknown: Rows) -> None:
        """Ask again about pods that the plugin does not know, with their objects."""
        raw, columns = self._caller().around.pods, unknown.tolist()
        while columns:
            part, size = [columns.pop(0)], 0
            while columns and (size := size + len(raw.get(pods[part[-1]].uid))) < MAX_POD_BYTES:
                part.append(columns.pop(0))
            table[:, part], _ = await self._call(batch, [pods[i] for i in part], with_objects=True)

    async def _call(self, batch: list[_Asked], pods: list[Pod], *, with_objects: bool) -> tuple[Mask, Mask]:
        """The hints, and which pods the plugin does not know. Shapes: bool (events, pods), bool (pods,)."""
        caller = self._caller()
        request = queueing_pb2.QueueingHintsRequest(
            profile=caller.profile, events=[asked.message for asked in batch]
        )
        if with_objects:
            request.pods.extend(map(caller.ref, pods))
        else:
            add = request.pods.add
            for pod in pods:
                add(uid=pod.metadata.uid)
        return await caller.ask_queueing("QueueingHints", request, partial(_read, caller.plugin, request))

    def _count(self, answer: str, count: int, errors: int) -> None:
        caller = self._caller()
        if count:
            caller.around.metrics.hinted(caller.plugin, answer, count)
        if errors:
            caller.around.metrics.hinted(caller.plugin, "Error", errors)

    def _message(self, question: HintQuestion) -> queueing_pb2.ClusterEvent:
        old, new = question.old, question.new
        return queueing_pb2.ClusterEvent(
            resource=_resource(str(question.event.resource), old if new is None else new),
            action=self._action(question, old, new),
            old_object=None if old is None else self._data(old) or None,
            new_object=None if new is None else self._data(new) or None,
        )

    def _action(self, question: HintQuestion, old: Any, new: Any) -> Any:
        """The action in the terms of the plugin's EventInterest."""
        declared = ActionType.NONE
        for interest in self._caller().connection.interests:
            declared |= interest.actions
        wanted = declared & actions_of_change(old, new, resizes_count_by_pod=self._by_pod)
        if question.event.action & wanted and question.event.action in _BY_ACTION:
            return _BY_ACTION[question.event.action]
        return next((number for action, number in _BY_ACTION.items() if action & wanted), None)


def _pods(batch: Iterable[_Asked]) -> int:
    """The number of pods that are asked about."""
    return sum(len(question.records) for asked in batch for question in asked.questions)


def _read(
    plugin: str,
    request: queueing_pb2.QueueingHintsRequest,
    response: queueing_pb2.QueueingHintsResponse,
) -> tuple[Mask, Mask]:
    count = len(request.pods)
    table = hints_of(plugin, response, len(request.events), count)
    if not response.HasField("unknown_pods"):
        return table, np.zeros(count, dtype=bool)
    unknown = bits_of(plugin, response.unknown_pods, count)
    table[:, unknown] = True
    return table, unknown


def _resource(resource: str, obj: Any) -> str:
    if isinstance(obj, Pod):
        return EventResource.POD.value
    return EventResource.NODE.value if isinstance(obj, Node) else resource
