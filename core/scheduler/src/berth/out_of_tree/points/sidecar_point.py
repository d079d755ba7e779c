"""The state of one sidecar in one scheduling cycle, and what its extension points have in common.

Source: docs/protocol.md "Scheduling calls".
"""

from collections.abc import Callable

import msgspec

from berth.config.catalogue import ExtensionPoint
from berth.config.out_of_tree.sidecars import FailurePolicy
from berth.evaluation.caching.answer_columns import AnswerColumns
from berth.evaluation.caching.plugin_columns import PluginColumns
from berth.framework.attempts.cycle_record import CycleRecord
from berth.framework.attempts.cycle_state import CycleState
from berth.framework.handle import Handle
from berth.framework.hypothetical_pod import HypotheticalPod
from berth.framework.interface import Plugin
from berth.framework.status import SUCCESS, Status, failed, without_frames
from berth.objects.api_object import ObjectMeta
from berth.objects.pods.pod import Pod
from berth.objects.pods.pod_spec import PodSpec
from berth.out_of_tree.calls import Caller
from berth.out_of_tree.connections.connection import PluginConnection
from berth.out_of_tree.errors import SidecarError
from berth.out_of_tree.points.asking_ahead import LookAhead
from berth.out_of_tree.points.metadata_patch import MetadataPatch
from berth.out_of_tree.points.response_validity import ResponseValidity
from berth.snapshot.bounded_cache import BoundedCache
from berth_plugin_proto import identity_pb2

FILTER = identity_pb2.EXTENSION_POINT_FILTER
RESERVE = identity_pb2.EXTENSION_POINT_RESERVE
PERMIT = identity_pb2.EXTENSION_POINT_PERMIT
PRE_ENQUEUE = identity_pb2.EXTENSION_POINT_PRE_ENQUEUE

MAX_FAILED_PODS = 10_000
"""Those that failed because of a plugin, by name alone: a pod may be gone before the plugin is back."""


class SidecarCycleState(msgspec.Struct):
    """The plugin's answers about one pod in one cycle, and the version of the plugin that gives them."""

    caller: Caller
    """The version of the plugin that the attempt began with."""
    supposed: HypotheticalPod | None = None
    """The pod is a hypothetical one of explain: answers about it must not be cached."""
    excused: bool = False
    """The attempt began while the plugin was being detached: it is not called."""
    failed: bool = False
    """A call failed, whether or not the failure policy ignored that."""
    columns: AnswerColumns | None = None
    """Its filter results and scores, of this cycle or cached; None before they are read."""
    passes_over: bool = False
    """Filter failed, and the failure policy lets every node pass."""
    failure: SidecarError | None = None
    """The error of the scores, where Filter and Score were asked in one call."""
    reserve_sent: bool = False
    skip_pre_bind: bool = False
    metadata_patch: MetadataPatch | None = None
    shown: list[Callable[[], None]] = msgspec.field(default_factory=list)
    """Undo the metadata patches that plugins already see."""
    reserved_on: int = 0
    """Which start of the connection answered Reserve."""


def named_alone(pod: Pod) -> Pod:
    """The part of the pod that requeueing it needs, of bounded size: its name and its group."""
    metadata = ObjectMeta(name=pod.name, namespace=pod.namespace, uid=pod.uid)
    return Pod.of(metadata, PodSpec(scheduling_group=pod.spec.scheduling_group))


class SidecarPoint(Plugin):
    """The base of a sidecar's extension points.

    `caller` calls its current version; an attempt calls the version that it began with to its end.
    """

    in_process = False

    def __init__(self, caller: Caller, handle: Handle, look_ahead: LookAhead, cached: PluginColumns) -> None:
        self.name = caller.plugin
        """The name in the plugin list and in profiles."""
        self._key = SidecarCycleState, caller.plugin
        self._look_ahead = look_ahead
        self.cached = cached
        """What it answered about nodes, by its own signature of the pod."""
        self.caller = caller
        self._validity = ResponseValidity(lambda: self.caller)
        self.leaving = False
        """Whether only attempts that began with it are still its business."""
        self._handle = handle
        self._failed: BoundedCache[str, Pod] = BoundedCache(max_entries=MAX_FAILED_PODS)
        """By UID, the pods that failed for the plugin since it answered last; of too many the latest."""
        self._pinned: dict[tuple[str, int], Caller] = {}

    def use(self, caller: Caller) -> None:
        """Use that version in new attempts."""
        self.caller = caller

    def _answers(self, state: CycleState) -> SidecarCycleState:
        """This plugin's part of the cycle's state."""
        known: SidecarCycleState | None = state.get(self._key)
        if known is None:
            known = SidecarCycleState(self.caller, state.get(HypotheticalPod), self.leaving)
            state.write(self._key, known)
            record = state.get(CycleRecord)
            if record is not None and record.attempt:
                self._pinned[record.pod.uid, record.attempt] = self.caller
        return known

    def wake_failed(self) -> None:
        """Requeue the pods that failed because of the plugin, which answers again."""
        if failed_pods := self._failed.clear():
            self._handle.activate(failed_pods)

    def wake_probe(self) -> bool:
        """Requeue one of these pods as the probe of an open circuit; False where there is none."""
        if self._failed:
            self._handle.activate([self._failed.pop_oldest()])
            return True
        return False

    def release(self, record: CycleRecord) -> Caller:
        """End the attempt's use of its version of the plugin, and return that version."""
        if record.result == "scheduled":
            self._failed.drop(record.pod.uid)
        return self._pinned.pop((record.pod.uid, record.attempt), self.caller)

    def serves(self, connection: PluginConnection) -> int:
        """How many attempts began with the version behind that connection and have not ended."""
        return sum(caller.connection is connection for caller in self._pinned.values())

    def _offers(self, caller: Caller, point: int) -> bool:
        """Whether to call the plugin at that extension point.

        A plugin that was never connected is called at the points that its configuration lists, and fails; but
        PreEnqueue is left out where it also has Filter: pods then fail there, where users see the reason.
        """
        connection = caller.connection
        if connection.starts:
            return connection.offers(point)
        if point == PRE_ENQUEUE:
            return connection.spec.policy_at(ExtensionPoint.FILTER) is FailurePolicy.IGNORE
        return point in (FILTER, RESERVE)

    def _ignored(self, state: CycleState, point: ExtensionPoint, pod: Pod, error: SidecarError) -> bool:
        """Report the failure; True where the failure policy ignores it."""
        answers = self._answers(state)
        caller = answers.caller
        policy = caller.connection.spec.policy_at(point, pod)
        if answers.supposed is not None:
            return policy is FailurePolicy.IGNORE
        caller.connection.failures.add(point.value, str(error), policy, pod.key)
        if policy is not FailurePolicy.IGNORE:
            self._failed.put(pod.uid, named_alone(pod))
            return False
        without_frames(error)
        caller.around.metrics.ignored(self.name, point.value)
        record = state.get(CycleRecord)
        if record is not None:
            record.ignore(f"{point.value}: {error}")
        return True

    def _unless_ignored(
        self, state: CycleState, point: ExtensionPoint, pod: Pod, error: SidecarError
    ) -> Status:
        return SUCCESS if self._ignored(state, point, pod, error) else failed(error)
