"""Reserve, Permit, PreBind, Bind and PostBind of a sidecar.

The configured failure policy decides on failed calls: Fail ends the attempt with an error that names the
plugin, Ignore goes on as if the plugin had no opinion.

Source: docs/protocol.md.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from berth.config.catalogue import ExtensionPoint
from berth.framework.attempts.cycle_state import CycleState
from berth.framework.interface import (
    BindPlugin,
    MaybeAwaitable,
    PermitPlugin,
    PermitResult,
    PostBindPlugin,
    PreBindPlugin,
    PreFlightResult,
    ReservePlugin,
)
from berth.framework.status import SKIP, SUCCESS, Code, Status, failed
from berth.objects.pods.pod import Pod
from berth.out_of_tree.calls import Caller, attempt_of
from berth.out_of_tree.errors import NotConnectedError, PluginFailedError, ProtocolError, SidecarError
from berth.out_of_tree.packing import status_of
from berth.out_of_tree.points.metadata_patch import MetadataPatch, metadata_patch
from berth.out_of_tree.points.sidecar_point import PERMIT, RESERVE, SidecarCycleState, SidecarPoint
from berth_plugin_proto import identity_pb2, scheduling_pb2

PRE_BIND = identity_pb2.EXTENSION_POINT_PRE_BIND
BIND = identity_pb2.EXTENSION_POINT_BIND
LEAVE = PermitResult()
NOTHING_TO_DO, SOMETHING_TO_DO = PreFlightResult(SKIP), PreFlightResult(SUCCESS)
R = TypeVar("R")
POST_BIND = identity_pb2.EXTENSION_POINT_POST_BIND


class ReserveBindPoint(SidecarPoint, ReservePlugin, PermitPlugin, PreBindPlugin, BindPlugin, PostBindPlugin):
    """Reserve, Permit, PreBind, Bind and PostBind."""

    def reserves_remotely(self) -> bool:
        """Whether the plugin is asked at Reserve or Permit."""
        return self._offers(self.caller, RESERVE) or self._offers(self.caller, PERMIT)

    async def _ask_of_node(
        self, caller: Caller, name: str, request: Any, state: CycleState, read: Callable[[Any], R]
    ) -> R:
        """Call the plugin about the pod's node; its cached answers for that node are invalid from then on."""
        caller.feed.touch(request.node_name)
        caller.feed.unanswered += 1
        try:
            return await caller.ask(name, request, state, read)
        finally:
            caller.feed.unanswered -= 1
            caller.feed.touch(request.node_name)
            self._look_ahead.soon()

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> MaybeAwaitable[Status]:
        """Call Reserve."""
        answers = self._answers(state)
        if answers.excused:
            return SUCCESS
        caller = answers.caller
        if self._offers(caller, RESERVE):
            return self._reserve(caller, answers, state, pod, node_name)
        caller.feed.reserving(pod.uid, attempt_of(state))
        return SUCCESS

    async def _reserve(
        self, caller: Caller, answers: SidecarCycleState, state: CycleState, pod: Pod, node_name: str
    ) -> Status:
        call = caller.head(state, pod)
        caller.feed.reserving(pod.uid, call.pod.attempt)
        answers.reserve_sent = True
        request = scheduling_pb2.ReserveRequest(call=call, node_name=node_name)

        def read(response: scheduling_pb2.ReserveResponse) -> Status:
            status = status_of(self.name, response.status)
            answers.metadata_patch = metadata_patch(caller.connection.spec, response)
            answers.skip_pre_bind = response.skip_pre_bind
            return status

        try:
            status = await self._ask_of_node(caller, "Reserve", request, state, read)
        except SidecarError as error:
            return self._unless_ignored(state, ExtensionPoint.RESERVE, pod, error)
        answers.reserved_on = caller.connection.starts
        if status.ok and answers.metadata_patch is not None:
            self._bound_with(state, pod, answers.metadata_patch)
        return status

    async def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Call Unreserve; a plugin that cannot be reached learns of it by the state stream."""
        answers = self._answers(state)
        while answers.shown:
            answers.shown.pop()()
        if not answers.reserve_sent:
            return
        call = answers.caller.head(state, pod, with_state=False)
        request = scheduling_pb2.UnreserveRequest(call=call, node_name=node_name)
        try:
            await self._ask_of_node(answers.caller, "Unreserve", request, state, _nothing)
        except SidecarError as error:
            answers.caller.connection.log.warning("not unreserved pod=%s err=%s", pod.key, error)

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> MaybeAwaitable[PermitResult]:
        """Call Permit."""
        answers = self._answers(state)
        if answers.excused or not self._offers(answers.caller, PERMIT):
            return LEAVE
        return self._permit(answers.caller, state, pod, node_name)

    async def _permit(self, caller: Caller, state: CycleState, pod: Pod, node_name: str) -> PermitResult:
        request = scheduling_pb2.PermitRequest(call=caller.head(state, pod), node_name=node_name)

        def read(response: scheduling_pb2.PermitResponse) -> PermitResult:
            status = status_of(self.name, response.status)
            if status.code is Code.WAIT and not response.HasField("timeout"):
                raise ProtocolError(self.name, "Permit says Wait and not for how long")
            return PermitResult(status, response.timeout.seconds + response.timeout.nanos / 1e9)

        try:
            return await self._ask_of_node(caller, "Permit", request, state, read)
        except SidecarError as error:
            return PermitResult(self._unless_ignored(state, ExtensionPoint.PERMIT, pod, error))

    def pre_bind_pre_flight(self, state: CycleState, pod: Pod, node_name: str) -> PreFlightResult:
        """Skip where PreBind has nothing to write, or where the Binding itself can carry it."""
        del pod, node_name
        answers = self._answers(state)
        if answers.excused or answers.skip_pre_bind or not self._offers(answers.caller, PRE_BIND):
            return NOTHING_TO_DO
        bound_with = self._still_reserved(answers) and _fits_a_binding(answers.metadata_patch)
        return NOTHING_TO_DO if bound_with else SOMETHING_TO_DO

    def _still_reserved(self, answers: SidecarCycleState) -> bool:
        """Whether the plugin that answered Reserve is still connected."""
        connection = answers.caller.connection
        return connection.ready and answers.reserved_on == connection.starts

    def _bound_with(self, state: CycleState, pod: Pod, patch: MetadataPatch) -> bool:
        """The patch of annotations that the Binding itself can carry, if it can."""
        if not _fits_a_binding(patch):
            return False
        state.binding_annotations.update({k: v for k, v in patch["annotations"].items() if v is not None})
        answers = self._answers(state)
        answers.shown.append(answers.caller.around.patched(pod, patch))
        return True

    async def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """Call PreBind, and write the labels and annotations that it asks for.

        What it asked for at Reserve is written without another call, unless the connection was lost.
        """
        answers = self._answers(state)
        caller = answers.caller
        if answers.metadata_patch is not None and self._still_reserved(answers):
            return await self._write(pod, answers.metadata_patch)
        request = scheduling_pb2.PreBindRequest(call=caller.head(state, pod), node_name=node_name)

        def read(response: scheduling_pb2.PreBindResponse) -> tuple[Status, MetadataPatch | None]:
            return status_of(self.name, response.status), metadata_patch(caller.connection.spec, response)

        try:
            status, patch = await self._ask_of_node(caller, "PreBind", request, state, read)
        except SidecarError as error:
            return self._unless_ignored(state, ExtensionPoint.PRE_BIND, pod, error)
        if not (status.ok and patch) or self._bound_with(state, pod, patch):
            return status
        return await self._write(pod, patch)

    async def _write(self, pod: Pod, patch: MetadataPatch) -> Status:
        # Applied to the kept JSON first, so that a plugin that starts now receives it, too.
        undo = self.caller.around.patched(pod, patch)
        try:
            await self._handle.writer.patch_pod_metadata(pod, patch)
        except Exception:
            undo()
            raise
        return SUCCESS

    async def bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """Call Bind; where that fails, read from the API server whether the pod was bound."""
        answers = self._answers(state)
        caller = answers.caller
        if answers.excused or not self._offers(caller, BIND):
            return SKIP
        request = scheduling_pb2.BindRequest(
            call=caller.head(state, pod), node_name=node_name, annotations=state.binding_annotations
        )
        try:
            status = await self._ask_of_node(
                caller, "Bind", request, state, lambda response: status_of(self.name, response.status)
            )
        except NotConnectedError as error:
            return SKIP if self._ignored(state, ExtensionPoint.BIND, pod, error) else failed(error)
        except SidecarError as error:
            status = failed(error)
        if status.ok or status.skip:
            return status
        return await self._settled(state, pod, node_name, status)

    async def _settled(self, state: CycleState, pod: Pod, node_name: str, status: Status) -> Status:
        """The status after a failed Bind: success where the pod was bound all the same."""
        caller = self._answers(state).caller
        if caller.around.landed is not None and await caller.around.landed(pod, node_name):
            return SUCCESS
        error = status.error
        if not isinstance(error, SidecarError):
            error = PluginFailedError(self.name, f"Bind says {status.code}: {status.message}")
        return SKIP if self._ignored(state, ExtensionPoint.BIND, pod, error) else status

    def wants_post_bind(self, state: CycleState) -> bool:
        """Whether the plugin is called in this attempt, and announced PostBind."""
        answers = self._answers(state)
        return not answers.excused and self._offers(answers.caller, POST_BIND)

    async def post_bind(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Call PostBind."""
        if self.wants_post_bind(state):
            caller = self._answers(state).caller
            call = caller.head(state, pod, with_state=False)
            request = scheduling_pb2.PostBindRequest(call=call, node_name=node_name)
            try:
                await self._ask_of_node(caller, "PostBind", request, state, _nothing)
            except SidecarError as error:
                if not self._ignored(state, ExtensionPoint.POST_BIND, pod, error):
                    raise


def _nothing(response: Any) -> None:
    """Reads a response without fields."""
    del response


def _fits_a_binding(patch: MetadataPatch | None) -> bool:
    """Whether a Binding can carry the patch: it adds annotations and does nothing else."""
    return (
        patch is not None
        and patch.keys() == {"annotations"}
        and all(value is not None for value in patch["annotations"].values())
    )
