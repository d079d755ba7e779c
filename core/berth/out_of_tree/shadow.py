"""One plugin in one profile's shadow: asked beside live attempts, told what became of them, heard by nobody.

    a node is chosen --chose--> inbox --> Filter, Score, PreEnqueue --> compared --> Reserve --> counted
    the attempt is over --ended--> inbox --> Unreserve, if it failed --> CycleDone

The inbox is worked off one by one, so that the plugin hears of things in their order. An attempt is asked
about only while the inbox is empty: what the plugin can't keep up with is skipped, and counted. It is told of
reservations all the same, as long as there is room. Permit, PreBind, Bind and PostBind are never called.

Source: docs/protocol.md "Shadow"; docs/decisions/0016-shadow.md.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from berth.framework.attempt import Attempt
from berth.framework.cycle_record import CycleRecord, Interval, nanoseconds
from berth.framework.cycle_state import CycleState
from berth.framework.scoring import NodeScores
from berth.framework.status import Status
from berth.objects.pod import Pod
from berth.out_of_tree._generated import identity_pb2, scheduling_pb2
from berth.out_of_tree.answers import FILTER, PRE_ENQUEUE, RESERVE
from berth.out_of_tree.calls import Caller
from berth.out_of_tree.comparison import Choice, Comparison, Outcome, Tally
from berth.out_of_tree.errors import SidecarError
from berth.out_of_tree.opinion import NodeQuestion, Opinion
from berth.out_of_tree.packing import normalized, status_of, succeeded
from berth.out_of_tree.sidecar_plugin import SidecarPlugin
from berth.snapshot.pod_group_states import PodGroupStates

log = logging.getLogger(__name__)

SCORE = identity_pb2.EXTENSION_POINT_SCORE
CYCLE_DONE = identity_pb2.EXTENSION_POINT_CYCLE_DONE
MOST_WAITING = 256
"""How many things the plugin may yet have to be told; what comes on top it is not told."""
PENDING = "pending"
_ASKED = (("filter", FILTER), ("score", SCORE), ("pre_enqueue", PRE_ENQUEUE))

Job = Callable[[], Awaitable[None]]
Verdict = tuple[Outcome, str]
"""How the attempt would have gone on, and what the plugin says to that."""


@dataclass(slots=True)
class Followed:
    """An attempt, from the choice of a node to its end.

    `record` is the attempt's own, None once others may read it; `state` is of the plugin's calls alone.
    """

    caller: Caller
    pod: Pod
    node_name: str
    record: CycleRecord | None
    state: CycleState
    started_ns: int
    question: NodeQuestion | None = None
    choice: Choice | None = None
    names: Callable[[int], str] = str
    """What the node in a row is called, as long as rows are what they were."""
    outcome: Outcome | None = None
    detail: str = ""
    nodes_rejected: int = 0
    reserve_sent: bool = False


class Shadow:
    """Follows the attempts of one profile; `points` are those at which the plugin would take part there."""

    def __init__(
        self,
        plugin: SidecarPlugin,
        points: Collection[str],
        weight: int,
        done: Callable[..., Awaitable[None]],
    ) -> None:
        self.plugin = plugin
        self.tally = Tally()
        self._points = points
        self._weight = weight
        self._tell_done = done
        self._inbox: deque[Job] = deque()
        self._task: asyncio.Task[None] | None = None
        self._open: dict[tuple[str, int], Followed] = {}

    @property
    def over(self) -> bool:
        """Whether no attempt that it follows is under way any more."""
        return not self._open

    @property
    def _idle(self) -> bool:
        return not self._inbox and (self._task is None or self._task.done())

    def chose(self, attempt: Attempt, row: int, scores: NodeScores) -> None:
        """Follow an attempt whose node has just been chosen; returns at once."""
        if attempt.state.get(PodGroupStates) is not None:
            return  # a trial: whether the pod goes there is not decided yet
        caller, node_name = self.plugin.caller, attempt.nodes.names[row]
        follows = caller.connection.ready
        asks = follows and self._idle and self._looks_at_nodes(caller)
        if not asks:
            self._count(caller, Comparison(Outcome.SKIPPED, attempt.pod.key, node_name))
        if asks or (follows and self._offers(caller, "reserve", RESERVE)):
            followed = self._open_one(caller, attempt, node_name)
            if asks:
                self._prepare(followed, attempt, row, scores)
            self._put(partial(self._follow, followed))

    def _looks_at_nodes(self, caller: Caller) -> bool:
        return any(self._offers(caller, name, point) for name, point in _ASKED)

    def _open_one(self, caller: Caller, attempt: Attempt, node_name: str) -> Followed:
        record, state = attempt.record, CycleState()
        state.write(CycleRecord, replace(record, intervals=[], phase=-1))
        followed = Followed(caller, attempt.pod, node_name, record, state, nanoseconds())
        self._open[record.pod.uid, record.attempt] = followed
        caller.feed.attempts[attempt.pod.uid] = record.attempt
        return followed

    def _prepare(self, followed: Followed, attempt: Attempt, row: int, scores: NodeScores) -> None:
        """Keep what the answer is to be compared with: the cycle's own vectors change with the next one."""
        caller, nodes, left = followed.caller, attempt.nodes, scores.totals >= 0
        generation = nodes.static_generation
        followed.choice = Choice(row, scores.rows[left], scores.totals[left])
        followed.names = lambda row: nodes.names[row] if nodes.static_generation == generation else ""
        followed.question = NodeQuestion(
            caller,
            len(nodes),
            caller.feed.generation,
            self._offers(caller, "filter", FILTER),
            self._offers(caller, "score", SCORE),
        )

    def _offers(self, caller: Caller, name: str, point: int) -> bool:
        return name in self._points and caller.connection.offers(point)

    def ending(self, record: CycleRecord) -> None:
        """The attempt is over, and its record about to be read: nothing may be added to it from now on."""
        followed = self._open.get((record.pod.uid, record.attempt))
        if followed is not None:
            _note(followed)
            followed.record = None

    def ended(self, record: CycleRecord, *, followed_only: bool = False) -> bool:
        """Tell the plugin what became of an attempt, whether that is to be done here; returns at once."""
        followed = self._open.pop((record.pod.uid, record.attempt), None)
        if followed is None and followed_only:
            return False
        caller = self.plugin.caller if followed is None else followed.caller
        if followed is not None and record.result != "scheduled":
            self._put(partial(self._unreserve, followed, record.attempt))
        if caller.connection.ready and caller.connection.offers(CYCLE_DONE):
            self._put(partial(self._tell_done, caller, record))
        return True

    def close(self) -> None:
        """Ask nothing more, and tell nothing."""
        self._inbox.clear()
        if self._task is not None:
            self._task.cancel()

    def _put(self, job: Job) -> None:
        if len(self._inbox) >= MOST_WAITING:
            return
        self._inbox.append(job)
        if self._task is None or self._task.done():
            loop = asyncio.get_running_loop()
            self._task = loop.create_task(self._work(), name=f"shadow of {self.plugin.name}")

    async def _work(self) -> None:
        while self._inbox:
            job = self._inbox.popleft()
            try:
                await job()
            except Exception:
                log.exception("shadow broke off plugin=%s", self.plugin.name)

    async def _follow(self, followed: Followed) -> None:
        compares = followed.choice is not None
        outcome, detail = await _guarded(self._compared(followed))
        refusal = await _guarded(self._reserved(followed))
        if outcome is Outcome.SAME:
            outcome, detail = refusal
        if compares:
            followed.outcome, followed.detail = outcome, detail
            pod, node = followed.pod.key, followed.node_name
            self._count(followed.caller, Comparison(outcome, pod, node, detail, followed.nodes_rejected))
            _note(followed)

    async def _compared(self, followed: Followed) -> Verdict:
        """What the plugin says of pod and nodes, beside what was decided. Raises: SidecarError."""
        question, choice = followed.question, followed.choice
        if question is None or choice is None:
            return Outcome.SKIPPED, ""
        opinion = await question.ask(followed.state, followed.pod)
        if opinion is None:
            return Outcome.OUTDATED, ""
        followed.nodes_rejected = choice.nodes_rejected(opinion.codes)
        held_back = await self._held_back(followed)
        if held_back is not None:
            return Outcome.GATED, held_back.message
        if code := int(opinion.codes[choice.row]):
            return Outcome.REJECTED, opinion.reasons[code - 1].message
        rather = self._rather(choice, opinion)
        return (Outcome.SAME, "") if rather is None else (Outcome.MOVED, followed.names(rather))

    def _rather(self, choice: Choice, opinion: Opinion) -> int | None:
        """Raises: ProtocolError where the scores can't be what they say."""
        if opinion.raw is None:
            return None
        left = choice.left_by(opinion.codes)
        final = normalized(self.plugin.name, opinion.raw[left.rows], opinion.normalization)
        return left.rather(final, self._weight)

    async def _held_back(self, followed: Followed) -> Status | None:
        """What the plugin's gate says to a pod that is past all gates. Raises: SidecarError."""
        caller = followed.caller
        if not self._offers(caller, "pre_enqueue", PRE_ENQUEUE):
            return None
        call = caller.head(followed.state, followed.pod, with_state=False)
        request = scheduling_pb2.PreEnqueueRequest(call=call)
        return await self._turned_down(followed, "PreEnqueue", request)

    async def _reserved(self, followed: Followed) -> Verdict:
        """Let the plugin hold what the pod really uses. Raises: SidecarError."""
        caller = followed.caller
        if not self._offers(caller, "reserve", RESERVE):
            return Outcome.SAME, ""
        followed.reserve_sent = True
        call = caller.head(followed.state, followed.pod)
        request = scheduling_pb2.ReserveRequest(call=call, node_name=followed.node_name)
        refusal = await self._turned_down(followed, "Reserve", request)
        return (Outcome.SAME, "") if refusal is None else (Outcome.REFUSED, refusal.message)

    async def _turned_down(self, followed: Followed, name: str, request: Any) -> Status | None:
        """The status if it turns the pod down. Raises: SidecarError where it is neither that nor success."""
        caller = followed.caller

        def read(response: Any) -> Status | None:
            status = status_of(caller.plugin, response.status)
            if status.rejected:
                return status
            succeeded(caller.plugin, name, status)
            return None

        return await caller.ask(name, request, followed.state, read)

    async def _unreserve(self, followed: Followed, attempt: int) -> None:
        if not followed.reserve_sent:
            return
        state, caller = CycleState(), followed.caller
        call = caller.head(state, followed.pod, with_state=False)
        call.pod.attempt = attempt
        request = scheduling_pb2.UnreserveRequest(call=call, node_name=followed.node_name)
        try:
            await caller.ask("Unreserve", request, state, lambda _: None)
        except SidecarError as error:
            log.debug("not unreserved in shadow pod=%s error=%s", followed.pod.key, error)

    def _count(self, caller: Caller, comparison: Comparison) -> None:
        self.tally.add(comparison)
        outcome, rejected = comparison.outcome.value, comparison.nodes_rejected
        caller.around.metrics.compared(caller.plugin, caller.profile, outcome, rejected)


async def _guarded(step: Awaitable[Verdict]) -> Verdict:
    try:
        return await step
    except SidecarError as error:
        return Outcome.FAILED, str(error)


def _note(followed: Followed) -> None:
    """Put what is known into the attempt's record, as long as that is open; with the plugin's calls."""
    record, outcome = followed.record, followed.outcome
    if record is None or followed.choice is None:
        return
    facts: dict[str, Any] = {"berth.shadow.outcome": PENDING if outcome is None else outcome.value}
    facts["berth.shadow.nodes_rejected"] = followed.nodes_rejected
    if followed.detail:
        facts["berth.shadow.detail"] = followed.detail
    at, now = len(record.intervals), nanoseconds()
    record.intervals.append(Interval(followed.caller.plugin, followed.started_ns, now, -1, facts))
    for call in followed.state.read(CycleRecord).intervals:
        record.intervals.append(replace(call, parent=at, ended_ns=call.ended_ns or now))
    followed.record = None
