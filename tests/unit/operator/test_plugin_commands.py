"""`berth plugin` on a cluster shows and changes resources, and nothing else of them."""

import asyncio
import json

import pytest
from click.testing import CliRunner

from berth.cli.main import main
from berth.operator.definitions import plugin_definition, scheduler_definition
from berth.sandbox import SandboxOptions, serve
from tests.unit.operator import kit

PROFILES = [
    {"schedulerName": "a", "plugins": {"filter": {"enabled": [{"name": "gpu-share"}]}}},
    {"schedulerName": "b", "pluginConfig": [{"name": "gpu-share", "args": {"policy": "packing"}}]},
]

READY = {"type": "Ready", "status": "False", "reason": "NotReady", "message": "main: Connected: no answer"}
READY |= {"lastTransitionTime": "2026-01-02T00:00:00Z"}
STATUS = {
    "main": {"plugins": [{"name": "gpu-share", "ready": False, "message": "hung"}]},
    "gpu-share": {"schedulers": ["main"], "conditions": [READY]},
}
"""What an operator reported."""


class Cluster:
    """A sandbox with the operator's kinds, and `berth plugin` pointed at it."""

    def __init__(self, sandbox, folder):
        self._sandbox = sandbox
        self._kubeconfig = folder / "kubeconfig"
        sandbox.write_kubeconfig(self._kubeconfig)

    def spec(self, kind, name):
        """Give the spec of a Scheduler or SchedulerPlugin, None where there is none."""
        entry = self._sandbox.store.collection(f"{kind}s.berth.dev").get(f"default/{name}")
        return None if entry is None else entry.decode()["spec"]

    async def berth(self, *arguments, code=0, where=("-n", "default")):
        """Give what `berth plugin` says to that."""
        line = ["plugin", *arguments, *where, "--kubeconfig", str(self._kubeconfig)]
        result = await asyncio.to_thread(CliRunner().invoke, main, line)
        assert code == result.exit_code, result.output
        return result.output


@pytest.fixture
async def cluster(tmp_path):
    async with await serve(SandboxOptions()) as sandbox:
        sandbox.load([scheduler_definition(), plugin_definition()])
        yield load(Cluster(sandbox, tmp_path), sandbox)


def load(cluster, sandbox):
    """A Scheduler that runs gpu-share in both of its profiles, once by name and once by the plugin's list."""
    documents = [
        kit.scheduler("main", profiles=PROFILES, plugins=[{"name": "gpu-share"}]),
        kit.plugin("gpu-share", profiles=["b"], weight=3, arguments={"policy": "packing", "old": 1}),
    ]
    for one in documents:
        one["metadata"]["namespace"] = "default"
        one["status"] = STATUS[one["metadata"]["name"]]
    sandbox.load(documents)
    return cluster


async def test_attach_new(cluster):
    """A plugin that is new becomes a SchedulerPlugin, and the only Scheduler runs it."""
    said = await cluster.berth("attach", "far", "--address", "127.0.0.1:1", "--profile", "a", "--shadow")

    assert "SchedulerPlugin default/far attached to Scheduler main\n" == said
    expected = {"address": "127.0.0.1:1", "profiles": ["a"], "shadow": True}
    assert expected.items() <= cluster.spec("schedulerplugin", "far").items()
    assert [{"name": "gpu-share"}, {"name": "far"}] == cluster.spec("scheduler", "main")["plugins"]


async def test_attach_again(cluster):
    """Of a plugin that is there, what is given is replaced as a whole and the rest stays."""
    before = cluster.spec("schedulerplugin", "gpu-share")
    await cluster.berth(
        "attach", "gpu-share", "--image", "berth/gpu-share:2", "--args", '{"policy": "spread"}'
    )

    expected = before | {
        "image": "berth/gpu-share:2",
        "arguments": {"policy": "spread"},
        "imagePullPolicy": "IfNotPresent",
    }
    assert expected == cluster.spec("schedulerplugin", "gpu-share")
    assert [{"name": "gpu-share"}] == cluster.spec("scheduler", "main")["plugins"]


async def test_attach_at_an_address(cluster):
    """A sidecar that is given an address is a sidecar no longer."""
    await cluster.berth("attach", "gpu-share", "--address", "127.0.0.1:1")

    assert "image" not in cluster.spec("schedulerplugin", "gpu-share")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("attach", "far"), "no SchedulerPlugin default/far: give --image or --address to make it"),
        (("attach", "far", "--image", "x", "--scheduler", "nope"), "with --scheduler; there are: main"),
        (("attach", "-f", "/dev/null"), "berth config to-crd makes resources of a list"),
        (("attach", "gpu-share", "--address", "nowhere"), "spec.address"),
        (("detach", "far"), "no Scheduler of namespace default runs plugin far"),
        (("shadow", "far"), '"far" not found'),
    ],
)
async def test_refused(cluster, arguments, expected):
    """What cannot be is refused with what to do, and the Scheduler stays as it is."""
    before = cluster.spec("scheduler", "main")

    assert expected in await cluster.berth(*arguments, code=2)
    assert before == cluster.spec("scheduler", "main")


async def test_detach(cluster):
    """A Scheduler from which a plugin is detached names it nowhere; the SchedulerPlugin stays."""
    said = await cluster.berth("detach", "gpu-share")

    assert "SchedulerPlugin default/gpu-share detached from Scheduler main\n" == said
    assert "gpu-share" not in json.dumps(cluster.spec("scheduler", "main"))
    assert cluster.spec("schedulerplugin", "gpu-share")


async def test_detach_from_a_profile(cluster):
    """From one profile a plugin is detached in that profile alone, however it got there."""
    await cluster.berth("detach", "gpu-share", "--profile", "b")

    first, second = cluster.spec("scheduler", "main")["profiles"]
    assert PROFILES[0] == first
    assert "gpu-share" not in json.dumps(second)
    assert [] == cluster.spec("schedulerplugin", "gpu-share")["profiles"]
    assert [{"name": "gpu-share"}] == cluster.spec("scheduler", "main")["plugins"]


@pytest.mark.parametrize(("options", "expected"), [((), True), (("--off",), False)])
async def test_shadow(cluster, options, expected):
    """Into shadow and out of it."""
    await cluster.berth("shadow", "gpu-share", *options)

    assert expected == cluster.spec("schedulerplugin", "gpu-share")["shadow"]


async def test_list(cluster):
    """Every SchedulerPlugin in a line, with what its Schedulers report; --scheduler shows those of one."""
    await cluster.berth("attach", "far", "--address", "127.0.0.1:1")
    await cluster.berth("detach", "far")

    rows = [line.split() for line in (await cluster.berth("list")).splitlines()]
    assert [
        ["name", "ready", "shadow", "profiles", "schedulers", "runs"],
        ["far", "unknown", "no", "-", "-", "127.0.0.1:1"],
        ["gpu-share", "NotReady", "no", "b", "main", "berth/gpu-share:test"],
    ] == rows
    assert "far" not in await cluster.berth("list", "--scheduler", "main")
    assert (
        "gpu-share" == json.loads(await cluster.berth("list", "-o", "json"))["plugins"][1]["metadata"]["name"]
    )


async def test_describe(cluster):
    """A SchedulerPlugin with what each Scheduler says of it, and where the rest is to be asked for."""

    said = await cluster.berth("describe", "gpu-share")
    assert "Name:        default/gpu-share\n" in said
    assert 'Arguments:   {"policy": "packing", "old": 1}\n' in said
    assert "  main: hung\n" in said
    assert "  Ready: False since 2026-01-02T00:00:00Z, NotReady: main: Connected: no answer\n" in said
    assert "--server" in said


@pytest.mark.parametrize("command", [("list",), ("describe", "gpu-share"), ("shadow", "gpu-share")])
async def test_another_namespace(cluster, command):
    """Where a namespace has no Scheduler, those that have are named; the context's is asked without -n."""
    expected = "namespace empty has no Scheduler: name theirs with -n; there are some in default"

    assert expected in await cluster.berth(*command, code=2, where=("-n", "empty"))
    assert "empty" not in await cluster.berth(*command, where=())


async def test_no_operator(tmp_path):
    """A cluster without the kinds is said to be one, with the way to a scheduler of it."""
    async with await serve(SandboxOptions()) as sandbox:
        cluster = Cluster(sandbox, tmp_path)
        said = await cluster.berth("list", code=2)

    assert "this cluster has no SchedulerPlugins" in said
    assert "--server" in said


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("list", "--server", "https://127.0.0.1:1"), "give one of them"),
        (("record", "gpu-share", "-o", "x"), "kubectl port-forward"),
    ],
)
async def test_one_process(cluster, arguments, expected):
    """A cluster and one process are not mixed up, and what only a process has says how to reach it."""
    where = () if arguments[0] == "record" else ("-n", "default")

    assert expected in await cluster.berth(*arguments, code=2, where=where)
