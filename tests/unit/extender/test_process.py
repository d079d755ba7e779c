"""A scheduler process with extenders: from a pod created to a pod bound, through a real webhook."""

import asyncio
import json

import pytest

from berth.config import load
from berth.sandbox import SandboxOptions, serve
from berth.scheduler.process import run
from berth.scheduler.process_options import ProcessOptions
from tests.failures.reporting import reports
from tests.suite import PATIENCE_SECONDS
from tests.unit.extender.webhook import Webhook, serving


def node(name):
    resources = {"cpu": "8", "memory": "64Gi", "pods": "20"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"capacity": resources, "allocatable": resources, "nodeInfo": {"machineID": f"id-{name}"}},
    }


def pod(name, resource):
    requests = {"cpu": "1", resource: "1"}
    container = {
        "name": "c",
        "image": "app:1",
        "resources": {"requests": requests, "limits": {resource: "1"}},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"hostname": "kept", "containers": [container]},
    }


HIGH = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "high"},
    "value": 1000,
}


def full(document):
    """The node, and a pod that fills it."""
    victim = pod("victim", "cpu")
    victim["spec"]["containers"][0]["resources"] = {"requests": {"cpu": "8"}}
    victim["spec"]["nodeName"] = document["metadata"]["name"]
    return document, victim


async def eventually(claim):
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not claim():  # noqa: ASYNC110 - looks into the server's state, which has no event
            await asyncio.sleep(0.01)


class Cluster:
    def __init__(self, sandbox):
        self.sandbox = sandbox

    def documents(self, kind):
        entries = [entry.decode() for entry in self.sandbox.store.collection(kind).entries()]
        return {document["metadata"]["name"]: document for document in entries}

    def node_of(self, name):
        return self.documents("pods")[name]["spec"].get("nodeName")

    def message_of(self, name):
        return self.condition_of(name).get("message")

    def condition_of(self, name):
        conditions = self.documents("pods")[name].get("status", {}).get("conditions") or [{}]
        return conditions[0]


async def scheduling(tmp_path, cluster, extenders, claim):
    """Run a scheduler until the claim holds."""
    path = tmp_path / "kubeconfig"
    cluster.sandbox.write_kubeconfig(path)
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(path)},
        "leaderElection": {"leaderElect": False},
        "extenders": extenders,
    }
    stop = asyncio.Event()
    process = asyncio.create_task(run(ProcessOptions(load(json.dumps(document)), seed=1), stop))
    try:
        await eventually(lambda: process.done() or claim())
        stop.set()
        async with asyncio.timeout(PATIENCE_SECONDS):
            await process
    finally:
        process.cancel()
        await asyncio.gather(process, return_exceptions=True)


DONGLE = "example.com/dongle"


@pytest.mark.e2e
async def test_filtered_and_scored(tmp_path):
    """The extender sees whole objects, keeps two nodes of three and prefers one; its resource is its own."""
    webhook = Webhook(
        filter=lambda sent: {
            "Nodes": {"items": [n for n in sent["Nodes"]["items"] if n["metadata"]["name"] != "n0"]},
            "FailedNodes": {"n0": "no dongle"},
        },
        prioritize=[{"Host": "n1", "Score": 1}, {"Host": "n2", "Score": 10}],
    )
    async with await serve(SandboxOptions(kubelets=False)) as sandbox, serving(webhook):
        cluster = Cluster(sandbox)
        sandbox.load([node("n0"), node("n1"), node("n2"), pod("p", DONGLE)])
        entry = {
            "urlPrefix": webhook.url,
            "filterVerb": "filter",
            "prioritizeVerb": "prioritize",
            "weight": 5,
            "managedResources": [{"name": DONGLE, "ignoredByScheduler": True}],
        }
        await scheduling(tmp_path, cluster, [entry], lambda: cluster.node_of("p"))

        assert "n2" == cluster.node_of("p")
    [sent] = webhook.asked("filter")
    assert "kept" == sent["Pod"]["spec"]["hostname"]
    machines = [n["status"]["nodeInfo"]["machineID"] for n in sent["Nodes"]["items"]]
    assert ["id-n0", "id-n1", "id-n2"] == sorted(machines)


@reports(
    "extender-fails-closed",
    condition="`PodScheduled=False`: `SchedulerError` (`Unschedulable` of preempt), with the extender's "
    "words, or why it has no answer",
    event="`FailedScheduling` of the pod, with the same",
)
@pytest.mark.parametrize(
    ("verb", "reply", "words"),
    [
        ("filter", 503, "code 503"),
        ("filter", {"Error": "on strike"}, "on strike"),
        ("bind", 503, "code 503"),
        ("bind", {"Error": "on strike"}, "on strike"),
        ("preempt", 503, "code 503"),
    ],
)
@pytest.mark.e2e
async def test_an_extender_that_fails_closed(tmp_path, verb, reply, words):
    """The pod is not bound, and its condition and event say why."""
    replies = {"filter": {"NodeNames": ["n0"]}, "bind": {}, verb: reply}
    webhook = Webhook(**replies)
    async with await serve(SandboxOptions(kubelets=False)) as sandbox, serving(webhook):
        cluster = Cluster(sandbox)
        wanted = pod("p", DONGLE)
        objects = [node("n0"), wanted]
        if verb == "preempt":
            objects = [HIGH, *full(node("n0")), wanted]
            wanted["spec"]["priorityClassName"] = "high"
        sandbox.load(objects)
        entry = {
            "urlPrefix": webhook.url,
            **{f"{each}Verb": each for each in replies if each != "filter" or verb != "preempt"},
            "nodeCacheCapable": True,
            "managedResources": [{"name": DONGLE, "ignoredByScheduler": True}],
        }

        def told():
            events = cluster.documents("events").values()
            return any(
                e["reason"] == "FailedScheduling" and words in e.get("note", e.get("message", ""))
                for e in events
            )

        await scheduling(tmp_path, cluster, [entry], told)

        condition = cluster.condition_of("p")
        assert ("PodScheduled", "False") == (condition["type"], condition["status"])
        reason = "Unschedulable" if verb == "preempt" else "SchedulerError"
        assert reason == condition["reason"]
        assert words in condition["message"]
        assert not cluster.node_of("p")


@pytest.mark.e2e
async def test_binding_is_left_to_the_extender(tmp_path):
    """A binder that fails leaves the pod unbound, with its words in the condition."""
    async with await serve(SandboxOptions(kubelets=False)) as sandbox:
        cluster = Cluster(sandbox)
        sandbox.load([node("n0"), pod("p", DONGLE)])

        webhook = Webhook(filter={"NodeNames": ["n0"]}, bind={"Error": "on strike"})
        async with serving(webhook):
            entry = {
                "urlPrefix": webhook.url,
                "filterVerb": "filter",
                "bindVerb": "bind",
                "nodeCacheCapable": True,
                "managedResources": [{"name": DONGLE, "ignoredByScheduler": True}],
            }
            await scheduling(tmp_path, cluster, [entry], lambda: cluster.message_of("p"))

            assert "on strike" == cluster.message_of("p")
        [sent, *_] = webhook.asked("bind")
        uid = cluster.documents("pods")["p"]["metadata"]["uid"]
        assert {"PodName": "p", "PodNamespace": "default", "PodUID": uid, "Node": "n0"} == sent
