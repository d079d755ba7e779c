"""A plugin in another process as a plugin of a profile: the same questions, sent once, the same vectors back.

Filter and Score are asked in one round trip where the plugin allows it. What a failed call means is the
failure policy of the list: Fail ends the attempt with an error that names the plugin, Ignore means that it
has no opinion.

Source: docs/protocol.md; spec/core.md 4.4-4.10.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from berth.config.catalogue import ExtensionPoint
from berth.config.sidecars import FailurePolicy
from berth.framework.cluster_event import ActionType, ClusterEvent, ClusterEventWithHint, EventResource
from berth.framework.cycle_state import CycleState
from berth.framework.handle import Handle
from berth.framework.interface import (
    EnqueueExtensions,
    FilterPlugin,
    NormalizeScorePlugin,
    PermitPlugin,
    PermitResult,
    PostBindPlugin,
    PreBindPlugin,
    PreFlightResult,
    ReasonCodes,
    ReservePlugin,
    Scores,
)
from berth.framework.status import SKIP, SUCCESS, Status, failed
from berth.objects.pod import Pod
from berth.out_of_tree._generated import identity_pb2, scheduling_pb2
from berth.out_of_tree.calls import Caller
from berth.out_of_tree.errors import CallFailedError, SidecarError
from berth.out_of_tree.event_interest import hints_for
from berth.out_of_tree.packing import normalized, scores_of, status_of, verdicts_of
from berth.snapshot.snapshot import Snapshot

log = logging.getLogger(__name__)


def all_pass(n: int) -> ReasonCodes:
    """Codes that turn no node down. Shapes: result uint8 (n,)."""
    return np.zeros(n, dtype=np.uint8)


FILTER = identity_pb2.EXTENSION_POINT_FILTER
SCORE = identity_pb2.EXTENSION_POINT_SCORE
RESERVE = identity_pb2.EXTENSION_POINT_RESERVE
PERMIT = identity_pb2.EXTENSION_POINT_PERMIT
PRE_BIND = identity_pb2.EXTENSION_POINT_PRE_BIND
POST_BIND = identity_pb2.EXTENSION_POINT_POST_BIND


@dataclass(slots=True)
class Answers:
    """What the plugin said of one pod in one cycle, over the rows of the whole snapshot."""

    codes: ReasonCodes | None = None
    reasons: tuple[Status, ...] = ()
    scores: scheduling_pb2.ScoreResponse | None = None
    raw: Scores | None = None
    normalization: int = scheduling_pb2.NORMALIZATION_NONE
    skip_pre_bind: bool = False
    metadata_patch: bytes | None = None
    reserved_on: int = 0
    """Which start of the connection answered Reserve."""


class SidecarPlugin(
    FilterPlugin,
    NormalizeScorePlugin,
    ReservePlugin,
    PermitPlugin,
    PreBindPlugin,
    PostBindPlugin,
    EnqueueExtensions,
):
    """One plugin in one profile."""

    in_process = False

    def __init__(self, caller: Caller, handle: Handle) -> None:
        self._caller = caller
        self._handle = handle

    @property
    def name(self) -> str:
        """The name in the plugin list and in profiles."""
        return self._caller.connection.spec.name

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """Every event; what the plugin announced decides, once it is known, which of them matter."""
        return [
            ClusterEventWithHint(
                ClusterEvent(resource, ActionType.ALL), hints_for(resource, self._caller.connection)
            )
            for resource in (EventResource.POD, EventResource.NODE)
        ]

    # Finding nodes.

    async def filter(self, state: CycleState, pod: Pod, nodes: Snapshot) -> ReasonCodes:
        """The plugin's verdict on each node. Shapes: result uint8 (n,)."""
        answers = self._answers(state)
        if answers.codes is None:
            answers.codes = await self._ask_filter(state, pod, answers)
        return answers.codes[nodes.rows]

    async def _ask_filter(self, state: CycleState, pod: Pod, answers: Answers) -> ReasonCodes:
        n = len(self._handle.snapshot)
        if not self._offers(FILTER):
            return all_pass(n)
        call = self._caller.head(state, pod)
        try:
            if self._offers(SCORE) and not self._caller.connection.capabilities.score_needs_feasible:
                request = scheduling_pb2.FilterScoreRequest(call=call)
                both = await self._caller.ask("FilterScore", request, state)
                answers.scores = both.score
                return self._verdicts(both.filter, answers, n)
            response = await self._caller.ask("Filter", scheduling_pb2.FilterRequest(call=call), state)
            return self._verdicts(response, answers, n)
        except SidecarError:
            if self._policy(ExtensionPoint.FILTER) is FailurePolicy.FAIL:
                raise
            return all_pass(n)

    def _verdicts(self, response: scheduling_pb2.FilterResponse, answers: Answers, n: int) -> ReasonCodes:
        self._caller.connection.holds(response.generation)
        status = status_of(self.name, response.status)
        if status.rejected:
            answers.reasons = (status,)
            return np.ones(n, dtype=np.uint8)
        if status.skip:
            return all_pass(n)
        if not status.ok:
            raise CallFailedError(self.name, status.message)
        codes, answers.reasons = verdicts_of(self.name, response.verdicts, n)
        return codes

    def filter_status(self, state: CycleState, code: int) -> Status:
        """What a code stands for in this cycle."""
        return self._answers(state).reasons[code - 1]

    # Scoring.

    async def score(self, state: CycleState, pod: Pod, nodes: Snapshot) -> Scores:
        """The raw scores, zero where the plugin has no opinion. Shapes: result int64 (n,)."""
        answers = self._answers(state)
        if answers.raw is None:
            answers.raw = await self._ask_score(state, pod, answers)
        rows: Scores = answers.raw[nodes.rows]
        return rows

    async def _ask_score(self, state: CycleState, pod: Pod, answers: Answers) -> Scores:
        n = len(self._handle.snapshot)
        no_opinion = np.zeros(n, dtype=np.int64)
        if not self._offers(SCORE):
            return no_opinion
        try:
            response = answers.scores
            if response is None:
                request = scheduling_pb2.ScoreRequest(call=self._caller.head(state, pod))
                response = await self._caller.ask("Score", request, state)
            return self._raw_scores(response, answers, n)
        except SidecarError:
            if self._policy(ExtensionPoint.SCORE) is FailurePolicy.FAIL:
                raise
            return no_opinion

    def _raw_scores(self, response: scheduling_pb2.ScoreResponse, answers: Answers, n: int) -> Scores:
        if not response.HasField("status"):
            return np.zeros(n, dtype=np.int64)
        status = status_of(self.name, response.status)
        if status.skip:
            return np.zeros(n, dtype=np.int64)
        if not status.ok:
            raise CallFailedError(self.name, status.message)
        answers.normalization = response.scores.normalization
        return scores_of(self.name, response.scores, n)

    def normalize_score(self, state: CycleState, pod: Pod, scores: Scores) -> Scores:
        """The scores of the nodes that are left, mapped as the plugin asked."""
        del pod
        try:
            return normalized(self.name, scores, self._answers(state).normalization)
        except SidecarError:
            if self._policy(ExtensionPoint.SCORE) is FailurePolicy.FAIL:
                raise
            return np.zeros_like(scores)

    def _answers(self, state: CycleState) -> Answers:
        """What this plugin said in this cycle; each plugin of a profile has its own."""
        key = (Answers, self.name)
        known: Answers | None = state.get(key)
        if known is None:
            known = Answers()
            state.write(key, known)
        return known

    # From the chosen node to the binding.

    async def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """Let the plugin hold what the pod is going to use."""
        if not self._offers(RESERVE):
            return SUCCESS
        call = self._caller.head(state, pod)
        self._caller.feed.attempts[pod.uid] = call.pod.attempt
        request = scheduling_pb2.ReserveRequest(call=call, node_name=node_name)
        try:
            response = await self._caller.ask("Reserve", request, state)
        except SidecarError as error:
            return self._unless_ignored(ExtensionPoint.RESERVE, error)
        answers = self._answers(state)
        answers.skip_pre_bind = response.skip_pre_bind
        answers.reserved_on = self._caller.connection.starts
        answers.metadata_patch = response.metadata_patch if response.HasField("metadata_patch") else None
        return status_of(self.name, response.status)

    async def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Let the plugin give it back; a plugin that cannot be asked learns it from the state."""
        if not self._offers(RESERVE):
            return
        call = self._caller.head(state, pod, with_state=False)
        request = scheduling_pb2.UnreserveRequest(call=call, node_name=node_name)
        try:
            await self._caller.ask("Unreserve", request, state)
        except SidecarError as error:
            log.warning("not unreserved pod=%s error=%s", pod.key, error)

    async def permit(self, state: CycleState, pod: Pod, node_name: str) -> PermitResult:
        """Ask for leave to bind."""
        if not self._offers(PERMIT):
            return PermitResult()
        request = scheduling_pb2.PermitRequest(call=self._caller.head(state, pod), node_name=node_name)
        try:
            response = await self._caller.ask("Permit", request, state)
        except SidecarError as error:
            return PermitResult(self._unless_ignored(ExtensionPoint.PERMIT, error))
        return PermitResult(
            status_of(self.name, response.status), response.timeout.ToTimedelta().total_seconds()
        )

    def pre_bind_pre_flight(self, state: CycleState, pod: Pod, node_name: str) -> PreFlightResult:
        """Skip where the plugin said at Reserve that there is nothing to do."""
        del pod, node_name
        idle = not self._offers(PRE_BIND) or self._answers(state).skip_pre_bind
        return PreFlightResult(SKIP if idle else SUCCESS)

    async def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """Let the plugin prepare, and write the labels and annotations that it asks for.

        What it asked for at Reserve is written without another call, unless the connection was lost since.
        """
        answers = self._answers(state)
        same_connection = answers.reserved_on == self._caller.connection.starts
        if answers.metadata_patch is not None and same_connection and self._caller.connection.ready:
            return await self._patched(pod, answers.metadata_patch)
        request = scheduling_pb2.PreBindRequest(call=self._caller.head(state, pod), node_name=node_name)
        try:
            response = await self._caller.ask("PreBind", request, state)
        except SidecarError as error:
            return self._unless_ignored(ExtensionPoint.PRE_BIND, error)
        status = status_of(self.name, response.status)
        if status.ok and response.HasField("metadata_patch"):
            return await self._patched(pod, response.metadata_patch)
        return status

    async def _patched(self, pod: Pod, data: bytes) -> Status:
        try:
            patch = msgspec.json.decode(data, type=dict[str, dict[str, str | None]])
        except msgspec.MsgspecError as error:
            return failed(f"plugin {self.name}: metadata patch: {error}")
        if unknown := patch.keys() - {"annotations", "labels"}:
            return failed(f"plugin {self.name}: metadata patch may not change {', '.join(sorted(unknown))}")
        # First here, so that a plugin that starts now is told of it, too.
        self._caller.pods.merge_metadata(pod.uid, patch)
        await self._handle.writer.patch_pod_metadata(pod, patch)
        return SUCCESS

    async def post_bind(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Tell the plugin that the binding was written."""
        if self._offers(POST_BIND):
            call = self._caller.head(state, pod, with_state=False)
            request = scheduling_pb2.PostBindRequest(call=call, node_name=node_name)
            await self._caller.ask("PostBind", request, state)

    def _offers(self, point: int) -> bool:
        """Whether to call it; a plugin that never answered is called where the list says so, and fails."""
        connection = self._caller.connection
        return connection.offers(point) if connection.starts else point in (FILTER, RESERVE)

    def _policy(self, point: ExtensionPoint) -> FailurePolicy:
        return self._caller.connection.spec.policy_at(point)

    def _unless_ignored(self, point: ExtensionPoint, error: SidecarError) -> Status:
        return SUCCESS if self._policy(point) is FailurePolicy.IGNORE else failed(error)
