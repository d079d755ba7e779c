"""The plugin by its protocol: first in this process, then as a process of its own."""

import asyncio
import json
import signal
import stat
import sys
from contextlib import asynccontextmanager

import pytest

from berth_gpu_share import GpuShare
from berth_gpu_share.contract import COUNT, DEVICES, RESOURCE
from berth_sdk import Code, PodStage
from berth_sdk.testing import Host, Refused, make_pod, running
from tests.reaper import marks
from tests.suite import PATIENCE_SECONDS
from tests.unit.gpu_share.builders import gpu_node, gpu_pod

NODES = [
    gpu_node("none", 0),
    gpu_node("one", 1, "T4"),
    gpu_node("two", 2, "V100M16"),
    gpu_node("eight", 8, "G2"),
]


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(gpu_pod("p", 500), {"none": 1}, id="a share"),
        pytest.param(gpu_pod("p", count=2), {"none": 1, "one": 3}, id="two GPUs"),
        pytest.param(gpu_pod("p", models="T4|G2"), {"none": 1, "two": 2}, id="models"),
        pytest.param(
            gpu_pod("p", models="H800"), {"none": 1, "one": 2, "two": 2, "eight": 2}, id="unknown model"
        ),
    ],
)
async def test_filter(pod, expected):
    """Each node is turned down for the first reason that holds."""
    async with running(GpuShare(), *NODES) as host:
        assert {name: GpuShare.reasons[k - 1] for name, k in expected.items()} == (
            await host.filter(pod)
        ).nodes


async def test_filter_by_what_is_left():
    """Used devices turn pods down for now, and free ones let them pass again."""
    async with running(GpuShare(), *NODES[1:3]) as host:
        share = await host.place(gpu_pod("a", 600), "one")
        await host.place(gpu_pod("b", 100), "two")

        assert {"one": GpuShare.reasons[3]} == (await host.filter(gpu_pod("p", 500))).nodes
        assert "two" in (await host.filter(gpu_pod("q", count=2))).nodes
        host.cluster.remove_pod(share["metadata"]["uid"])
        assert (await host.filter(gpu_pod("p", 500))).nodes == {}


async def test_no_gpu_no_opinion():
    """A pod that asks for no GPU is skipped."""
    async with running(GpuShare(), *NODES) as host:
        rejections, scores = await host.filter_score(make_pod("p", requests={"cpu": 1}))
        assert (rejections.status.code, scores) == (Code.SKIP, None)


async def test_nonsense_is_turned_down_once():
    """A contradictory demand is the pod's own fault, on every node."""
    async with running(GpuShare(), *NODES) as host:
        pod = make_pod("p", requests={RESOURCE: 1000}, annotations={COUNT: "3"})
        status = (await host.filter(pod)).status

    assert status.code == Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert "3 x 333 milli-GPU do not make the requested 1000" == status.reasons[0]


async def test_devices_are_written():
    """PreBind asks for the devices that Reserve chose."""
    async with running(GpuShare(), *NODES) as host:
        await host.place(gpu_pod("a", 700), "two")
        b = gpu_pod("b", 400)
        await host.reserve(b, "two")

        assert await host.pre_bind(b, "two") == {"annotations": {DEVICES: "1"}}
        with pytest.raises(Refused, match="too few unused GPUs"):
            await host.reserve(gpu_pod("c"), "two")
        await host.unreserve(b, "two")
        await host.reserve(gpu_pod("c"), "two")


async def test_profiles_choose_policies():
    """A profile's arguments choose its policy; what can't be is refused in clear words."""
    async with running(GpuShare(), *NODES, arguments={"policy": "packing"}) as host:
        assert await host.configure({"colour": 1}) == ["colour: unknown argument"]
        assert "'x' is none of best-fit, clustering," in (await host.configure({"policy": "x"}))[0]
        assert "--policy fgd" in (await host.configure({"policy": "fgd"}))[0]
        assert "'x' is none of any, fixed, used-first" in (await host.configure({"ties": "x"}))[0]
        assert "neither true nor false" in (await host.configure({"cpuPods": 1}))[0]


@pytest.mark.parametrize("policy", ["best-fit", "packing", "fgd"])
async def test_policies_fill_a_used_node_first(policy):
    """A share joins another share rather than break a free GPU."""
    async with running(GpuShare(policy), gpu_node("free"), gpu_node("used")) as host:
        for pod in (gpu_pod("whole"), gpu_pod("a", 500)):
            await host.filter(pod)
            await host.place(pod, "used")
        scores = await host.score(gpu_pod("p", 500))

    assert scores["free"] < scores["used"]


async def test_fixed_ties_are_decided():
    """Of nodes that the policy finds equal, one and the same scores highest each time, used ones first."""
    arguments = {"policy": "packing", "ties": "used-first"}
    nodes = [gpu_node(f"n{i}") for i in range(5)]
    async with running(GpuShare(), *nodes, arguments=arguments) as host:
        before = await host.score(gpu_pod("p"))
        assert before == await host.score(gpu_pod("q"))
        assert len(set(before.values())) == len(nodes)

        last = min(before, key=before.get)
        await host.place(make_pod("cpu", requests={"cpu": 1}), last)
        after = await host.score(gpu_pod("r"))
    assert max(after, key=after.get) == last


async def test_cpu_pods_are_scored_where_wanted():
    """A pod without GPU is the policy's matter where the profile says so, and filtered by others."""
    arguments = {"policy": "best-fit", "cpuPods": True}
    async with running(
        GpuShare(), gpu_node("large"), gpu_node("small", cpu="8"), arguments=arguments
    ) as host:
        rejections, scores = await host.filter_score(make_pod("p", requests={"cpu": 1}))

    assert rejections.status.code == Code.SKIP
    assert scores["small"] > scores["large"]


@asynccontextmanager
async def process(folder, *arguments, **environment):
    """Run the command; yield the process and a connected host's maker."""
    command = (
        sys.executable,
        "-m",
        "berth_gpu_share",
        "--address",
        f"unix:{folder}/private/gpu.sock",
        *arguments,
    )
    running_process = await asyncio.create_subprocess_exec(
        *command, env=environment | marks(), stderr=asyncio.subprocess.PIPE
    )
    try:
        line = b""
        while b"serving" not in line:
            line = await asyncio.wait_for(running_process.stderr.readline(), PATIENCE_SECONDS)
            assert line, await running_process.wait()
        yield running_process
    finally:
        if running_process.returncode is None:
            running_process.send_signal(signal.SIGTERM)
        await asyncio.wait_for(running_process.communicate(), PATIENCE_SECONDS)


@asynccontextmanager
async def connected(folder, cluster=None, epoch=None, **options):
    host = Host(f"unix:{folder}/private/gpu.sock", epoch=epoch, **options)
    host.cluster = cluster or host.cluster
    if cluster is None:
        for node in NODES:
            host.cluster.put_node(node)
    await host.connect()
    try:
        yield host
    finally:
        await host.close()


@pytest.mark.e2e
async def test_restarted_process_knows_what_was_taken(tmp_path):
    """A killed process's successor counts placed pods by annotation, and holds assumed ones again."""
    async with process(tmp_path) as first, connected(tmp_path) as host:
        await host.place(gpu_pod("a", count=6), "eight")
        assumed = gpu_pod("b", 900)
        await host.reserve(assumed, "eight")
        host.cluster.put_pod(assumed, "eight", PodStage.ASSUMED, attempt=1)
        await host.update()
        first.kill()
        await first.wait()

    async with process(tmp_path), connected(tmp_path, host.cluster, host.epoch) as again:
        assert await again.pre_bind(assumed, "eight") == {"annotations": {DEVICES: "6"}}
        assert "eight" in (await again.filter(gpu_pod("c", count=2))).nodes
        assert "eight" not in (await again.filter(gpu_pod("d"))).nodes


@pytest.mark.e2e
async def test_socket_is_private_and_goes_with_the_process(tmp_path):
    """Socket and directory are the owner's alone; SIGTERM ends the process well and the socket goes."""
    async with process(tmp_path) as running_process:
        path = tmp_path / "private"
        assert tuple(stat.S_IMODE(p.stat().st_mode) for p in (path, path / "gpu.sock")) == (0o700, 0o600)
    assert running_process.returncode == 0
    assert list(path.iterdir()) == []


@pytest.mark.e2e
async def test_spans_go_to_a_file(tmp_path):
    """A call within a sampled trace becomes a line in the trace file, as a child of the caller's span."""
    trace, parent = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
    spans = tmp_path / "spans.jsonl"
    async with process(tmp_path, BERTH_TRACE_FILE=str(spans)), connected(tmp_path) as host:
        host.once = True
        await host.filter(gpu_pod("untraced"))
        host.metadata = (("traceparent", f"00-{trace}-{parent}-01"),)
        await host.filter(gpu_pod("traced"))
    (line,) = [json.loads(line) for line in spans.read_text().splitlines()]

    assert (trace, parent, "gpu-share/Filter") == (line["traceId"], line["parentSpanId"], line["name"])
    assert line["resource"]["service.name"] == "gpu-share"
    assert line["startTimeUnixNano"] < line["endTimeUnixNano"]


@pytest.mark.e2e
async def test_a_served_address_is_refused(tmp_path):
    """A second process on the same socket says so in one line, and exits with 2."""
    async with process(tmp_path):
        second = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "berth_gpu_share", "--address", f"unix:{tmp_path}/private/gpu.sock"),
            stderr=asyncio.subprocess.PIPE,
        )
        _, error = await asyncio.wait_for(second.communicate(), PATIENCE_SECONDS)

    assert (2, f"berth-gpu-share: unix:{tmp_path}/private/gpu.sock: in use\n") == (
        second.returncode,
        error.decode(),
    )
