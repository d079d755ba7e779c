"""Pods of a SimKube trace come, run and go as they did.

Source: docs/ref/trace-files.md and sk-core/src/trace of acrlabs/simkube, format 2.
"""

import json
import logging

import msgspec
import pytest
from click.testing import CliRunner

from berth.cli.main import main
from berth.objects.pod import Pod
from berth.simulation.errors import InputError
from berth.simulation.inputs import read_cluster
from berth.simulation.replay import replay
from tests.unit.simulation.kit import node, outcome, written

BEGAN = 1_710_892_138
PREFIX = "simulation.berth.dev/"
TRACKED = {
    "apps/v1.Deployment": {"podSpecTemplatePaths": ["/spec/template"]},
    "batch/v1.CronJob": {"trackLifecycle": True},
    "example.com/v1.Several": {"podSpecTemplatePaths": ["/spec/a", "/spec/b"]},
    "example.com/v1.Own": {"podSpecTemplatePaths": ["/spec/pod"]},
}


def template(cpu="1", labels=None):
    container = {"name": "c", "image": "pause", "resources": {"requests": {"cpu": cpu}}}
    metadata = {"creationTimestamp": None, "labels": labels or {"app": "a"}}
    return {"metadata": metadata, "spec": {"containers": [container]}}


def owner(kind, name, version="apps/v1", **spec):
    metadata = {"name": name, "namespace": "traced", "annotations": {}}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}


def deployment(replicas, **fields):
    return owner("Deployment", "web", replicas=replicas, template=template(**fields))


def a_pod(name):
    return owner("Pod", name, "v1", **template()["spec"])


def event(seconds, *applied, deleted=()):
    return {"ts": BEGAN + seconds, "applied_objs": list(applied), "deleted_objs": list(deleted)}


def trace(path, *events, lives=None, **fields):
    """A trace; `lives` are of pods by their owner's kind and name, in seconds after the beginning."""
    document = {
        "version": 2,
        "config": {"trackedObjects": TRACKED},
        "events": list(events),
        "index": {"apps/v1.Deployment": {"traced/web": 2**64 - 1}},
        "pod_lifecycles": {key: {2**64 - 1: value} for key, value in (lives or {}).items()},
        **fields,
    }
    path.write_bytes(msgspec.msgpack.encode(document))
    return path


def finished(start, end):
    return {"Finished": [BEGAN + start, BEGAN + end]}


def read(tmp_path, *events, **fields):
    """The pods' times by name: when each comes, how long it runs, when it is deleted."""
    path = trace(tmp_path / "t.sktrace", *events, **fields)
    cluster = read_cluster([path, written(tmp_path / "nodes.json", node("n"))])
    times = ("arrival", "duration", "departure")
    return {
        pod.name: tuple(pod.metadata.annotations.get(f"{PREFIX}{each}-seconds") for each in times)
        for pod in cluster.of(Pod).values()
    }, cluster.left_out


def test_a_deployment_has_its_replicas(tmp_path):
    found, _ = read(tmp_path, event(0), event(5, deployment(2)))
    assert found == {"web-0": ("5", None, None), "web-1": ("5", None, None)}


def test_a_deployment_that_is_scaled_gets_and_loses_pods(tmp_path):
    found, _ = read(tmp_path, event(0, deployment(1)), event(7, deployment(3)), event(9, deployment(2)))
    assert found == {"web-0": ("0", None, None), "web-1": ("7", None, None), "web-2": ("7", None, "9")}


def test_a_template_that_changes_replaces_all_pods(tmp_path):
    found, _ = read(tmp_path, event(0, deployment(1)), event(7, deployment(1, cpu="2")))
    assert found == {"web-0": ("0", None, "7"), "web-1": ("7", None, None)}


def test_the_pods_of_an_owner_that_is_deleted_are_deleted(tmp_path):
    found, _ = read(tmp_path, event(0, deployment(2)), event(7, deleted=[deployment(2)]))
    assert {times[2] for times in found.values()} == {"7"}


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
    daemons = owner("DaemonSet", "d", template=template())
    found, left_out = read(tmp_path, event(0, several, daemons))
    assert (found, left_out) == ({}, {"Several": 1, "DaemonSet": 1})


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
    monkeypatch.setattr("berth.simulation.simkube.MOST_PODS", 10)
    events = [event(i, deployment(4, cpu=str(i))) for i in range(4)]
    with pytest.raises(InputError, match="more than 10 pods; export a shorter time"):
        read(tmp_path, *events)


def test_json_of_a_trace_is_no_trace(tmp_path):
    """It is read as a Kubernetes file, and refused as such."""
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"version": 2, "events": []}), encoding="utf-8")
    with pytest.raises(InputError, match="apiVersion"):
        read_cluster([path])
