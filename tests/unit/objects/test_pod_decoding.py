"""What is kept of a pod as it is decoded: once it is on a node, only what is still asked of it."""

from datetime import UTC, datetime

import msgspec
import pytest

from berth.objects.pods import pod_decoding
from berth.objects.pods.pod import Pod, PodStatus
from berth.objects.pods.pod_decoding import decode_pod
from berth.objects.pods.pod_requests import accounted_requests
from berth.objects.pods.pod_spec import PodSpec
from berth.objects.shared_texts import SharedTexts
from berth.testing.builders import make_pod
from tests.hostile.work import kept_bytes

CONDITIONS = [
    {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-02T03:04:05Z"},
    {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"},
    {"type": "PodResizePending", "status": "True", "reason": "Infeasible"},
]


def decoded(node="", name="p", requests=None, held=None, **status):
    container = {"name": "main", "resources": {"requests": requests or {"cpu": "1"}}}
    if held is not None:
        status["containerStatuses"] = [
            {"name": "main", "resources": {"requests": held}, "allocatedResources": held}
        ]
    return decode_pod(
        msgspec.json.encode(
            {
                "metadata": {"name": name, "uid": f"uid-{name}", "annotations": {"a": "b"}},
                "spec": {"nodeName": node, "containers": [container]},
                "status": {"phase": "Running", "conditions": CONDITIONS, **status},
            }
        )
    )


def test_a_waiting_pod_keeps_its_conditions():
    assert ["Ready", "DisruptionTarget", "PodResizePending"] == [c.type for c in decoded().status.conditions]


def test_a_placed_pod_keeps_the_conditions_that_are_asked_of_it():
    found = [(c.type, c.status, c.reason) for c in decoded("n1").status.conditions]

    assert [
        ("DisruptionTarget", "True", "PreemptionByScheduler"),
        ("PodResizePending", "True", "Infeasible"),
    ] == found


def test_a_placed_pod_keeps_when_it_started_and_its_phase():
    pod = decoded("n1", startTime="2026-01-02T03:04:05Z")

    assert ("Running", 2026) == (pod.status.phase, pod.start_time.year)
    assert 2026 == pod.written().status.start_time.year


def test_placed_pods_of_a_phase_share_their_status():
    first, second = (
        decoded("n1", name, conditions=[], startTime=f"2026-01-02T03:04:0{name}Z") for name in "12"
    )

    assert first.status is second.status
    assert first.start_time != second.start_time


def test_a_pod_has_its_start_time_whichever_way_it_is_made():
    start = datetime(2026, 1, 2, tzinfo=UTC)
    made = Pod.of(status=PodStatus(phase="Running", start_time=start))

    assert (made.start_time, made.status) == (start, PodStatus(phase="Running"))
    assert made.with_spec(PodSpec(priority=1)).start_time == start
    assert made.written().status == PodStatus(phase="Running", start_time=start)


@pytest.mark.parametrize(
    ("held", "kept"),
    [
        pytest.param({"cpu": "1"}, 0, id="what the spec asks for"),
        pytest.param({"cpu": "2"}, 1, id="more"),
        pytest.param({"cpu": "500m"}, 1, id="less"),
    ],
)
def test_sizes_are_kept_where_the_spec_does_not_say_them(held, kept):
    assert kept == len(decoded("n1", held=held).status.container_statuses)


def test_a_resize_that_is_under_way_counts():
    assert 2000 == accounted_requests(decoded("n1", held={"cpu": "2"}))["cpu"]


def test_pods_annotated_alike_share_their_annotations():
    one, other = decoded("n1", "p1"), decoded("n2", "p2")

    assert one.metadata.annotations is other.metadata.annotations


def test_pods_of_a_node_share_its_name():
    assert decoded("node-1", "p1").node_name is decoded("node-1", "p2").node_name


def test_names_of_nodes_that_users_make_up_are_not_kept(monkeypatch):
    monkeypatch.setattr(pod_decoding, "_node_name", SharedTexts(8))

    def come_and_go():
        for i in range(64):
            assert decoded(f"made-up-{i}-" + "n" * 200).node_name

    come_and_go()
    assert kept_bytes(come_and_go) < 20_000


def test_long_annotations_stay_with_their_pod():
    """What a template remembers of them is small, however long a user's are."""
    long = msgspec.json.encode(
        {"metadata": {"name": "p", "namespace": "long", "annotations": {"a": "z" * 100_000}}}
    )
    keeper = make_pod(namespace="long", containers=())

    def come_and_go():
        assert decode_pod(long).template is keeper.template

    come_and_go()
    assert kept_bytes(come_and_go) < 10_000


def test_another_pod_of_a_known_template_costs_little():
    """Under 800 bytes beside its template; a decoded pod with all that it says took ten times as much."""
    first = decoded("n1", "first")
    pods = []

    assert (
        kept_bytes(lambda: pods.extend(decoded("n1", f"p{i}", conditions=[]) for i in range(200))) / 200 < 800
    )
    assert {first.template} == {pod.template for pod in pods}
