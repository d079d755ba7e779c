"""PreEnqueue of a sidecar, and the events after which a gated pod is checked again.

Source: docs/protocol.md.
"""

from collections.abc import Sequence

from berth.config.catalogue import ExtensionPoint
from berth.evaluation.caching.plugin_columns import PluginColumns
from berth.framework.attempts.cycle_state import CycleState
from berth.framework.cluster_event import ClusterEventWithHint
from berth.framework.handle import Handle
from berth.framework.interface import EnqueueExtensions, MaybeAwaitable, PreEnqueuePlugin
from berth.framework.status import SUCCESS, Code, Status, failed, unresolvable
from berth.objects.pods.pod import Pod
from berth.out_of_tree.calls import Caller
from berth.out_of_tree.errors import ProtocolError, SidecarError
from berth.out_of_tree.packing import status_of
from berth.out_of_tree.points.asking_ahead import LookAhead
from berth.out_of_tree.points.sidecar_point import (
    MAX_FAILED_PODS,
    PRE_ENQUEUE,
    SidecarPoint,
    named_alone,
)
from berth.out_of_tree.queueing.waiting_hints import WaitingHints
from berth.snapshot.bounded_cache import BoundedCache
from berth_plugin_proto import scheduling_pb2

_NO_VERDICTS = frozenset({Code.SKIP, Code.WAIT})
RETRY_SECONDS = 5.0
"""How long a pod stays gated by a failed call before PreEnqueue runs again."""


class PreEnqueuePoint(SidecarPoint, PreEnqueuePlugin, EnqueueExtensions):
    """PreEnqueue and EventsToRegister."""

    def __init__(
        self,
        caller: Caller,
        handle: Handle,
        look_ahead: LookAhead,
        cached: PluginColumns,
        hints: WaitingHints,
    ) -> None:
        super().__init__(caller, handle, look_ahead, cached)
        self._hints = hints
        self._held: dict[str, Pod] = {}
        self._sent: BoundedCache[str, None] = BoundedCache(max_entries=MAX_FAILED_PODS)
        """The pods whose event says that the plugin holds them back, by UID."""

    def events_to_register(self) -> Sequence[ClusterEventWithHint]:
        """All events; the plugin's announced interest is applied once it is known."""
        return self._hints.registrations()

    def pre_enqueue(self, pod: Pod) -> MaybeAwaitable[Status]:
        """The plugin's status, or an awaitable of it where the sidecar has to be called."""
        preemption = self._handle.preemption
        if preemption is not None and preemption.running(pod.uid):
            return unresolvable("waiting for the preemption for this pod to be finished")
        if not self._offers(self.caller, PRE_ENQUEUE):
            return SUCCESS
        return self._ask_gate(self.caller, pod)

    async def _ask_gate(self, caller: Caller, pod: Pod) -> Status:
        state = CycleState()
        request = scheduling_pb2.PreEnqueueRequest(call=caller.head(state, pod, with_state=False))
        try:
            status = await caller.ask("PreEnqueue", request, state, self._read_gate)
        except SidecarError as error:
            if self._ignored(state, ExtensionPoint.PRE_ENQUEUE, pod, error):
                return SUCCESS
            status = failed(error)
        if status.code is Code.ERROR:
            self._ask_again_later(pod, status)
        else:
            self._sent.drop(pod.uid)
        return status

    def _read_gate(self, response: scheduling_pb2.PreEnqueueResponse) -> Status:
        status = status_of(self.name, response.status)
        if status.code in _NO_VERDICTS:
            raise ProtocolError(self.name, f"PreEnqueue says {status.code}")
        return status

    def _ask_again_later(self, pod: Pod, status: Status) -> None:
        """After a failed call, run PreEnqueue again in a while, or once the plugin is back."""
        if pod.uid not in self._sent:
            self._sent.put(pod.uid, None)
            text = f"held back by plugin {self.name}: {status.message}"
            self._handle.recorder.event(pod, "Warning", "FailedScheduling", "Scheduling", text)
        if not self._held:
            self._handle.background.call_later(RETRY_SECONDS, self._ask_again)
        self._held[pod.uid] = named_alone(pod)

    def _ask_again(self) -> None:
        """Run PreEnqueue again for all gated pods; if the plugin is disconnected, its return does that."""
        held, self._held = self._held, {}
        if self.caller.connection.ready:
            self._handle.activate(held.values())
