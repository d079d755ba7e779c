from berth.framework.cluster_event import QueueingHint
from berth.framework.status import Code
from berth.plugins.scheduling_gates import SchedulingGates
from berth.testing.builders import make_pod
from berth.testing.handles import make_plugin


def test_gates():
    """A pod with gates is held back, and they are named in order."""
    status = make_plugin(SchedulingGates).pre_enqueue(make_pod(gates=["b", "a"]))

    assert (Code.UNSCHEDULABLE_AND_UNRESOLVABLE, "waiting for scheduling gates: [b a]") == (
        status.code,
        status.message,
    )


def test_no_gates():
    """A pod without gates passes."""
    assert make_plugin(SchedulingGates).pre_enqueue(make_pod()).ok


def test_hint():
    """The pod's own gates going help, another pod's do not."""
    (registration,) = make_plugin(SchedulingGates).events_to_register()
    pod = make_pod("mine", gates=["a"])

    assert QueueingHint.QUEUE == registration.hint(pod, pod, make_pod("mine"))
    assert QueueingHint.SKIP == registration.hint(pod, make_pod("other", gates=["a"]), make_pod("other"))
