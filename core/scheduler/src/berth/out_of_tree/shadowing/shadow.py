"""One plugin in shadow mode in one profile: called for live attempts, without effect on them.

    a node is chosen --on_node_chosen--> inbox --> Filter, Score, PreEnqueue, Reserve --> counted
    no node is left --on_no_node--> inbox --> PostFilter --> compared --> counted
    the attempt is over --ended--> inbox --> Unreserve, if it failed --> CycleDone

The inbox is processed in order. A question about an attempt is asked only while the inbox is empty: attempts
that the plugin is too slow for are skipped, and counted. It gets their reservations all the same, up to a
limit. Permit, PreBind, Bind and PostBind are never called.

Source: docs/protocol.md "Shadow"; docs/decisions/0016-shadow.md.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from msgspec.structs import replace

from berth.framework.attempts.attempt import Attempt
from berth.framework.attempts.cycle_record import CycleRecord
from berth.framework.attempts.cycle_state import CycleState
from berth.framework.attempts.diagnosis import Diagnosis
from berth.framework.clock import nanoseconds
from berth.framework.interface import PostFilterResult
from berth.framework.node_scores import NodeScores
from berth.framework.status import Code, Status
from berth.out_of_tree.calls import Caller
from berth.out_of_tree.enabled_plugins import EnabledPlugins
from berth.out_of_tree.errors import SidecarError
from berth.out_of_tree.packing import normalized, status_of, succeeded
from berth.out_of_tree.plugin_text import bounded
from berth.out_of_tree.points.post_filter import POST_FILTER, packed
from berth.out_of_tree.points.sidecar_plugin import SidecarPlugin
from berth.out_of_tree.points.sidecar_point import FILTER, PRE_ENQUEUE, RESERVE
from berth.out_of_tree.shadowing.comparison import (
    ObservedChoice,
    ShadowComparison,
    ShadowOutcome,
    ShadowTally,
    Verdict,
)
from berth.out_of_tree.shadowing.followed_attempt import FollowedAttempt
from berth.out_of_tree.shadowing.opinion import ShadowOpinion, ShadowQuestion
from berth.out_of_tree.shadowing.shadow_room import RoomQuestion, turned_down
from berth.snapshot.pod_group_states import PodGroupStates
from berth_plugin_proto import identity_pb2, scheduling_pb2

log = logging.getLogger(__name__)

SCORE = identity_pb2.EXTENSION_POINT_SCORE
CYCLE_DONE = identity_pb2.EXTENSION_POINT_CYCLE_DONE
MAX_WAITING = 256
"""How many notifications may wait for the plugin; what comes on top is dropped."""
_ASKED = (("filter", FILTER), ("score", SCORE), ("pre_enqueue", PRE_ENQUEUE))

Job = Callable[[], Awaitable[None]]


class Shadow:
    """Follows the attempts of one profile; `enabled` has the extension points of the plugin there."""

    def __init__(
        self, plugin: SidecarPlugin, enabled: EnabledPlugins, done: Callable[..., Awaitable[None]]
    ) -> None:
        self.plugin = plugin
        self.tally = ShadowTally()
        self._enabled = enabled
        self._points = enabled.points_of(plugin)
        self._weight = enabled.weight_of(plugin)
        self._tell_done = done
        self._inbox: deque[Job] = deque()
        self._task: asyncio.Task[None] | None = None
        self._open: dict[tuple[str, int], FollowedAttempt] = {}

    @property
    def over(self) -> bool:
        """Whether all attempts that it follows have ended."""
        return not self._open

    @property
    def _idle(self) -> bool:
        return not self._inbox and (self._task is None or self._task.done())

    def on_node_chosen(self, attempt: Attempt, row: int, scores: NodeScores) -> None:
        """Follow an attempt whose node has just been chosen; returns at once."""
        if attempt.state.get(PodGroupStates) is not None:
            return  # a trial: the pod may not go there
        caller, node_name = self.plugin.caller, attempt.nodes.names[row]
        follows = caller.connection.ready
        looks = self._looks_at_nodes(caller)
        asks = follows and self._idle and looks
        if not asks and (looks or not follows):
            self._count(caller, ShadowComparison(ShadowOutcome.SKIPPED, attempt.pod.key, node_name))
        if asks or (follows and self._offers(caller, "reserve", RESERVE)):
            followed = self._open_one(caller, attempt, node_name)
            if asks:
                self._prepare(followed, attempt, row, scores)
            self._put(partial(self._follow, followed))

    def on_no_node(self, attempt: Attempt, diagnosis: Diagnosis, room: PostFilterResult) -> None:
        """Follow an attempt without a feasible node, where the plugin has PostFilter; returns at once."""
        caller = self.plugin.caller
        if attempt.state.get(PodGroupStates) is not None or not self._may_make_room(caller, room):
            return
        if not (caller.connection.ready and self._idle):
            self._count(caller, ShadowComparison(ShadowOutcome.SKIPPED, attempt.pod.key, ""))
            return
        followed = self._open_one(caller, attempt, "")
        followed.asked = True
        question = RoomQuestion(caller, attempt.nodes, caller.feed.generation, packed(diagnosis))
        self._put(partial(self._follow_without_node, followed, question))

    def _may_make_room(self, caller: Caller, room: PostFilterResult) -> bool:
        if not self._offers(caller, "post_filter", POST_FILTER):
            return False
        no_plugin_did = room.status.code is Code.UNSCHEDULABLE
        return no_plugin_did or self._enabled.precedes_post_filter_end(self.plugin, room.status.plugin)

    def _looks_at_nodes(self, caller: Caller) -> bool:
        return any(self._offers(caller, name, point) for name, point in _ASKED)

    def _open_one(self, caller: Caller, attempt: Attempt, node_name: str) -> FollowedAttempt:
        record, state = attempt.record, CycleState()
        state.write(CycleRecord, replace(record, intervals=[], phase=-1))
        followed = FollowedAttempt(caller, attempt.pod, node_name, record, state, nanoseconds())
        self._open[record.pod.uid, record.attempt] = followed
        caller.feed.reserving(attempt.pod.uid, record.attempt)
        return followed

    def _prepare(self, followed: FollowedAttempt, attempt: Attempt, row: int, scores: NodeScores) -> None:
        """Copy what the answer is compared with: the cycle's own vectors change with the next cycle."""
        caller, nodes, left = followed.caller, attempt.nodes, scores.totals >= 0
        followed.choice = ObservedChoice(row, scores.rows[left], scores.totals[left])
        followed.asked, followed.nodes, followed.static_generation = True, nodes, nodes.static_generation
        followed.question = ShadowQuestion(
            caller,
            len(nodes),
            caller.feed.generation,
            self._offers(caller, "filter", FILTER),
            self._offers(caller, "score", SCORE),
        )

    def _offers(self, caller: Caller, name: str, point: int) -> bool:
        return name in self._points and caller.connection.offers(point)

    def ending(self, record: CycleRecord) -> None:
        """The attempt has ended and its record is about to be read: add nothing to it from now on."""
        followed = self._open.get((record.pod.uid, record.attempt))
        if followed is not None:
            followed.note()
            followed.record = None

    def ended(self, record: CycleRecord, *, followed_only: bool = False) -> bool:
        """Tell the plugin the outcome of an attempt, later; returns whether CycleDone is sent here."""
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
        """End; nothing is sent any more."""
        self._inbox.clear()
        if self._task is not None:
            self._task.cancel()

    def _put(self, job: Job) -> None:
        if len(self._inbox) >= MAX_WAITING:
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

    async def _follow(self, followed: FollowedAttempt) -> None:
        outcome, detail = await _guarded(self._compared(followed))
        refusal = await _guarded(self._reserved(followed))
        if outcome is ShadowOutcome.SAME:
            outcome, detail = refusal
        self._conclude(followed, outcome, detail)

    async def _follow_without_node(self, followed: FollowedAttempt, question: RoomQuestion) -> None:
        self._conclude(followed, *await _guarded(question.ask(followed.state, followed.pod)))

    def _conclude(self, followed: FollowedAttempt, outcome: ShadowOutcome, detail: str) -> None:
        if not followed.asked:
            return
        detail = bounded(detail)
        followed.outcome, followed.detail = outcome, detail
        pod, node = followed.pod.key, followed.node_name
        self._count(followed.caller, ShadowComparison(outcome, pod, node, detail, followed.nodes_rejected))
        followed.note()

    async def _compared(self, followed: FollowedAttempt) -> Verdict:
        """Compare the plugin's PreEnqueue, Filter and Score with the decision. Raises: SidecarError."""
        question, choice = followed.question, followed.choice
        if question is None or choice is None:
            return ShadowOutcome.SKIPPED, ""
        opinion = await question.ask(followed.state, followed.pod)
        if opinion is None:
            return ShadowOutcome.OUTDATED, ""
        followed.nodes_rejected = choice.nodes_rejected(opinion.codes)
        held_back = await self._held_back(followed)
        if held_back is not None:
            return ShadowOutcome.GATED, held_back.message
        if code := int(opinion.codes[choice.row]):
            room = await self._post_filter_instead(followed, question, choice, opinion)
            return ShadowOutcome.REJECTED, "; ".join(filter(None, (opinion.reasons[code - 1].message, room)))
        preferred_row = self._preferred_row(choice, opinion)
        return (
            (ShadowOutcome.SAME, "")
            if preferred_row is None
            else (ShadowOutcome.MOVED, followed.name_of(preferred_row))
        )

    async def _post_filter_instead(
        self,
        followed: FollowedAttempt,
        question: ShadowQuestion,
        choice: ObservedChoice,
        opinion: ShadowOpinion,
    ) -> str:
        """The plugin's PostFilter, where its Filter leaves no node. Raises: SidecarError."""
        caller, nodes = followed.caller, followed.nodes
        none_left = not choice.without_rejected(opinion.codes).rows.size
        if nodes is None or not (none_left and self._offers(caller, "post_filter", POST_FILTER)):
            return ""
        verdicts = turned_down(choice, opinion, question.n)
        room = RoomQuestion(caller, nodes, question.generation, verdicts)
        outcome, detail = await room.ask(followed.state, followed.pod)
        return detail if outcome is ShadowOutcome.ROOM else ""

    def _preferred_row(self, choice: ObservedChoice, opinion: ShadowOpinion) -> int | None:
        """The node that the plugin prefers. Raises: ProtocolError where the scores are invalid."""
        if opinion.raw is None:
            return None
        left = choice.without_rejected(opinion.codes)
        final = normalized(self.plugin.name, opinion.raw[left.rows], opinion.normalization)
        return left.preferred_row(final, self._weight)

    async def _held_back(self, followed: FollowedAttempt) -> Status | None:
        """The plugin's PreEnqueue for a pod that passed all others. Raises: SidecarError."""
        caller = followed.caller
        if not self._offers(caller, "pre_enqueue", PRE_ENQUEUE):
            return None
        call = caller.head(followed.state, followed.pod, with_state=False)
        request = scheduling_pb2.PreEnqueueRequest(call=call)
        return await self._turned_down(followed, "PreEnqueue", request)

    async def _reserved(self, followed: FollowedAttempt) -> Verdict:
        """Call Reserve for the node that was chosen. Raises: SidecarError."""
        caller = followed.caller
        if not self._offers(caller, "reserve", RESERVE):
            return ShadowOutcome.SAME, ""
        followed.reserve_sent = True
        call = caller.head(followed.state, followed.pod)
        request = scheduling_pb2.ReserveRequest(call=call, node_name=followed.node_name)
        refusal = await self._turned_down(followed, "Reserve", request)
        return (ShadowOutcome.SAME, "") if refusal is None else (ShadowOutcome.REFUSED, refusal.message)

    async def _turned_down(self, followed: FollowedAttempt, name: str, request: Any) -> Status | None:
        """The status if it rejects the pod; None for success. Raises: SidecarError otherwise."""
        caller = followed.caller

        def read(response: Any) -> Status | None:
            status = status_of(caller.plugin, response.status)
            if status.rejected:
                return status
            succeeded(caller.plugin, name, status)
            return None

        return await caller.ask(name, request, followed.state, read)

    async def _unreserve(self, followed: FollowedAttempt, attempt: int) -> None:
        if not followed.reserve_sent:
            return
        state, caller = CycleState(), followed.caller
        call = caller.head(state, followed.pod, with_state=False)
        call.pod.attempt = attempt
        request = scheduling_pb2.UnreserveRequest(call=call, node_name=followed.node_name)
        try:
            await caller.ask("Unreserve", request, state, lambda _: None)
        except SidecarError as error:
            log.debug("not unreserved in shadow pod=%s err=%s", followed.pod.key, error)

    def _count(self, caller: Caller, comparison: ShadowComparison) -> None:
        self.tally.add(comparison)
        outcome, rejected = comparison.outcome.value, comparison.nodes_rejected
        caller.around.metrics.compared(caller.plugin, caller.profile, outcome, rejected)


async def _guarded(step: Awaitable[Verdict]) -> Verdict:
    try:
        return await step
    except SidecarError as error:
        return ShadowOutcome.FAILED, str(error)
