"""Where a pod stands on its way to a node, and what has to happen for it to go on.

queue (gated, active, backing off, unschedulable) -> cycle -> Permit -> PreBind -> binding -> bound
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice

import msgspec

from berth.binding.pods_in_pre_bind import PodsInPreBind
from berth.binding.waiting_pods import WaitingPod, WaitingPods
from berth.cache.cache import Cache
from berth.explain.schema import Awaited, Nomination, PodState, StateKind, Wait, rfc3339
from berth.framework.clock import Clock, wall_time
from berth.framework.cluster_event import ActionType
from berth.framework.handle import Nominator
from berth.framework.queueing.queued_pod import QueuedPodInfo
from berth.framework.runtime import Framework
from berth.objects.pods.pod import Pod
from berth.objects.pods.pod_volumes import claim_uses
from berth.queue.queue_contents import GatedBy
from berth.queue.requeueing.queue_profile import QueueProfile
from berth.queue.scheduling_queue import SchedulingQueue
from berth.queue.sub_queues import ACTIVE, BACKOFF

SCHEDULING_GATES = "SchedulingGates"
MAX_PODS = 10
MAX_EVENTS = 100
MAX_PROFILES = 50


class PodStates(msgspec.Struct, frozen=True, kw_only=True):
    """Says of pods where they are; the scheduler's parts are only read."""

    queue: SchedulingQueue
    cache: Cache
    waiting_pods: WaitingPods
    pods_in_pre_bind: PodsInPreBind
    clock: Clock
    frameworks: Mapping[str, Framework]
    queue_profiles: Mapping[str, QueueProfile]

    def of(self, pod: Pod) -> PodState:
        """The state of a pod that is known, in the version that the watch brought or that is assumed."""
        if pod.node_name:
            return self._placed(pod)
        if pod.terminating:
            return PodState(kind=StateKind.DELETING, deleting=True)
        if pod.spec.scheduler_name not in self.frameworks:
            return PodState(kind=StateKind.NOT_OURS, profiles=list(self.frameworks)[:MAX_PROFILES])
        record = self.queue.record(pod.namespace, pod.name)
        if record is None:
            return PodState(kind=StateKind.SCHEDULING, nomination=self._nomination(pod))
        return self._waiting(record)

    def _placed(self, pod: Pod) -> PodState:
        deleting = pod.terminating
        if not self.cache.is_assumed(pod.uid):
            return PodState(kind=StateKind.BOUND, node=pod.node_name, deleting=deleting)
        waiting = self.waiting_pods.get(pod.uid)
        if waiting is not None:
            return PodState(
                kind=StateKind.WAITING_AT_PERMIT,
                node=pod.node_name,
                since=self.shown(waiting.since),
                until=self.shown(min(waiting.until.values())) if waiting.until else "",
                waits_for=list(self._waits(waiting)),
                deleting=deleting,
            )
        pre_bind = self.pods_in_pre_bind.get(pod.uid)
        if pre_bind is not None and pre_bind.plugins:
            waits = [
                Wait(plugin=plugin, message=pre_bind_subject(pod, plugin)) for plugin in pre_bind.plugins
            ]
            return PodState(
                kind=StateKind.IN_PRE_BIND, node=pod.node_name, waits_for=waits, deleting=deleting
            )
        return PodState(kind=StateKind.BINDING, node=pod.node_name, deleting=deleting)

    def shown(self, moment: float) -> str:
        """The wall clock's time of a moment of the monotonic clock, as the API writes it."""
        return rfc3339(wall_time(self.clock, moment))

    def _waits(self, waiting: WaitingPod) -> Iterator[Wait]:
        for plugin in waiting.pending_plugins():
            message = waiting.messages.get(plugin, "")
            yield Wait(plugin=plugin, message=message, until=self.shown(waiting.until[plugin]))

    def _waiting(self, record: QueuedPodInfo) -> PodState:
        pod, gate = record.pod, self.queue.gate_of(record)
        if gate is not None:
            return self._gated(record, gate)
        at = self.queue.position_of(record)
        kinds = {ACTIVE: StateKind.ACTIVE, BACKOFF: StateKind.BACKING_OFF}
        kind = kinds.get(at.place, StateKind.UNSCHEDULABLE)
        unschedulable = kind is StateKind.UNSCHEDULABLE
        return PodState(
            kind=kind,
            since=self.shown(record.timestamp),
            until=self.shown(at.until) if at.until else "",
            attempts=record.attempts,
            position=at.position,
            rejected_by=sorted(record.rejectors),
            awaited=list(self._awaited(pod, sorted(record.rejectors)))[:MAX_EVENTS] if unschedulable else [],
            nomination=self._nomination(pod),
        )

    def _gated(self, record: QueuedPodInfo, gate: GatedBy) -> PodState:
        pod, plugin, message = record.pod, gate.plugin, gate.message
        own = gate.pod.uid == pod.uid
        gates = (
            [each.name for each in pod.spec.scheduling_gates][:MAX_EVENTS]
            if own and plugin == SCHEDULING_GATES
            else []
        )
        if not own and record.group is not None and plugin == SCHEDULING_GATES:
            message = f"pod {gate.pod.key} of its group: {message}"
        return PodState(
            kind=StateKind.GATED if gates else StateKind.NOT_QUEUED,
            since=self.shown(record.timestamp),
            attempts=record.attempts,
            gates=gates,
            waits_for=[Wait(plugin=plugin, message=message)],
            awaited=list(self._awaited(pod, [plugin] if plugin else []))[:MAX_EVENTS],
            nomination=self._nomination(pod),
        )

    def _awaited(self, pod: Pod, rejectors: Iterable[str]) -> Iterator[Awaited]:
        """The events that the rejectors wait for, with their hints still to be asked."""
        profile = self.queue_profiles.get(pod.spec.scheduler_name)
        if profile is None:
            return
        for plugin in rejectors:
            by_resource: dict[str, ActionType] = {}
            for event in profile.hints.awaited_by(plugin):
                known = by_resource.get(event.resource, ActionType.NONE)
                by_resource[str(event.resource)] = known | event.action
            for resource, actions in by_resource.items():
                yield Awaited(plugin=plugin, resource=resource, actions=action_names(actions))

    def _nomination(self, pod: Pod) -> Nomination | None:
        nominator: Nominator = self.queue.nominator
        node = nominator.node_of(pod.uid) or pod.nominated_node_name
        if not node:
            return None
        info = self.cache.node_info(node)
        here = () if info is None else info.pods.values()
        leaving = sorted(other.pod.key for other in here if other.pod.terminating)
        return Nomination(node=node, leaving=leaving[:MAX_PODS], leaving_count=len(leaving))


def pre_bind_subject(pod: Pod, plugin: str) -> str:
    """What the plugin has to bring about before the pod is bound, as far as the pod says."""
    if plugin == "VolumeBinding":
        names = [claim.name for claim in islice(claim_uses(pod), MAX_PODS)]
        return f"the volumes of {', '.join(names)}" if names else "volumes"
    if plugin == "DynamicResources":
        names = [claim.name for claim in pod.spec.resource_claims][:MAX_PODS]
        return f"devices for {', '.join(names)}" if names else "devices"
    return ""


def action_names(actions: ActionType) -> list[str]:
    """The actions by upstream's names, a mask that has a name by that one."""
    if actions.text:
        return [actions.text]
    update = [ActionType.UPDATE.text] if actions & ActionType.UPDATE == ActionType.UPDATE else []
    left = actions & ~ActionType.UPDATE if update else actions
    return [*(ActionType(bit).text for bit in left), *update]
