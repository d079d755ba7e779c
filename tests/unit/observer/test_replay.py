"""Each decision of a recorded cluster is compared with Berth's own at that moment."""

import json

import pytest
from click.testing import CliRunner

from berth.cli.main import main
from berth.config.loading import load
from berth.observer.replay import (
    A_NODE,
    GROUPED,
    NO_FIT,
    NO_NODE,
    OTHER_NODE,
    OTHER_SCHEDULER,
    SAME,
    replay_observed,
)
from berth.simulation.errors import InputError, PluginsError
from tests.unit.observer.kit import (
    a_node,
    a_pod,
    bound,
    in_namespace,
    observer_file,
    simulator_file,
    unschedulable,
)
from tests.unit.simulation.kit import thing, written

SMALL, LARGE = a_node("small", cpu="2"), a_node("large", cpu="64")
POD = a_pod("p", cpu="1")


def replayed(tmp_path, *events, **options):
    return replay_observed(observer_file(tmp_path / "a", *events), load(None), **options)


def added(*documents):
    return [("Add", each) for each in documents]


def test_a_pod_on_the_best_node_is_the_same(tmp_path):
    found = replayed(tmp_path, *added(SMALL, LARGE, POD), ("Update", bound(POD, "large")))
    assert (found.compared, found.different, found.outcomes) == (1, 0, {SAME: 1})
    assert (found.events, found.nodes, found.source) == (4, 2, "berth test")
    assert (found.began, found.ended) == ("2026-11-23T08:44:41.214+00:00", "2026-11-23T08:44:44.214+00:00")
    assert found.warnings == []


@pytest.mark.parametrize("name", ["n0", "n1", "n2"])
def test_each_of_several_best_nodes_is_the_same(tmp_path, name):
    """Chance decides between them, and has no part in the comparison."""
    nodes = [a_node(each) for each in ("n0", "n1", "n2")]
    found = replayed(tmp_path, *added(*nodes, POD), ("Update", bound(POD, name)))
    assert found.outcomes == {SAME: 1}


def test_a_better_node_is_a_difference_with_the_scores_of_both(tmp_path):
    found = replayed(tmp_path, *added(SMALL, LARGE, POD), ("Update", bound(POD, "small")))
    (different,) = found.differences
    assert found.outcomes == {OTHER_NODE: 1}
    assert (different.pod, different.recorded, different.now) == (
        "default/p",
        "placed on small",
        "placed on large",
    )
    assert different.scores["large"].total > different.scores["small"].total
    assert different.scores["large"].parts["NodeResourcesFit"] > 0


def test_a_node_that_does_not_fit_is_a_difference_with_the_reason(tmp_path):
    large = a_pod("p", cpu="4")
    found = replayed(tmp_path, *added(SMALL, LARGE, large), ("Update", bound(large, "small")))
    assert found.outcomes == {NO_FIT: 1}
    assert found.differences[0].scores["small"].message == "Insufficient cpu"


def test_a_pod_that_fits_nowhere_is_a_difference(tmp_path):
    large = a_pod("p", cpu="4")
    found = replayed(tmp_path, *added(SMALL, large), ("Update", bound(large, "small")))
    assert found.outcomes == {NO_NODE: 1}
    assert "Insufficient cpu" in found.differences[0].scores["small"].message


def test_a_node_that_is_not_known_does_not_fit(tmp_path):
    found = replayed(tmp_path, *added(SMALL, POD), ("Update", bound(POD, "gone")))
    assert found.outcomes == {NO_FIT: 1}
    assert found.differences[0].scores["gone"].message == "no such node"


def test_a_pod_without_a_node_is_the_same_where_it_has_none_here(tmp_path):
    large = a_pod("p", cpu="4")
    found = replayed(tmp_path, *added(SMALL, large), ("Update", unschedulable(large)))
    assert found.outcomes == {SAME: 1}


def test_a_pod_without_a_node_is_a_difference_where_it_has_one_here(tmp_path):
    found = replayed(tmp_path, *added(SMALL, POD), ("Update", unschedulable(POD)))
    assert found.outcomes == {A_NODE: 1}
    assert (found.differences[0].recorded, found.differences[0].now) == ("no node", "placed on small")


def test_a_condition_that_stays_is_one_decision(tmp_path):
    large = a_pod("p", cpu="4")
    large_again = {**unschedulable(large), "metadata": {**large["metadata"], "labels": {"a": "b"}}}
    events = [("Update", unschedulable(large)), ("Update", large_again)]
    assert replayed(tmp_path, *added(SMALL, large), *events).compared == 1


def test_the_cluster_goes_on_as_recorded(tmp_path):
    """The second pod finds the first where it was put there, not where it would have been put here."""
    first, second = a_pod("p", cpu="2"), a_pod("q", cpu="2")
    events = [*added(SMALL, LARGE, first), ("Update", bound(first, "small")), *added(second)]
    found = replayed(tmp_path, *events, ("Update", bound(second, "small")))
    assert found.outcomes == {OTHER_NODE: 1, NO_FIT: 1}


def test_what_is_gone_counts_no_more(tmp_path):
    first, second = a_pod("p", cpu="2"), a_pod("q", cpu="2")
    names = {"name": "p", "namespace": "default"}
    gone = {"apiVersion": "v1", "kind": "Pod", "metadata": names}
    events = [*added(SMALL, bound(first, "small"), second), ("Delete", gone)]
    assert replayed(tmp_path, *events, ("Update", bound(second, "small"))).outcomes == {SAME: 1}


def test_a_pod_of_the_same_name_is_another_one(tmp_path):
    again = a_pod("p")
    again["metadata"]["uid"] = "another"
    events = [*added(SMALL, bound(POD, "small")), ("Update", again), ("Update", bound(again, "small"))]
    assert replayed(tmp_path, *events).outcomes == {SAME: 1}


def test_pods_of_other_schedulers_and_of_groups_are_counted_apart(tmp_path):
    other = a_pod("q")
    other["spec"]["schedulerName"] = "another"
    grouped = a_pod("r", schedulingGroup={"podGroupName": "g"})
    events = [("Update", bound(other, "small")), ("Update", bound(grouped, "small"))]
    found = replayed(tmp_path, *added(SMALL, other, grouped), *events)
    assert (found.compared, found.not_compared) == (0, {OTHER_SCHEDULER: 1, GROUPED: 1})


def test_a_volume_that_was_made_for_a_node_does_not_decide(tmp_path):
    """The decision stands before the claim says which node was selected."""
    nodes = [a_node(name, labels={"zone": name}, cpu=cpu) for name, cpu in (("small", "2"), ("large", "64"))]
    made = thing("StorageClass", "s", "storage.k8s.io/v1", provisioner="x")
    made["volumeBindingMode"] = "WaitForFirstConsumer"
    claim = in_namespace("PersistentVolumeClaim", "c", spec={"storageClassName": "s"})
    selected = in_namespace(
        "PersistentVolumeClaim",
        "c",
        metadata={"annotations": {"volume.kubernetes.io/selected-node": "small"}},
        spec={"storageClassName": "s"},
    )
    with_claim = a_pod("p", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}])
    events = [*added(*nodes, made, claim, with_claim), ("Update", selected)]
    found = replayed(tmp_path, *events, ("Update", bound(with_claim, "small")))
    assert found.outcomes == {OTHER_NODE: 1}
    assert found.differences[0].span == 7


@pytest.mark.parametrize("between", [[], [{"a": "b"}]], ids=["at once", "with another change between"])
def test_a_pod_counts_on_its_node_before_its_binding_lands(tmp_path, between):
    """The second pod is bound first, and goes where the first, which only fits on one node, leaves room."""
    nodes, first, second = (
        [a_node("a", cpu="4"), a_node("b", cpu="2")],
        a_pod("p", cpu="3"),
        a_pod("q", cpu="2"),
    )
    changed = [{**first, "metadata": {**first["metadata"], "labels": each}} for each in between]
    third = a_pod("r", cpu="1")
    events = [("Update", bound(second, "b")), *(("Update", each) for each in changed)]
    events += [*added(third), ("Update", bound(first, "a")), ("Update", bound(third, "a"))]
    assert replayed(tmp_path, *added(*nodes, first, second), *events).outcomes == {SAME: 3}


def test_no_more_differences_are_kept_than_shown(tmp_path):
    pods = [a_pod(f"p{i}", cpu="100m") for i in range(3)]
    events = [("Update", bound(each, "small")) for each in pods]
    found = replayed(tmp_path, *added(SMALL, LARGE, *pods), *events, shown=1)
    assert (found.different, len(found.differences)) == (3, 1)


def test_of_many_nodes_a_part_may_have_been_looked_at(tmp_path):
    nodes = [a_node(f"n{i}", cpu="4") for i in range(101)]
    found = replayed(tmp_path, *added(*nodes, LARGE, POD), ("Update", bound(POD, "n7")))
    (warning,) = found.warnings
    assert warning.startswith("of 102 nodes a kube-scheduler looks at a part: ")


def test_a_recording_of_kube_scheduler_simulator_is_replayed(tmp_path):
    """Its events have the same form; it has no header and no end, and names what it does not watch."""
    file = simulator_file(tmp_path / "a.jsonl", *added(SMALL, LARGE, POD), ("Update", bound(POD, "small")))
    found = replay_observed(file, load(None))
    assert (found.source, found.outcomes) == ("kube-scheduler-simulator", {OTHER_NODE: 1})
    (warning,) = found.warnings
    assert warning.startswith(f"{file} has no event of priorityclasses, ")
    assert "csinodes" in warning


def test_what_is_no_recording_of_a_cluster_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"make one with `berth record DIR`"):
        replay_observed(written(tmp_path / "a", {"kind": "Pod"}), load(None))


def test_extenders_are_refused(tmp_path):
    text = json.dumps(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "extenders": [{"urlPrefix": "http://localhost:1", "filterVerb": "filter"}],
        }
    )
    with pytest.raises(PluginsError, match="HTTP extender"):
        replay_observed(observer_file(tmp_path / "a", *added(SMALL)), load(text))


def test_the_command_shows_what_differs(tmp_path):
    file = observer_file(tmp_path / "a", *added(SMALL, LARGE, POD), ("Update", bound(POD, "small")))
    result = CliRunner().invoke(main, ["simulate", "replay", str(file)])
    assert result.exit_code == 1
    assert "of 1 decisions, 1 would be different\n        1  a better node\n" in result.output
    assert "default/p: placed on small -> placed on large\n      now: small " in result.output


def test_the_command_takes_a_configuration(tmp_path):
    fields = {
        "profiles": [{"schedulerName": "other"}],
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
    }
    file = observer_file(tmp_path / "a", *added(SMALL, POD), ("Update", bound(POD, "small")))
    configuration = written(tmp_path / "c.json", fields)
    result = CliRunner().invoke(main, ["simulate", "replay", str(file), "--config", str(configuration)])
    assert result.exit_code == 0
    assert "not compared: 1 of a scheduler that has no profile" in result.output
