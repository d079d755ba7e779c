"""The plugin queues as a process, a whole scheduler, and a sandbox that knows ElasticQuotas."""

import asyncio
import os
import sys
import tempfile
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import yaml

from berth.aggregated_api.kinds import POD
from berth.client import Api, load_endpoint
from berth.client.resources import Resource
from berth.sandbox.free_port import free_port
from berth.scheduler.process_options import Serving
from tests.sockets import served
from tests.unit.client.conftest import transport_to
from tests.unit.scheduler_at_work import eventually, node, scheduling

KINDS = Path(__file__).parents[3] / "kustomize/third-party-crds"
KIND = KINDS / "elasticquotas.yaml"
KUBECTL = Path(sys.executable).with_name("kubectl")
ELASTIC_QUOTAS = Resource("scheduling.x-k8s.io", "v1alpha1", "elasticquotas", namespaced=True)
NAME = "queues"


def quota(namespace, least, most):
    """What a namespace is guaranteed, and may use at most, in cores."""
    return {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "ElasticQuota",
        "metadata": {"name": "quota", "namespace": namespace},
        "spec": {"min": {"cpu": least}, "max": {"cpu": most}},
    }


def pods(namespace, name, count, cores="1"):
    """This many pods of one core each or more, which end at once when they are deleted."""
    container = {"name": "main", "image": "image", "resources": {"requests": {"cpu": cores}}}
    spec = {"containers": [container], "terminationGracePeriodSeconds": 0}
    return [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"{name}{i}", "namespace": namespace},
            "spec": spec,
        }
        for i in range(count)
    ]


@asynccontextmanager
async def at_work(tmp_path, **options):
    """Twelve cores, two namespaces that are guaranteed four each, a scheduler with the plugin."""
    with tempfile.TemporaryDirectory(prefix="berth-") as folder:
        socket = Path(folder, "p.sock")
        command = [sys.executable, "-m", "berth_queues", "--address", f"unix:{socket}"]
        plugin = await asyncio.create_subprocess_exec(*command, "--log-level", "warning")
        try:
            await served(socket, plugin)
            namespaces = [
                {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in ("a", "b")
            ]
            documents = [
                yaml.safe_load(KIND.read_text(encoding="utf-8")),
                *map(node, ("n0", "n1", "n2")),
                *namespaces,
            ]
            documents += [quota("a", "4", "6"), quota("b", "4", "7")]
            async with scheduling(
                tmp_path / "kubeconfig",
                *documents,
                sidecars={NAME: f"unix:{socket}"},
                without=("DefaultPreemption",),
                **options,
            ) as (sandbox, _):
                yield sandbox
        finally:
            plugin.terminate()
            await plugin.wait()


def running(sandbox, namespace):
    """The namespace's pods that have a node."""
    found = (entry.decode() for entry in sandbox.store.collection("pods").entries())
    return {
        each["metadata"]["name"]
        for each in found
        if each["metadata"]["namespace"] == namespace and each["spec"].get("nodeName")
    }


def notes(sandbox, reason):
    """What events of that reason say, as one text."""
    found = (entry.decode() for entry in sandbox.store.collection("events").entries())
    return "\n".join(each.get("note") or each["message"] for each in found if each["reason"] == reason)


def waits(sandbox, text):
    """Whether some pod is said to wait for that."""
    return text in notes(sandbox, "FailedScheduling")


async def test_borrowed_and_reclaimed(tmp_path):
    """One namespace borrows up to its max what the other leaves; the other gets its min back, and no more."""
    async with at_work(tmp_path) as sandbox:
        sandbox.load(pods("b", "borrower", 8))
        await eventually(lambda: len(running(sandbox, "b")) == 7)
        await eventually(lambda: waits(sandbox, "b/quota would be over its limit of cpu"))

        sandbox.load(pods("a", "owner", 5))
        await eventually(lambda: len(running(sandbox, "a")) == 4 and len(running(sandbox, "b")) == 4)
        await eventually(lambda: waits(sandbox, "a/quota: its quota is used and nothing is left to borrow"))
        await eventually(lambda: len(notes(sandbox, "Preempted").splitlines()) >= 3)
        assert 3 == len(notes(sandbox, "Preempted").splitlines())


async def test_what_a_quota_leaves_is_proposed(tmp_path):
    """Two nodes have two cores left, and the quota one: with that the pod would fit."""
    port = free_port()
    serving = Serving(port=port, always_allowed=("/apis/explain.berth.dev/*",))
    async with at_work(tmp_path, serving=serving) as sandbox, aiohttp.ClientSession() as client:
        sandbox.load(pods("a", "first", 5))
        await eventually(lambda: len(running(sandbox, "a")) == 5)
        sandbox.load(pods("a", "large", 1, cores="3"))
        await eventually(lambda: waits(sandbox, "a/quota would be over its limit of cpu: at most 1 of cpu"))
        url = f"https://127.0.0.1:{port}{POD.path('a', 'large0')}"
        async with client.get(url, ssl=False) as answer:
            proposals = (await answer.json())["proposals"]

    assert "Request at most 1 of cpu (now 3)." in [each["sentence"] for each in proposals]


async def test_quota_taken_away(tmp_path):
    """A pod that waits for its quota is tried again when the quota goes."""
    async with at_work(tmp_path) as sandbox:
        sandbox.load(pods("b", "borrower", 8))
        await eventually(lambda: notes(sandbox, "FailedScheduling"))
        endpoint = load_endpoint(kubeconfig=str(tmp_path / "kubeconfig"), environ={})
        async with transport_to(endpoint) as transport:
            await Api(transport).delete(ELASTIC_QUOTAS, "b", "quota")

        await eventually(lambda: len(running(sandbox, "b")) == 8)


def queue(name, **spec):
    """A queue of the plugin's own kind."""
    metadata = {"name": name}
    return {"apiVersion": "queues.berth.dev/v1alpha1", "kind": "Queue", "metadata": metadata, "spec": spec}


async def kubectl(tmp_path, *arguments):
    """What kubectl prints."""
    # What it knows of another server that had the port before is no use.
    own = ("--kubeconfig", str(tmp_path / "kubeconfig"), "--cache-dir", str(tmp_path / "discovery"))
    command = [str(KUBECTL), *own, *arguments]
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    return (await process.communicate())[0].decode()


def statuses(sandbox, kind):
    """The status of each object of a kind, by name."""
    found = (entry.decode() for entry in sandbox.store.collection(kind).entries())
    return {each["metadata"]["name"]: each.get("status", {}) for each in found}


def shown(sandbox, name):
    """The status of a queue."""
    return statuses(sandbox, "queues.queues.berth.dev")[name]


async def test_what_kubectl_shows(tmp_path):
    """Queues and quotas have their use in their status, and kubectl shows shares and what is borrowed."""
    with tempfile.TemporaryDirectory(prefix="berth-") as folder:
        socket = Path(folder, "p.sock")
        names = ("quota-a", "quota-b", "quota-c")
        documents = [
            *(yaml.safe_load((KINDS / f"{name}.yaml").read_text()) for name in ("elasticquotas", "queues")),
            *map(node, ("n0", "n1", "n2")),
            *({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in names),
            queue("all", capacity="Nodes"),
            queue("a", parent="all", quota={"cpu": "4"}, namespaces=["quota-a"]),
            queue("b", parent="all", quota={"cpu": "4"}, namespaces=["quota-b"], weight=2),
            queue("lost", parent="gone"),
            quota("quota-c", "1", "2"),
        ]
        sidecars = {NAME: f"unix:{socket}"}
        async with scheduling(
            tmp_path / "kubeconfig", *documents, sidecars=sidecars, without=("DefaultPreemption",)
        ) as (sandbox, _):
            command = [sys.executable, "-m", "berth_queues", "--address", f"unix:{socket}"]
            environment = {**os.environ, "KUBECONFIG": str(tmp_path / "kubeconfig")}
            plugin = await asyncio.create_subprocess_exec(*command, "--status", "kubeconfig", env=environment)
            try:
                await served(socket, plugin)
                sandbox.load([*pods("quota-b", "b", 6), *pods("quota-c", "c", 1)])
                await eventually(lambda: len(running(sandbox, "quota-b")) == 6)
                await eventually(
                    lambda: (
                        shown(sandbox, "b").get("used", {}).get("cpu") == "6"
                        and shown(sandbox, "b")["waiting"] == 0
                    )
                )
                await eventually(lambda: statuses(sandbox, "elasticquotas.scheduling.x-k8s.io")["quota"])
                found = statuses(sandbox, "queues.queues.berth.dev")
                table = await kubectl(tmp_path, "get", "queues", "b")
            finally:
                plugin.terminate()
                await plugin.wait()

    assert ("6", "2") == (found["b"]["fairShare"]["cpu"], found["b"]["borrowed"]["cpu"])
    assert {"message": "spec.parent: Queue gone does not exist"} == found["lost"]
    assert ["NAME", "PARENT", "QUOTA", "USED"] == table.split()[:4]
    assert '{"cpu":"2"}' in table
