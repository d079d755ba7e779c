"""The commands as processes, against a whole scheduler with an extender and a real API server in memory."""

import asyncio
import json
import sys
import tempfile
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from berth.config import load
from berth.config.duration import Duration
from berth.config.out_of_tree.sidecars import SidecarSpec, catalogue_of
from berth.demo.processes import program
from berth.sandbox import SandboxOptions, serve
from berth.sandbox.free_port import free_port
from berth.scheduler.process import run
from berth.scheduler.process_options import ProcessOptions, Serving
from tests.sockets import served
from tests.suite import PATIENCE_SECONDS
from tests.unit.extender.webhook import Webhook, serving
from tests.unit.scheduler_at_work import eventually, node

QUOTA = Path(__file__).with_name("quota_plugin.py")


def pod(name, labels=None, **spec):
    container = {"name": "main", "image": "app:1", "resources": {"requests": {"cpu": "1"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": labels or {}},
        "spec": {"containers": [container], **spec},
    }


@asynccontextmanager
async def at_work(tmp_path, *documents, extenders=(), sidecars=()):
    """A scheduler on a sandbox with these objects; gives what runs `berth`, and the scheduler's core."""
    async with await serve(SandboxOptions()) as sandbox:
        sandbox.load(documents)
        sandbox.write_kubeconfig(tmp_path / "kubeconfig")
        enabled = [{"name": spec.name} for spec in sidecars]
        configuration = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "clientConnection": {"kubeconfig": str(tmp_path / "kubeconfig")},
            "leaderElection": {"leaderElect": False},
            "extenders": list(extenders),
            "profiles": [{"plugins": {"multiPoint": {"enabled": enabled}}}],
        }
        port = free_port()
        settings = ProcessOptions(
            load(json.dumps(configuration), out_of_tree=catalogue_of(sidecars)),
            sidecars=tuple(sidecars),
            seed=1,
            serving=Serving(port=port, always_allowed=("/apis/explain.berth.dev/*",)),
        )
        ready, stop = asyncio.get_running_loop().create_future(), asyncio.Event()
        process = asyncio.create_task(run(settings, stop, on_ready=ready.set_result))

        async def berth(*words):
            """The exit code and the output of `berth` with these words."""
            flags = ("--insecure-skip-tls-verify", "--server", f"https://127.0.0.1:{port}")
            child = await asyncio.create_subprocess_exec(
                program("berth"),
                *words,
                *flags,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
            )
            output, _ = await child.communicate()
            return child.returncode, output.decode()

        try:
            await eventually(lambda: process.done() or ready.done())
            yield berth, ready.result()
            stop.set()
            async with asyncio.timeout(PATIENCE_SECONDS):
                await process
        finally:
            process.cancel()
            await asyncio.gather(process, return_exceptions=True)


@pytest.mark.e2e
async def test_the_commands(tmp_path):
    """A pod that an extender turned down is not shown as fitting everywhere; the others say what they are."""
    webhook = Webhook(
        filter=lambda sent: {
            "Nodes": {"items": []},
            "FailedNodes": {n["metadata"]["name"]: "over quota" for n in sent["Nodes"]["items"]},
        }
    )
    documents = [
        node("n0"),
        node("n1"),
        pod("p"),
        pod("q", schedulerName="another"),
        pod("r", schedulingGates=[{"name": "g"}]),
    ]
    async with serving(webhook):
        entry = {"urlPrefix": webhook.url, "filterVerb": "filter"}
        async with at_work(tmp_path, *documents, extenders=[entry]) as (berth, core):
            await eventually(
                lambda: core.queue.record("default", "p") and core.queue.sizes().unschedulable == 1
            )
            pages = {
                words: await berth(*words.split())
                for words in (
                    "explain pod p",
                    "explain pod p -o json --no-proposals",
                    "explain pod p -o yaml --all-reasons",
                    "explain pod q",
                    "explain pod r -o wide",
                    "explain pod nothing",
                    "explain node n0",
                    "explain profile",
                    "explain podgroup g",
                    "queue",
                )
            }

    said = f"Cause:  The pod fits on no node: over quota (extender {webhook.url})."
    assert (0, said) == (pages["explain pod p"][0], pages["explain pod p"][1].splitlines()[1])
    answer = json.loads(pages["explain pod p -o json --no-proposals"][1])
    assert ("explain.berth.dev/v1alpha1", "Explanation", 0, []) == (
        answer["apiVersion"],
        answer["kind"],
        answer["nodes"]["feasible"],
        answer["proposals"],
    )
    assert "kind: Explanation" in pages["explain pod p -o yaml --all-reasons"][1]
    assert 'Cause:  The pod names the scheduler "another"' in pages["explain pod q"][1]
    assert "Cause:  The pod has scheduling gates: g." in pages["explain pod r -o wide"][1]
    assert (2, True) == (
        pages["explain pod nothing"][0],
        'pod "nothing" not found in namespace "default"' in pages["explain pod nothing"][1],
    )
    assert "0 of 2 waiting pods would fit on the node now" in pages["explain node n0"][1]
    assert "profile default-scheduler" in pages["explain profile"][1]
    assert "no PodGroup default/g is known" in pages["explain podgroup g"][1]
    assert "Kept out by:\n      1  SchedulingGates  (default/r)" in pages["queue"][1]


@asynccontextmanager
async def with_quota(tmp_path, *documents):
    """The same with the quota plugin as a process of its own, which is ended last."""
    with tempfile.TemporaryDirectory(prefix="berth-") as folder:
        socket = Path(folder, "p.sock")
        plugin = await asyncio.create_subprocess_exec(sys.executable, QUOTA, socket)
        try:
            await served(socket, plugin)
            # On a busy machine a call takes longer than the plugin's own bound.
            sidecars = [SidecarSpec("quota", f"unix:{socket}", Duration(60 * 10**9))]
            async with at_work(tmp_path, *documents, sidecars=sidecars) as found:
                yield found
        finally:
            plugin.terminate()
            await plugin.wait()


@pytest.mark.e2e
async def test_a_plugin_in_another_process_and_what_would_make_a_pod_fit(tmp_path):
    """It is asked about the pod as it would be: what it turns down then is not proposed."""
    demanding = pod("p", {"most-milli-cpu": "2500"})
    demanding["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "400"
    large, small = node("large"), node("small")
    for resources in (small["status"]["capacity"], small["status"]["allocatable"]):
        resources["cpu"] = "2"
    async with with_quota(tmp_path, large, small, demanding) as (berth, core):
        await eventually(lambda: core.queue.sizes().unschedulable == 1)
        code, said = await berth("explain", "pod", "p", "-o", "json")

    answer = json.loads(said)
    (proposal,) = [one for one in answer["proposals"] if one["kind"] == "Requests"]
    assert (0, "Request at most 2 of cpu (now 400).") == (code, proposal["sentence"])
    assert ["large", "small"] == proposal["nodes"]


@pytest.mark.e2e
async def test_a_plugin_in_another_process(tmp_path):
    """Its own words are the cause, wherever it holds a pod up."""
    stops = ("queue", "filter", "permit")
    documents = [node("n0"), *(pod(f"p-{where}", {"stops": where}) for where in stops)]
    async with with_quota(tmp_path, *documents) as (berth, core):
        await eventually(
            lambda: (
                (len(core.waiting_pods), core.queue.sizes()[2:]) == (1, (1, 1))
                and core.queue.record("default", "p-queue").gating_message
            )
        )
        causes = [(await berth("explain", "pod", f"p-{where}"))[1].splitlines()[1] for where in stops]

    assert [
        "Cause:  quota keeps the pod out of the queue: the team has no quota.",
        "Cause:  The pod fits on no node: the quota is used up (quota).",
        "Cause:  Node n0 was chosen, and the pod waits at Permit for quota",
    ] == [causes[0], causes[1], causes[2].partition(", until")[0]]
