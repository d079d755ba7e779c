"""Plugins as real processes of a scheduler at work: killed, hung, confused, replaced and detached."""

import asyncio
import json
import signal
import sys
import tempfile
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from click.testing import CliRunner

from berth.cli.main import main
from berth.config import load
from berth.config.duration import Duration
from berth.config.out_of_tree.sidecars import ExtensionPoint, FailurePolicy, SidecarSpec
from berth.demo.surface import Surface
from berth.sandbox import SandboxOptions, serve
from berth.scheduler.process import run
from berth.scheduler.process_options import ProcessOptions, Serving
from tests.failures.reporting import reports
from tests.suite import PATIENCE_SECONDS
from tests.unit.scheduler_at_work import CONFIGURATION, eventually, node

PROGRAM = Path(__file__).with_name("colours_plugin.py")
PROFILE = "default-scheduler"


def pod(name, **labels):
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": labels},
        "spec": {"containers": [{"name": "c", "image": "app:1", "resources": {"requests": {"cpu": "1m"}}}]},
    }


def roomy(document):
    """The node with room for many pods."""
    for offered in document["status"].values():
        offered["pods"] = "2000"
    return document


class SchedulerAtWork:
    """A sandbox with nodes of two colours, a scheduler on it, and plugin processes."""

    def __init__(self, sandbox, folder, port):
        self.sandbox, self.folder = sandbox, folder
        self.server = f"https://127.0.0.1:{port}"
        self.processes = {}
        self.made = 0

    async def start(self, version, colour):
        """Start a plugin process; its address."""
        socket = self.folder / f"{version}.sock"
        command = [sys.executable, str(PROGRAM), str(socket), version, colour]
        self.processes[version] = await asyncio.create_subprocess_exec(*command)
        await eventually(socket.exists)
        return f"unix:{socket}"

    async def kill(self, version):
        """End a process at once."""
        process = self.processes.pop(version)
        process.send_signal(signal.SIGKILL)
        await process.wait()

    def misbehave(self, how):
        """Let the plugins do that, or nothing special."""
        orders = self.folder / "MISBEHAVE"
        if how:
            orders.write_text(how)
        else:
            orders.unlink()

    def create(self, count, *, kinds=False):
        """That many more pods, each of a kind of its own or all alike; their names."""
        names = [f"p{self.made + i}" for i in range(count)]
        self.made += count
        self.sandbox.load([pod(name, app=name) if kinds else pod(name) for name in names])
        return names

    def nodes_of(self, names):
        """The node of each pod, None where it has none."""
        documents = [entry.decode() for entry in self.sandbox.store.collection("pods").entries()]
        found = {each["metadata"]["name"]: each["spec"].get("nodeName") for each in documents}
        return [found[name] for name in names]

    async def bound(self, names):
        """Wait until all of them are; the nodes that they are on."""
        await eventually(lambda: all(self.nodes_of(names)))
        return set(self.nodes_of(names))

    async def berth(self, *arguments, code=0):
        """What `berth plugin` says to that."""
        line = ["plugin", *arguments, "--server", self.server, "--insecure-skip-tls-verify"]
        result = await asyncio.to_thread(CliRunner().invoke, main, line)
        assert code == result.exit_code, result.output
        return result.output

    async def conditions(self):
        """The plugin's conditions as `berth plugin describe` has them."""
        answer = json.loads(await self.berth("describe", "colours", "-o", "json"))
        return {each["type"]: (each["status"], each["message"]) for each in answer["conditions"]}

    async def reasons(self):
        """Status and reason of the plugin's conditions."""
        answer = json.loads(await self.berth("describe", "colours", "-o", "json"))
        return {each["type"]: (each["status"], each["reason"]) for each in answer["conditions"]}

    def unscheduled(self, name):
        """Reason and message of the pod's condition PodScheduled, both empty while it has none."""
        documents = [entry.decode() for entry in self.sandbox.store.collection("pods").entries()]
        found = [
            (condition["reason"], condition["message"])
            for each in documents
            if each["metadata"]["name"] == name
            for condition in each.get("status", {}).get("conditions") or ()
            if condition["type"] == "PodScheduled"
        ]
        return found[0] if found else ("", "")

    def notes(self, *reasons):
        """What events say for these reasons."""
        documents = [entry.decode() for entry in self.sandbox.store.collection("events").entries()]
        return [each.get("note") or each["message"] for each in documents if each["reason"] in reasons]


@asynccontextmanager
async def at_work(*nodes, policy=FailurePolicy.FAIL, listed=True, shadow=False, seconds=0.3):
    """A scheduler, with the plugin in its list or without; it is not served yet. Two nodes unless given.

    `seconds` is how long the plugin may take over an answer.
    """
    with tempfile.TemporaryDirectory(prefix="berth-") as name:
        folder, surface = Path(name), Surface.free()
        spec = SidecarSpec(
            "colours",
            f"unix:{folder}/v1.sock",
            Duration(int(seconds * 1e9)),
            failure_policy={ExtensionPoint.FILTER: policy},
            profiles=(PROFILE,),
            shadow=shadow,
        )
        async with await serve(SandboxOptions()) as sandbox:
            sandbox.load(nodes or [roomy(node(colour, colour=colour)) for colour in ("red", "blue")])
            sandbox.write_kubeconfig(folder / "config")
            ready, stop = asyncio.Event(), asyncio.Event()
            settings = ProcessOptions(
                load(CONFIGURATION.format(kubeconfig=folder / "config")),
                sidecars=(spec,) if listed else (),
                seed=1,
                serving=Serving("127.0.0.1", surface.port, always_allowed=("/*",)),
            )
            process = asyncio.create_task(run(settings, stop, on_ready=lambda _: ready.set()))
            cluster = SchedulerAtWork(sandbox, folder, surface.port)
            try:
                await eventually(lambda: process.done() or ready.is_set())
                assert not process.done(), process.result()
                yield cluster
                stop.set()
                async with asyncio.timeout(PATIENCE_SECONDS):
                    await process
            finally:
                process.cancel()
                await asyncio.gather(process, return_exceptions=True)
                for version in list(cluster.processes):
                    await cluster.kill(version)


@reports("plugin-away", event="`PluginNotReady` of the scheduler's Lease")
async def test_killed_and_restarted():
    """Without its plugin a profile whose filter fails closed binds nothing; nothing is lost meanwhile."""
    async with at_work() as cluster:
        await cluster.start("v1", "red")
        assert {"red"} == await cluster.bound(cluster.create(5))
        await cluster.kill("v1")
        waiting = cluster.create(5)
        await eventually(lambda: cluster.notes("PluginNotReady"))
        assert "False" == (await cluster.conditions())["Ready"][0]
        assert [None] * 5 == cluster.nodes_of(waiting)
        (cluster.folder / "v1.sock").unlink(missing_ok=True)
        await cluster.start("v1", "blue")

        assert {"blue"} == await cluster.bound(waiting)
        assert "True" == (await cluster.conditions())["Ready"][0]


@pytest.fixture
def long_backoff(monkeypatch):
    """A pod that failed is not tried again by itself as long as a test lasts."""
    times = "podInitialBackoffSeconds: 3600\npodMaxBackoffSeconds: 3600"
    text = CONFIGURATION.replace("podInitialBackoffSeconds: 1", times)
    monkeypatch.setattr(sys.modules[__name__], "CONFIGURATION", text)


async def failed(cluster, names):
    """Wait until each of these pods has a condition, and an event of a failed attempt."""
    events = cluster.sandbox.store.collection("events")

    def missing():
        documents = [entry.decode() for entry in events.entries()]
        about = [each.get("regarding") or each["involvedObject"] for each in documents]
        return set(names) - {each["name"] for each in about}

    await eventually(lambda: not missing() and all(any(cluster.unscheduled(name)) for name in names))


@reports(
    "plugin-away",
    condition="`Ready` of the plugin; `PodScheduled` of each pod, with the cause",
    event="`FailedScheduling` of the pod",
)
@pytest.mark.usefixtures("long_backoff")
async def test_pods_are_woken_when_the_plugin_is_back():
    """Pods that failed for want of a plugin are tried at once when it answers, whatever their backoff."""
    async with at_work() as cluster:
        waiting = cluster.create(5)
        await failed(cluster, waiting)
        assert ("False", "NotConnected") == tuple((await cluster.reasons())["Ready"])
        assert all("not connected" in cluster.unscheduled(each)[1] for each in waiting), "PodScheduled"
        await cluster.start("v1", "blue")

        assert {"blue"} == await cluster.bound(waiting)
        assert any("not connected" in note for note in cluster.notes("FailedScheduling"))


@reports(
    "plugin-garbled",
    condition="`CircuitClosed` of the plugin, once five in a row failed; `PodScheduled` of the pod",
    event="`PluginNotCircuitClosed` of the scheduler's Lease; `FailedScheduling` of the pod",
)
@pytest.mark.usefixtures("long_backoff")
async def test_pods_are_woken_when_the_circuit_closes():
    """One of the pods that failed is the probe of an open circuit; when it is answered, the others follow."""
    async with at_work() as cluster:
        await cluster.start("v1", "red")
        await cluster.bound(cluster.create(1))
        cluster.misbehave("garbage")
        waiting = cluster.create(10)
        await failed(cluster, waiting)
        await eventually(lambda: cluster.notes("PluginNotCircuitClosed"))
        assert all(cluster.unscheduled(each)[1] for each in waiting), "PodScheduled"
        assert "False" == (await cluster.conditions())["CircuitClosed"][0]
        cluster.misbehave(None)

        assert {"red"} == await cluster.bound(waiting)
        assert any("7 verdicts for 2 nodes" in note for note in cluster.notes("FailedScheduling"))


@pytest.mark.parametrize("how", ["hang", "garbage"])
async def test_misbehaves(how):
    """A plugin that hangs or answers nonsense holds its pods up until it is itself again."""
    async with at_work() as cluster:
        await cluster.start("v1", "red")
        await cluster.bound(cluster.create(3))
        cluster.misbehave(how)
        waiting = cluster.create(10)
        await eventually(lambda: cluster.notes("PluginNotReady", "PluginNotCircuitClosed"))
        assert [None] * 10 == cluster.nodes_of(waiting)
        cluster.misbehave(None)

        assert {"red"} == await cluster.bound(waiting)


@pytest.mark.parametrize("how", ["hang", "garbage"])
async def test_misbehaves_and_is_ignored(how):
    """Where that was chosen, pods are scheduled without the plugin's word."""
    async with at_work(policy=FailurePolicy.IGNORE) as cluster:
        await cluster.start("v1", "red")
        await cluster.bound(cluster.create(3))
        cluster.misbehave(how)

        assert {"red", "blue"} == await cluster.bound(cluster.create(30))


async def test_attached_replaced_and_detached_under_load():
    """While pods keep coming a plugin joins, is replaced and leaves, and no attempt fails for that."""
    async with at_work(listed=False) as cluster:
        await cluster.bound(cluster.create(3))
        first, second = await cluster.start("v1", "red"), await cluster.start("v2", "blue")
        created, stop = [], asyncio.Event()

        async def load_it():
            while not stop.is_set():
                created.extend(cluster.create(2))
                await asyncio.sleep(0.02)

        loading = asyncio.create_task(load_it())
        said = await cluster.berth("attach", "colours", "--address", first, "--profile", PROFILE)
        assert "colours attached" == said.splitlines()[0]
        with_red = cluster.create(5)
        assert {"red"} == await cluster.bound(with_red)
        await cluster.berth("attach", "colours", "--address", second)
        assert {"blue"} == await cluster.bound(cluster.create(5))
        assert "v2" in await cluster.berth("list")
        await cluster.berth("detach", "colours")
        stop.set()
        await loading
        await cluster.bound(created)
        assert {"red", "blue"} == await cluster.bound(cluster.create(20))
        await eventually(lambda: cluster.notes("PluginReady"))
        assert [] == cluster.notes("FailedScheduling")


async def test_berth_plugin_refuses():
    """What can't be done is said in words, with a non-zero exit."""
    async with at_work(listed=False) as cluster:
        assert "no plugin missing" in await cluster.berth("describe", "missing", code=2)
        assert "no plugin missing" in await cluster.berth("detach", "missing", code=2)
        wrong = await cluster.berth("attach", "a", "--address", "x", "--profile", PROFILE, code=2)
        assert 'plugins[0].address: "x" is no address' in wrong
        refused = await cluster.berth("attach", "a", "--address", "unix:/x", "--profile", "other", code=2)
        assert "no profile other; there are: default-scheduler" in refused
