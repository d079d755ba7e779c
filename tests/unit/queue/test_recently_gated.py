"""How soon pods say what they wait for, and which never do."""

from msgspec.structs import replace

from berth.framework.cluster_event import ActionType, ClusterEvent, EventResource
from berth.objects.pods.pod import POD_SCHEDULED, PodCondition, PodStatus
from berth.queue.recently_gated import PATIENCE_SECONDS
from tests.unit.queue.kit import Gates, a_bench, a_pod
from tests.unit.queue.test_queued_groups import a_stage

CONDITIONS = (POD_SCHEDULED, "Ready")


def a_telling_bench():
    """A queue, and the pods of which it had it said what they wait for."""
    told = []
    bench = a_bench(still_gated=lambda records: told.append([record.pod.name for record in records]))
    bench.queue.flush()
    return bench, told


def after(bench, seconds):
    bench.clock.seconds += seconds
    bench.queue.flush()


def test_a_pod_says_once_what_it_waits_for():
    """A second after it was held back; the queue has itself woken for that."""
    bench, told = a_telling_bench()
    bench.add("a", gates=["Gates"])
    assert bench.clock.seconds + PATIENCE_SECONDS == bench.queue.next_flush_time()
    after(bench, PATIENCE_SECONDS)
    after(bench, PATIENCE_SECONDS)

    assert [["a"]] == told


def test_a_pod_that_is_let_go_in_time_says_nothing():
    """Neither does one that is gone."""
    bench, told = a_telling_bench()
    first, second = bench.add("a", gates=["Gates"]), bench.add("b", gates=["Gates"])
    bench.queue.delete(first)
    bench.queue.delete(second)
    after(bench, PATIENCE_SECONDS)

    assert [] == told


def test_nothing_is_kept_of_pods_that_said_so():
    """What it costs grows with the pods that were held back within a second."""
    bench, _ = a_telling_bench()
    for number in range(100):
        bench.add(f"p{number}", gates=["Gates"])
    after(bench, PATIENCE_SECONDS)

    assert {} == bench.queue._recently_gated._since


def test_nothing_is_kept_of_pods_that_went():
    """Nothing is flushed where another replica leads, for as long as it does."""
    bench, _ = a_telling_bench()
    for number in range(100):
        bench.queue.delete(bench.add(f"p{number}", gates=["Gates"]))

    assert {} == bench.queue._recently_gated._since


def test_a_pod_of_no_group_that_is_let_go():
    """Where groups are queued as units, too: it is looked for among those that wait for their group."""
    told = []
    stage = a_stage(still_gated=told.append)
    stage.queue.flush()
    pod = stage.bench.add("a", gates=["Gates"])
    stage.bench.update(pod, a_pod("a"))
    after(stage.bench, PATIENCE_SECONDS)

    assert [] == [each for each in told if each]
    assert ["a"] == stage.bench.pop_names()


def test_nothing_is_kept_of_groups_that_went():
    """A group that a plugin held back is forgotten with its last pod, or with its object."""
    stage = a_stage(is_open=False)
    first, second = stage.add_group("g"), stage.add_group("h")
    stage.add("a", group="g")
    (pod,) = stage.add("b", group="h")
    stage.remove_group(first)
    stage.queue.delete(pod)
    stage.remove_group(second)

    assert ["default/a"] == list(stage.queue._recently_gated._since)


def test_what_was_said_brings_no_pod_back():
    """The pod's own condition is no event to it while it is held back; another condition is."""
    gate = Gates(events=[ClusterEvent(EventResource.UNSCHEDULABLE_POD, ActionType.UPDATE)])
    bench = a_bench([gate])
    pod = bench.add("a", gates=["Gates"])
    said, ready = (replace(pod, status=PodStatus(conditions=(PodCondition(each),))) for each in CONDITIONS)
    asked = gate.asked
    bench.update(pod, said)
    assert asked == gate.asked
    bench.update(said, ready)

    assert asked + 1 == gate.asked
