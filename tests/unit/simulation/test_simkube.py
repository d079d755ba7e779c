"""Pods of a SimKube trace come, run and go as they did.

Source: docs/ref/trace-files.md and sk-core/src/trace of acrlabs/simkube, format 2.
"""

import json
import logging

import pytest
from click.testing import CliRunner

from berth.cli.main import main
from berth.objects.pods.pod import Pod
from berth.simulation.errors import InputError
from berth.simulation.reading.inputs import read_cluster
from berth.simulation.reading.revisions import ALL_AT_ONCE, NEVER, PodShare, Rollout
from berth.simulation.recordings.replay import replay
from tests.unit.simulation.kit import node, outcome, written
from tests.unit.simulation.traces import BEGAN, a_pod, deployment, event, finished, owner, template, trace

PREFIX = "simulation.berth.dev/"


def read(tmp_path, *events, **fields):
    """The pods' times by name: when each comes, how long it runs, when it is deleted."""
    path = trace(tmp_path / "t.sktrace", *events, **fields)
    cluster = read_cluster([path, written(tmp_path / "nodes.json", node("n"))])
    times = ("arrival", "duration", "departure")
    return {
        pod.name: tuple(pod.metadata.annotations.get(f"{PREFIX}{each}-seconds") for each in times)
        for pod in cluster.of(Pod).values()
    }, cluster.left_out


def revisions(tmp_path, *events, **fields):
    """What the trace says of owners whose pods the simulation makes."""
    path = trace(tmp_path / "t.sktrace", *events, **fields)
    return read_cluster([path, written(tmp_path / "nodes.json", node("n"))]).workloads


def test_an_owner_that_is_written_again_unchanged_is_no_revision(tmp_path):
    found = revisions(tmp_path, event(0, deployment(1)), event(5, deployment(1)), event(7, deployment(3)))
    assert [(0.0, 1), (7.0, 3)] == [(each.at, each.replicas) for each in found]


def test_an_owner_that_is_deleted_has_no_template_from_then_on(tmp_path):
    gone = deployment(2)
    found = revisions(tmp_path, event(0, gone), event(7, deleted=[gone]), event(9, deployment(2)))
    assert [(0.0, True), (7.0, False), (9.0, True)] == [
        (each.at, each.template is not None) for each in found
    ]


def test_pods_of_a_revision_run_as_long_as_those_of_the_trace_did(tmp_path):
    lives = {("apps/v1.Deployment", "traced/web"): [finished(0, 30), {"Running": BEGAN + 1}, finished(2, 12)]}
    (found,) = revisions(tmp_path, event(0, deployment(3)), lives=lives)
    assert (30.0, None, 10.0) == found.durations


def test_a_pod_of_a_revision_is_admitted(tmp_path):
    critical = deployment(1)
    critical["spec"]["template"]["spec"]["priorityClassName"] = "system-node-critical"
    (found,) = revisions(tmp_path, event(0, critical))
    assert (2_000_001_000, {"app": "a"}) == (found.pod.priority, found.pod.labels)


@pytest.mark.parametrize(
    ("kind", "strategy", "rollout"),
    [
        pytest.param(
            "Deployment", {}, Rollout(surge=PodShare(25, True), unavailable=PodShare(25, True)), id="usual"
        ),
        pytest.param(
            "Deployment",
            {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 2, "maxUnavailable": "10%"}},
            Rollout(surge=PodShare(2), unavailable=PodShare(10, True)),
            id="given",
        ),
        pytest.param("Deployment", {"type": "Recreate"}, ALL_AT_ONCE, id="recreate"),
        pytest.param("StatefulSet", {}, Rollout(), id="one by one"),
        pytest.param("StatefulSet", {"type": "OnDelete"}, NEVER, id="on delete"),
        pytest.param("ReplicaSet", {}, NEVER, id="replica set"),
        pytest.param(
            "DaemonSet",
            {"rollingUpdate": {"maxSurge": "20%", "maxUnavailable": 0}},
            Rollout(unavailable=PodShare(20, True)),
            id="surge of a daemon set",
        ),
    ],
)
def test_how_pods_are_replaced(tmp_path, kind, strategy, rollout):
    field = "strategy" if kind == "Deployment" else "updateStrategy"
    document = owner(kind, "web", template=template(), **{field: strategy})
    (found,) = revisions(tmp_path, event(0, document))
    assert rollout == found.rollout


def test_a_pod_of_its_own_comes_under_its_name_and_runs_as_long_as_it_did(tmp_path):
    lives = {("v1.Pod", "traced/p"): [finished(3, 33)], ("v1.Pod", "traced/q"): [{"Running": BEGAN}, "Empty"]}
    found, _ = read(tmp_path, event(0, a_pod("p"), a_pod("q")), lives=lives)
    assert found == {"p": ("0", "30", None), "q": ("0", None, None)}


def test_a_pod_that_is_created_again_is_another_one(tmp_path):
    found, _ = read(tmp_path, event(0, a_pod("p")), event(1, deleted=[a_pod("p")]), event(2, a_pod("p")))
    assert found == {"p": ("0", None, "1"), "p-0": ("2", None, None)}


def test_owners_of_other_kinds_have_the_pods_that_ran(tmp_path):
    cron = owner("CronJob", "c", "batch/v1", jobTemplate={"spec": {"template": template()}})
    own = owner("Own", "o", "example.com/v1", pod=template())
    lives = {
        ("batch/v1.CronJob", "traced/c"): [finished(60, 90), finished(120, 150)],
        ("example.com/v1.Own", "traced/o"): [{"Running": BEGAN + 5}],
    }
    found, left_out = read(tmp_path, event(0, cron, own), event(130, deleted=[cron]), lives=lives)
    assert found == {"c-0": ("60", "30", "130"), "c-1": ("120", "30", "130"), "o-0": ("5", None, None)}
    assert not left_out


def test_owners_whose_pods_are_not_in_the_trace_are_counted(tmp_path):
    several = owner("Several", "s", "example.com/v1", a=template(), b=template())
    jobs = owner("Job", "j", "batch/v1", template=template())
    found, left_out = read(tmp_path, event(0, several, jobs))
    assert (found, left_out) == ({}, {"Several": 1, "Job": 1})


def test_a_trace_is_simulated(tmp_path, caplog):
    """Four pods of half a node each: the later two wait until the first deployment is gone."""
    other = owner("Deployment", "other", replicas=2, template=template("2"))
    first = event(0, deployment(2, cpu="2"))
    path = trace(tmp_path / "t.sktrace", first, event(10, other), event(60, deleted=[deployment(2, cpu="2")]))
    with caplog.at_level(logging.ERROR):
        found = outcome(read_cluster([path, written(tmp_path / "nodes.json", node("n"))]))
    waits = {each.pod: each.wait_seconds for each in found.placements}
    assert {name for name, wait in waits.items() if wait < 1} == {"traced/web-0", "traced/web-1"}
    assert {name for name, wait in waits.items() if wait >= 49} == {"traced/other-0", "traced/other-1"}
    assert not caplog.records


def test_without_nodes_it_says_what_a_trace_lacks(tmp_path):
    path = trace(tmp_path / "t.sktrace", event(0, deployment(1)))
    result = CliRunner().invoke(main, ["simulate", "run", str(path)])
    assert result.exit_code == 2
    assert f"{path}: a trace of SimKube has no nodes; give some as another INPUT" in result.stderr


def test_a_snapshot_has_no_owners_of_a_trace(tmp_path):
    path = trace(tmp_path / "t.sktrace", event(0, deployment(1)))
    nodes = written(tmp_path / "nodes.json", node("n"))
    result = CliRunner().invoke(main, ["snapshot", str(path), str(nodes), "-o", str(tmp_path / "s.json")])
    assert result.exit_code == 2
    assert (
        "Deployment traced/web: a snapshot has no owners of a trace; give the trace itself" in result.stderr
    )


def test_a_replay_says_what_a_trace_lacks(tmp_path):
    with pytest.raises(InputError, match="has no nodes and no bindings: give it to `berth simulate run`"):
        replay(trace(tmp_path / "t.sktrace", event(0, deployment(1))))


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"version": 1}, "version: found 1; traces of SimKube's format 2 can be read"),
        ({"events": 1}, "Expected `array`, got `int` - at `$.events`"),
        (
            {"events": [event(0, {"kind": "Pod"})]},
            "found an object without apiVersion, kind and metadata.name",
        ),
        ({"events": [event(0, deployment(-1))]}, "apps/v1.Deployment traced/web: spec.replicas: found -1"),
        (
            {"events": [event(0, deployment(10**9))]},
            "spec.replicas: found 1000000000; a number up to 1000000",
        ),
        ({"events": [event(0, owner("Pod", "p", "v1", containers=1))]}, "spec.containers"),
        ({"events": [event(0, {**a_pod("p"), "spec": None})]}, "spec"),
        (
            {
                "events": [
                    event(0, owner("Deployment", "web", template=template(), strategy={"type": "Blue"}))
                ]
            },
            "Deployment traced/web: spec.strategy.type: found 'Blue'",
        ),
        (
            {"events": [event(0, deployment(1, strategy="Recreate"))]},
            "Deployment traced/web: spec.strategy: found 'Recreate'; an object is expected",
        ),
        (
            {"events": [event(0, deployment(1, cpu="much"))]},
            "Deployment traced/web: spec.template.spec.containers[0].resources.requests.cpu: found 'much'",
        ),
        (
            {"events": [event(0, deployment(1, strategy={"rollingUpdate": {"maxSurge": "half"}}))]},
            "spec.strategy.rollingUpdate.maxSurge: found 'half'; a number such as 1",
        ),
    ],
)
def test_what_is_no_trace_is_refused(tmp_path, fields, says):
    with pytest.raises(InputError) as raised:
        read(tmp_path, **fields)
    assert says in str(raised.value)


@pytest.mark.parametrize("data", [b"\x85", b"\x81\xa1a\xa1b", b"\xde\xff\xff" * 10, b"\x81" * 5000])
def test_other_bytes_are_refused(tmp_path, data):
    path = tmp_path / "t.sktrace"
    path.write_bytes(data)
    with pytest.raises(InputError, match="no trace of SimKube's format 2"):
        read_cluster([path])


def test_pods_of_all_events_together_are_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr("berth.simulation.reading.simkube.MAX_PODS", 10)
    events = [event(i, deployment(4, cpu=str(i))) for i in range(4)]
    with pytest.raises(InputError, match="more than 10 pods; export a shorter time"):
        read(tmp_path, *events)


def test_json_of_a_trace_is_no_trace(tmp_path):
    """It is read as a Kubernetes file, and refused as such."""
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"version": 2, "events": []}), encoding="utf-8")
    with pytest.raises(InputError, match="apiVersion"):
        read_cluster([path])
