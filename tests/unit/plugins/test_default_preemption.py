"""What the plugin adds to preemption: its prefix, its gate, its event."""

import pytest

from berth.framework.attempts.cycle_state import CycleState
from berth.framework.attempts.diagnosis import Diagnosis
from berth.framework.cluster_event import ActionType, EventResource, QueueingHint
from berth.framework.interface import CLEAR_NOMINATION, NominatingInfo, NominatingMode, PostFilterResult
from berth.framework.status import SUCCESS, Code, failed, unresolvable, unschedulable
from berth.objects.api_object import ObjectMeta
from berth.objects.pod_groups import PodGroup, PodGroupSpec, SchedulingConstraints
from berth.objects.pods.pod_spec import SchedulingGroup
from berth.plugins.default_preemption import DefaultPreemption
from berth.testing.builders import make_pod
from berth.testing.handles import make_plugin

POD = make_pod()
OF_GROUP = make_pod(scheduling_group=SchedulingGroup("g"))
WAITING = unresolvable("waiting for the preemption for this pod to be finished")


class Preemption:
    """Answers as scripted and remembers what it was asked."""

    def __init__(self, result=None, running=()):
        self.result, self.of_uids = result, set(running)
        self.attempts, self.requests = 0, []

    def attempted(self):
        self.attempts += 1

    async def preempt(self, request):
        self.requests.append(request)
        return self.result

    def running(self, uid):
        return uid in self.of_uids


def plugin(preemption, **gates):
    made = make_plugin(DefaultPreemption, gates=gates)
    made.handle.preemption = preemption
    return made


async def post_filter(result, pod=POD, **gates):
    preemption = Preemption(result)
    return await plugin(preemption, **gates).post_filter(CycleState(), pod, Diagnosis()), preemption


NOMINATED = NominatingInfo(NominatingMode.OVERRIDE, "n0")


@pytest.mark.parametrize(
    ("status", "code", "message"),
    [
        (SUCCESS, Code.SUCCESS, ""),
        (unschedulable("not today"), Code.UNSCHEDULABLE, "preemption: not today"),
        (unschedulable("a", "b"), Code.UNSCHEDULABLE, "preemption: a, b"),
        (failed("broken"), Code.ERROR, "preemption: broken"),
    ],
    ids=["success", "reason", "reasons", "error"],
)
async def test_6_1_3_a_message_gets_a_prefix(status, code, message):
    result, _ = await post_filter(PostFilterResult(status, NOMINATED))

    assert (code, message, NOMINATED) == (result.status.code, result.status.message, result.nominating_info)


async def test_6_1_3_the_arguments_are_passed_on():
    _, preemption = await post_filter(PostFilterResult(SUCCESS))
    (request,) = preemption.requests

    assert ("DefaultPreemption", POD, 10, 100) == (
        request.plugin,
        request.pod,
        request.min_candidate_nodes_percentage,
        request.min_candidate_nodes_absolute,
    )


async def test_6_1_2_pods_of_groups_do_not_preempt_alone_where_groups_preempt_together():
    result, preemption = await post_filter(None, OF_GROUP, WorkloadAwarePreemption=True)

    reason = "preemption: not eligible due to workload aware preemption enabled"
    assert (Code.UNSCHEDULABLE, reason, None) == (
        result.status.code,
        result.status.message,
        result.nominating_info,
    )
    assert [] == preemption.requests


def with_group(made, constraints):
    spec = PodGroupSpec(scheduling_constraints=constraints)
    metadata = ObjectMeta(name="g", namespace="default", uid="uid-g")
    made.handle.listers.pod_groups.put(PodGroup(metadata=metadata, spec=spec))
    return made


async def reason(made):
    result = await made.post_filter(CycleState(), OF_GROUP, Diagnosis())
    return result.status.message


TOPOLOGY_AWARE = {"TopologyAwareWorkloadScheduling": True}


async def test_6_1_1_the_group_has_to_be_there():
    assert "preemption: pod group for pod not found" == await reason(plugin(Preemption(), **TOPOLOGY_AWARE))


async def test_6_1_1_a_group_that_goes_to_one_place_does_not_preempt():
    made = with_group(plugin(Preemption(), **TOPOLOGY_AWARE), SchedulingConstraints())

    expected = "preemption: not eligible due to placement-based pod group scheduling limitation"
    assert expected == await reason(made)


async def test_6_1_1_a_group_that_goes_anywhere_does():
    preemption = Preemption(PostFilterResult(SUCCESS))

    assert "" == await reason(with_group(plugin(preemption, **TOPOLOGY_AWARE), None))
    assert 1 == len(preemption.requests)


@pytest.mark.parametrize("pod", [POD, OF_GROUP], ids=["pod", "of group"])
async def test_6_1_4_every_attempt_counts(pod):
    _, preemption = await post_filter(
        PostFilterResult(unschedulable("no"), CLEAR_NOMINATION), pod, WorkloadAwarePreemption=True
    )

    assert 1 == preemption.attempts


def test_6_6_gate_a_pod_waits_while_victims_are_evicted_for_it():
    gate = plugin(Preemption(running=[POD.uid]))

    assert (WAITING, SUCCESS) == (gate.pre_enqueue(POD), gate.pre_enqueue(make_pod("other")))


def test_6_6_gate_pods_of_groups_wait_for_their_group_where_groups_preempt_together():
    running = Preemption(running=["uid-g", OF_GROUP.uid])
    gate = plugin(running, WorkloadAwarePreemption=True)

    assert SUCCESS == gate.pre_enqueue(OF_GROUP), "a group that is missing gates no pod"
    waiting = unresolvable("waiting for the preemption for this pod group to be finished")
    assert waiting == with_group(gate, None).pre_enqueue(OF_GROUP)


def test_6_6_gate_there_is_none_where_victims_are_evicted_at_once():
    gate = plugin(Preemption(running=[POD.uid]), SchedulerAsyncPreemption=False)

    assert SUCCESS == gate.pre_enqueue(POD)


def test_6_6_a_pod_that_goes_only_opens_the_gate():
    (registered,) = plugin(Preemption()).events_to_register()

    assert (EventResource.POD, ActionType.DELETE) == (registered.event.resource, registered.event.action)
    assert QueueingHint.SKIP is registered.hint(POD, make_pod("gone"), None)


def test_6_6_no_event_where_victims_are_evicted_at_once():
    assert [] == plugin(Preemption(), SchedulerAsyncPreemption=False).events_to_register()
