"""A decision is found at the moment at which it was made, as far as events show it."""

from berth.observer.decisions import decisions_of
from berth.observer.reading import open_recording
from tests.hostile.work import calls
from tests.unit.observer.kit import a_pod, bound, in_namespace, simulator_file, unschedulable
from tests.unit.simulation.kit import thing

NAMES = {"namespace": "default"}


def decisions(tmp_path, *events):
    """What was decided before each event, by the event's number from 1: the pod's name and its node."""
    with open_recording(simulator_file(tmp_path / "a", *events)) as recording:
        found = decisions_of(recording.events())
    return {
        number: [(each.pod.partition("/")[2], each.node) for each in several]
        for number, several in found.items()
    }


def added(*documents):
    return [("Add", each) for each in documents]


def updated(*documents):
    return [("Update", each) for each in documents]


P, Q, R = a_pod("p"), a_pod("q"), a_pod("r")


def test_bindings_in_the_order_of_the_pods_are_decisions_of_their_own(tmp_path):
    found = decisions(tmp_path, *added(P, Q), *updated(bound(P, "n"), bound(Q, "m")))
    assert found == {3: [("p", "n")], 4: [("q", "m")]}


def test_a_pod_was_decided_on_before_a_binding_that_overtook_its_own(tmp_path):
    found = decisions(tmp_path, *added(P, Q, R), *updated(bound(R, "n"), bound(Q, "n"), bound(P, "m")))
    assert found == {4: [("p", "m"), ("q", "n"), ("r", "n")]}


def test_a_rejection_that_was_written_late_was_decided_before_the_binding_too(tmp_path):
    found = decisions(tmp_path, *added(P, Q), *updated(bound(Q, "n"), unschedulable(P)))
    assert found == {3: [("p", ""), ("q", "n")]}


def test_a_pod_that_was_rejected_waits_for_a_turn_that_is_not_known(tmp_path):
    found = decisions(
        tmp_path, *added(P), *updated(unschedulable(P)), *added(Q), *updated(bound(Q, "n"), bound(P, "m"))
    )
    assert found == {2: [("p", "")], 4: [("q", "n")], 5: [("p", "m")]}


def test_pods_of_another_priority_or_scheduler_have_another_place(tmp_path):
    other, third = a_pod("p", priority=5), a_pod("r")
    third["spec"]["schedulerName"] = "another"
    found = decisions(
        tmp_path, *added(other, third, Q), *updated(bound(Q, "n"), bound(other, "m"), bound(third, "m"))
    )
    assert found == {4: [("q", "n")], 5: [("p", "m")], 6: [("r", "m")]}


def test_a_gated_pod_comes_when_its_gates_go(tmp_path):
    gated = a_pod("p", schedulingGates=[{"name": "g"}])
    early = [*added(gated, Q), *updated(bound(Q, "n"), P, bound(P, "m"))]
    assert decisions(tmp_path, *early) == {3: [("q", "n")], 5: [("p", "m")]}
    late = [*added(gated, Q), *updated(P), *added(R), *updated(bound(R, "n"), bound(P, "m"), bound(Q, "m"))]
    assert decisions(tmp_path, *late) == {5: [("q", "m"), ("p", "m"), ("r", "n")]}


def test_a_pod_that_is_gone_was_not_overtaken(tmp_path):
    gone = thing("Pod", "p")
    gone["metadata"] |= NAMES
    again = a_pod("p")
    again["metadata"]["uid"] = "another"
    events = [
        *added(P, Q),
        ("Delete", gone),
        *updated(bound(Q, "n")),
        *added(again),
        *updated(bound(again, "m")),
    ]
    assert decisions(tmp_path, *events) == {4: [("q", "n")], 6: [("p", "m")]}


def test_a_pod_that_comes_with_a_node_was_not_decided_on_here(tmp_path):
    assert decisions(tmp_path, *added(bound(P, "n")), *updated(bound(P, "n"))) == {}


def claim(node="", **fields):
    annotations = {"volume.kubernetes.io/selected-node": node} if node else {}
    return in_namespace("PersistentVolumeClaim", "c", metadata={"annotations": annotations}, **fields)


WITH_CLAIM = a_pod("p", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}])


def test_a_node_that_was_selected_for_a_claim_came_of_the_decision(tmp_path):
    found = decisions(tmp_path, *added(claim(), WITH_CLAIM), *updated(claim("n"), bound(WITH_CLAIM, "n")))
    assert found == {3: [("p", "n")]}


def test_a_selection_that_was_taken_back_is_forgotten(tmp_path):
    changes = updated(claim("n"), claim(), claim("m"), bound(WITH_CLAIM, "m"))
    assert decisions(tmp_path, *added(claim(), WITH_CLAIM), *changes) == {5: [("p", "m")]}


def test_a_claim_serves_the_pod_that_came_before_its_selection(tmp_path):
    found = decisions(
        tmp_path, *added(claim()), *updated(claim("n")), *added(WITH_CLAIM), *updated(bound(WITH_CLAIM, "n"))
    )
    assert found == {4: [("p", "n")]}


def test_a_volume_that_is_kept_for_a_waiting_claim_came_of_the_decision(tmp_path):
    waits = thing("StorageClass", "s", "storage.k8s.io/v1", volumeBindingMode="WaitForFirstConsumer")
    volume = thing("PersistentVolume", "v", spec={"storageClassName": "s"})
    reference = {"namespace": "default", "name": "c"}
    kept = thing("PersistentVolume", "v", spec={"storageClassName": "s", "claimRef": reference})
    events = [*added(waits, volume, claim(), WITH_CLAIM), *updated(kept, bound(WITH_CLAIM, "n"))]
    assert decisions(tmp_path, *events) == {5: [("p", "n")]}


def test_a_device_that_was_reserved_came_of_the_decision(tmp_path):
    def devices(*uids):
        users = [{"resource": "pods", "name": uid, "uid": uid} for uid in uids]
        return in_namespace("ResourceClaim", "d", "resource.k8s.io/v1", status={"reservedFor": users})

    events = [*added(devices(), P), *updated(devices("uid-p"), devices(), devices("uid-p"), bound(P, "n"))]
    assert decisions(tmp_path, *events) == {5: [("p", "n")]}


def test_overtaking_costs_once_for_each_pod(tmp_path):
    """A thousand pods that wait for good are not looked at with each binding."""

    def work(count):
        waiting = [a_pod(f"w{i}") for i in range(200)]
        others = [a_pod(f"p{i}") for i in range(count)]
        events = [*added(*waiting, *others), *updated(*(bound(each, "n") for each in others))]
        with open_recording(simulator_file(tmp_path / "a", *events)) as recording:
            happened = list(recording.events())
        return calls(lambda: decisions_of(happened))

    assert work(200) < 3 * work(100)
