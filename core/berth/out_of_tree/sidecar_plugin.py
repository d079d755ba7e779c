"""A plugin in another process as a plugin of a profile: the same questions, sent once, the same vectors back.

Filter and Score are asked in one round trip where the plugin allows it. What a failed call means is the
failure policy of the list: Fail ends the attempt with an error that names the plugin, Ignore means that it
has no opinion.

Source: docs/protocol.md; spec/core.md 4.4-4.10.
"""

import logging
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

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
from berth.framework.status import SKIP, SUCCESS, Code, Status, failed
from berth.objects.pod import Pod
from berth.out_of_tree._generated import common_pb2, identity_pb2, scheduling_pb2
from berth.out_of_tree.calls import Caller
from berth.out_of_tree.errors import CallFailedError, ProtocolError, SidecarError
from berth.out_of_tree.event_interest import hints_for
from berth.out_of_tree.packing import bitmap, normalized, scores_of, status_of, verdicts_of
from berth.out_of_tree.standing import Basis, Standing
from berth.snapshot.columns import Rows, every_row
from berth.snapshot.snapshot import Snapshot

log = logging.getLogger(__name__)

MetadataPatch = dict[str, dict[str, str | None]]
Vector = TypeVar("Vector", ReasonCodes, Scores)


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

    in_part: bool = False
    """Only the rows of a table are asked about, each table anew; earlier answers tell of the others."""
    asked: Rows | None = None
    """The rows that the answers are about, None for all."""
    failed: bool = False
    """Some answer is missing, whatever the failure policy made of that."""
    codes: ReasonCodes | None = None
    reasons: tuple[Status, ...] = ()
    scores: scheduling_pb2.ScoreResponse | None = None
    failure: SidecarError | None = None
    """What went wrong where Filter was to bring the scores too."""
    raw: Scores | None = None
    normalization: int = scheduling_pb2.NORMALIZATION_NONE
    reserve_sent: bool = False
    skip_pre_bind: bool = False
    metadata_patch: MetadataPatch | None = None
    shown: list[Callable[[], None]] = field(default_factory=list)
    """What takes back the patches that plugins see already."""
    reserved_on: int = 0
    """Which start of the connection answered Reserve."""

    def candidates(self, n: int) -> scheduling_pb2.Candidates | None:
        """The rows to ask about, None for all of them."""
        if self.asked is None:
            return None
        return scheduling_pb2.Candidates(bitmap=bitmap(self.asked, n))

    def ask_about(self, rows: Rows) -> None:
        """Ask anew, of those rows only."""
        self.codes = self.scores = self.failure = self.raw = None
        self.asked = rows


class SidecarPlugin(
    FilterPlugin,
    NormalizeScorePlugin,
    ReservePlugin,
    PermitPlugin,
    PreBindPlugin,
    PostBindPlugin,
    EnqueueExtensions,
):
    """One plugin in one profile.

    The plugin answers for the rows of the snapshot that its state follows; other tables of the same nodes get
    their answers by the nodes' names.
    """

    in_process = False

    def __init__(self, caller: Caller, handle: Handle) -> None:
        self._caller = caller
        self._handle = handle
        self._standing = Standing(caller.connection, caller.feed, caller.pods)
        self.changes = caller.feed.touched

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

    # Equal pods.

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

    # Finding nodes.

    async def filter(self, state: CycleState, pod: Pod, nodes: Snapshot) -> ReasonCodes:
        """The plugin's verdict on each node. Shapes: result uint8 (n,)."""
        answers = self._answers(state)
        if answers.in_part:
            answers.ask_about(self._on_rows(every_row(len(self._handle.snapshot)), nodes))
        if answers.codes is None:
            answers.codes = await self._ask_filter(state, pod, answers)
        return self._on_rows(answers.codes, nodes)

    async def _ask_filter(self, state: CycleState, pod: Pod, answers: Answers) -> ReasonCodes:
        n = len(self._handle.snapshot)
        if not self._offers(FILTER):
            return all_pass(n)
        try:
            if self._offers(SCORE) and not self._caller.connection.capabilities.score_needs_feasible:
                return await self._ask_both(state, pod, answers, n)
            request = scheduling_pb2.FilterRequest(
                call=self._caller.head(state, pod), candidates=answers.candidates(n)
            )
            response = await self._caller.ask("Filter", request, state)
            return self._verdicts(request, response, answers, n)
        except SidecarError:
            answers.failed = True
            if self._policy(ExtensionPoint.FILTER) is FailurePolicy.FAIL:
                raise
            return all_pass(n)

    async def _ask_both(self, state: CycleState, pod: Pod, answers: Answers, n: int) -> ReasonCodes:
        """Filter, and keep the scores for when they are asked for."""
        request = scheduling_pb2.FilterScoreRequest(
            call=self._caller.head(state, pod), candidates=answers.candidates(n)
        )
        try:
            both = await self._caller.ask("FilterScore", request, state)
            codes = self._verdicts(request, both.filter, answers, n)
        except SidecarError as error:
            answers.failure = error
            raise
        if both.HasField("score"):
            answers.scores = both.score
        elif (
            codes if answers.asked is None else codes[answers.asked]
        ).all() or both.filter.status.code == common_pb2.CODE_SKIP:
            answers.raw = np.zeros(n, dtype=np.int64)
        else:
            answers.failure = ProtocolError(self.name, "FilterScore let nodes pass and did not score them")
        return codes

    def _verdicts(
        self, request: Any, response: scheduling_pb2.FilterResponse, answers: Answers, n: int
    ) -> ReasonCodes:
        status = status_of(self.name, response.status)
        self._caller.check_generation(request, response.generation)
        if status.rejected:
            answers.reasons = (status,)
            return np.ones(n, dtype=np.uint8)
        if status.skip:
            return all_pass(n)
        if not status.ok:
            raise CallFailedError(self.name, f"Filter says {status.code}: {status.message}")
        if not response.HasField("verdicts"):
            raise ProtocolError(self.name, "Filter says Success and gives no verdicts")
        codes, answers.reasons = verdicts_of(self.name, response.verdicts, n, answers.asked)
        return codes

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

    # Scoring.

    async def score(self, state: CycleState, pod: Pod, nodes: Snapshot) -> Scores:
        """The raw scores, zero where the plugin has no opinion. Shapes: result int64 (n,)."""
        answers = self._answers(state)
        if answers.in_part:
            rows = self._on_rows(every_row(len(self._handle.snapshot)), nodes)
            if answers.asked is None or not np.isin(rows, answers.asked).all():
                answers.ask_about(rows)
        if answers.raw is None:
            answers.raw = await self._ask_score(state, pod, answers)
        return self._on_rows(answers.raw, nodes)

    async def _ask_score(self, state: CycleState, pod: Pod, answers: Answers) -> Scores:
        n = len(self._handle.snapshot)
        no_opinion = np.zeros(n, dtype=np.int64)
        if not self._offers(SCORE):
            return no_opinion
        try:
            if answers.failure is not None:
                raise answers.failure
            response = answers.scores
            if response is None:
                request = scheduling_pb2.ScoreRequest(
                    call=self._caller.head(state, pod), candidates=answers.candidates(n)
                )
                response = await self._caller.ask("Score", request, state)
                self._caller.check_generation(request, response.generation)
            return self._raw_scores(response, answers, n)
        except SidecarError:
            answers.failed = True
            if self._policy(ExtensionPoint.SCORE) is FailurePolicy.FAIL:
                raise
            return no_opinion

    def _raw_scores(self, response: scheduling_pb2.ScoreResponse, answers: Answers, n: int) -> Scores:
        status = status_of(self.name, response.status)
        if status.skip:
            return np.zeros(n, dtype=np.int64)
        if not status.ok:
            raise CallFailedError(self.name, f"Score says {status.code}: {status.message}")
        answers.normalization = response.scores.normalization
        return scores_of(self.name, response.scores, n)

    def normalize_score(self, state: CycleState, pod: Pod, scores: Scores) -> Scores:
        """The scores of the nodes that are left, mapped as the plugin asked."""
        del pod
        try:
            return normalized(self.name, scores, self._answers(state).normalization)
        except SidecarError:
            self._answers(state).failed = True
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

    async def _ask_of_node(self, name: str, request: Any, state: CycleState) -> Any:
        """Ask; what the plugin says of that node may be another thing from then on, for any profile."""
        self._caller.feed.touched.note(request.node_name)
        try:
            return await self._caller.ask(name, request, state)
        finally:
            self._caller.feed.touched.note(request.node_name)

    async def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """Let the plugin hold what the pod is going to use."""
        call = self._caller.head(state, pod)
        self._caller.feed.attempts[pod.uid] = call.pod.attempt
        if not self._offers(RESERVE):
            return SUCCESS
        answers = self._answers(state)
        answers.reserve_sent = True
        request = scheduling_pb2.ReserveRequest(call=call, node_name=node_name)
        try:
            response = await self._ask_of_node("Reserve", request, state)
            status = status_of(self.name, response.status)
            answers.metadata_patch = _metadata_patch(self.name, response)
        except SidecarError as error:
            return self._unless_ignored(ExtensionPoint.RESERVE, error)
        answers.skip_pre_bind = response.skip_pre_bind
        answers.reserved_on = self._caller.connection.starts
        if status.ok and answers.metadata_patch is not None:
            self._bound_with(state, pod, answers.metadata_patch)
        return status

    async def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Let the plugin give it back; a plugin that cannot be asked learns it from the state."""
        answers = self._answers(state)
        while answers.shown:
            answers.shown.pop()()
        if not answers.reserve_sent:
            return
        call = self._caller.head(state, pod, with_state=False)
        request = scheduling_pb2.UnreserveRequest(call=call, node_name=node_name)
        try:
            await self._ask_of_node("Unreserve", request, state)
        except SidecarError as error:
            log.warning("not unreserved pod=%s error=%s", pod.key, error)

    async def permit(self, state: CycleState, pod: Pod, node_name: str) -> PermitResult:
        """Ask for leave to bind."""
        if not self._offers(PERMIT):
            return PermitResult()
        request = scheduling_pb2.PermitRequest(call=self._caller.head(state, pod), node_name=node_name)
        try:
            response = await self._ask_of_node("Permit", request, state)
            status = status_of(self.name, response.status)
            if status.code is Code.WAIT and not response.HasField("timeout"):
                raise ProtocolError(self.name, "Permit says Wait and not for how long")
        except SidecarError as error:
            return PermitResult(self._unless_ignored(ExtensionPoint.PERMIT, error))
        return PermitResult(status, response.timeout.seconds + response.timeout.nanos / 1e9)

    def pre_bind_pre_flight(self, state: CycleState, pod: Pod, node_name: str) -> PreFlightResult:
        """Skip where there is nothing to do, or nothing that the binding itself does not do."""
        del pod, node_name
        answers = self._answers(state)
        bound_with = self._still_reserved(answers) and _fits_a_binding(answers.metadata_patch)
        idle = not self._offers(PRE_BIND) or answers.skip_pre_bind or bound_with
        return PreFlightResult(SKIP if idle else SUCCESS)

    def _still_reserved(self, answers: Answers) -> bool:
        """Whether the plugin that answered Reserve is still the one there."""
        connection = self._caller.connection
        return connection.ready and answers.reserved_on == connection.starts

    def _bound_with(self, state: CycleState, pod: Pod, patch: MetadataPatch) -> bool:
        """Let the binding carry the patch, if it can."""
        if not _fits_a_binding(patch):
            return False
        state.binding_annotations.update({k: v for k, v in patch["annotations"].items() if v is not None})
        self._answers(state).shown.append(self._caller.patched(pod, patch))
        return True

    async def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """Let the plugin prepare, and write the labels and annotations that it asks for.

        What it asked for at Reserve is written without another call, unless the connection was lost since.
        """
        answers = self._answers(state)
        if answers.metadata_patch is not None and self._still_reserved(answers):
            return await self._write(pod, answers.metadata_patch)
        request = scheduling_pb2.PreBindRequest(call=self._caller.head(state, pod), node_name=node_name)
        try:
            response = await self._ask_of_node("PreBind", request, state)
            status = status_of(self.name, response.status)
            patch = _metadata_patch(self.name, response)
        except SidecarError as error:
            return self._unless_ignored(ExtensionPoint.PRE_BIND, error)
        if not (status.ok and patch) or self._bound_with(state, pod, patch):
            return status
        return await self._write(pod, patch)

    async def _write(self, pod: Pod, patch: MetadataPatch) -> Status:
        # First here, so that a plugin that starts now is told of it, too.
        undo = self._caller.patched(pod, patch)
        try:
            await self._handle.writer.patch_pod_metadata(pod, patch)
        except Exception:
            undo()
            raise
        return SUCCESS

    async def post_bind(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Tell the plugin that the binding was written."""
        if self._offers(POST_BIND):
            call = self._caller.head(state, pod, with_state=False)
            request = scheduling_pb2.PostBindRequest(call=call, node_name=node_name)
            await self._ask_of_node("PostBind", request, state)

    def _offers(self, point: int) -> bool:
        """Whether to call it; a plugin that never answered is called where the list says so, and fails."""
        connection = self._caller.connection
        return connection.offers(point) if connection.starts else point in (FILTER, RESERVE)

    def _policy(self, point: ExtensionPoint) -> FailurePolicy:
        return self._caller.connection.spec.policy_at(point)

    def _unless_ignored(self, point: ExtensionPoint, error: SidecarError) -> Status:
        return SUCCESS if self._policy(point) is FailurePolicy.IGNORE else failed(error)


def _fits_a_binding(patch: MetadataPatch | None) -> bool:
    """Whether a binding can carry the patch: annotations only, and none to remove."""
    return patch is not None and patch.keys() == {"annotations"} and None not in patch["annotations"].values()


def _metadata_patch(plugin: str, response: Any) -> MetadataPatch | None:
    """The merge patch of labels and annotations that the response asks for, if any.

    Raises: ProtocolError where it is none.
    """
    if not response.HasField("metadata_patch"):
        return None
    try:
        patch = msgspec.json.decode(response.metadata_patch, type=MetadataPatch)
    except msgspec.DecodeError as error:
        raise ProtocolError(plugin, f"metadata patch: {error}") from error
    if unknown := patch.keys() - {"annotations", "labels"}:
        raise ProtocolError(plugin, f"metadata patch may not change {', '.join(sorted(unknown))}")
    return patch
