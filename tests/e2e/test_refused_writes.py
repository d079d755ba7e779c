"""Writes that the API server refuses for as long as it is asked: where that is reported, and what follows."""

import pytest

from tests.e2e.fault_rules import REASONS, Fault
from tests.e2e.faults import BINDING, bound_names, faulty_cluster, node, pod
from tests.failures.reporting import reports

pytestmark = pytest.mark.e2e

REFUSALS = (403, 404, 409, 422, 429, 500, 503)
HIGH = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "high"},
    "value": 1000,
}
POD = r"/api/v1/namespaces/default/pods/[^/]+$"


def refusing(code, method, path):
    """Every such request is refused."""
    return {"fault": Fault.STATUS_BEFORE, "method": method, "path": path, "status": code}


def condition(cluster, name):
    """What PodScheduled says of the pod."""
    for document in cluster.pods():
        if document["metadata"]["name"] == name:
            for each in document.get("status", {}).get("conditions", ()):
                if each["type"] == "PodScheduled":
                    return each
    return {}


def leaving(cluster, name):
    """Whether the pod is being deleted, or gone."""
    there = [each["metadata"] for each in cluster.pods() if each["metadata"]["name"] == name]
    return not there or "deletionTimestamp" in there[0]


async def events(cluster, name):
    """The events of the pod, as (reason, note)."""
    found = await cluster.get("/apis/events.k8s.io/v1/namespaces/default/events")
    return [
        (each["reason"], each.get("note", "")) for each in found["items"] if each["regarding"]["name"] == name
    ]


@reports(
    "binding-refused",
    condition="`PodScheduled=False`: `SchedulerError`, with the API server's words",
    event="`FailedScheduling` of the pod, with the same",
    metric="`scheduler_schedule_attempts_total` with result `error`",
    log="`attempt failed`, once for a pod and cause",
)
async def test_refused_bindings(tmp_path):
    """Whatever the API server refuses a binding with: its words are shown, and the pod is tried again."""
    async with faulty_cluster(tmp_path, room=len(REFUSALS)) as cluster:
        await cluster.create(node("n0", pods=len(REFUSALS)))
        await cluster.start_scheduler("one")
        await cluster.ready("one")
        for code in REFUSALS:
            name, words = f"p{code}", f"injected by the fault proxy: {REASONS[code]}"

            async def is_told(name=name, words=words):
                return any(
                    reason == "FailedScheduling" and words in note
                    for reason, note in await events(cluster, name)
                )

            await cluster.proxy.rules(refusing(code, "POST", BINDING))
            await cluster.create(pod(name))
            await cluster.until(lambda name=name: condition(cluster, name), f"{name} has a condition")
            said = condition(cluster, name)
            assert ("False", "SchedulerError") == (said["status"], said["reason"])
            assert words in said["message"]
            await cluster.until(is_told, f"{name} has an event")
            await cluster.proxy.rules()
            await cluster.until(lambda name=name: name in bound_names(cluster.pods()), f"{name} is bound")
        log = cluster.log("one").read_text()
        metrics = await cluster.show("one", "/metrics")

    assert [] == [code for code in REFUSALS if f'"attempt failed" pod="default/p{code}" err=' not in log]
    sample = 'scheduler_schedule_attempts_total{profile="default-scheduler",result="error"} '
    (count,) = (line.removeprefix(sample) for line in metrics.splitlines() if line.startswith(sample))
    assert float(count) >= len(REFUSALS)


@reports(
    "victim-not-evicted",
    log="`victim not evicted`, with victim, preemptor and cause; the preemptor is tried again",
)
@pytest.mark.parametrize("code", [403, 429])
async def test_refused_victims(tmp_path, code):
    """A victim's deletion that a webhook or a busy server refuses: the log has it, and it is tried again."""
    async with faulty_cluster(tmp_path, room=1) as cluster:
        await cluster.create(node("n0"), HIGH)
        await cluster.start_scheduler("one")
        await cluster.create(pod("victim"))
        await cluster.until(lambda: "victim" in bound_names(cluster.pods()), "the victim is bound")
        await cluster.proxy.rules(refusing(code, "DELETE", POD))
        await cluster.create(pod("preemptor", priorityClassName="high"))
        line = '"victim not evicted" pod="default/victim" preemptor="default/preemptor" err='
        log = cluster.log("one")
        await cluster.until(lambda: line in log.read_text(), "the log says so")
        assert "victim" in bound_names(cluster.pods())
        await cluster.proxy.rules()
        await cluster.until(lambda: leaving(cluster, "victim"), "the victim is evicted")

    (words, *_) = (each for each in log.read_text().splitlines() if line in each)
    assert f"injected by the fault proxy: {REASONS[code]}" in words
