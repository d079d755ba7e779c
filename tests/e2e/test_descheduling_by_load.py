"""Real use over sockets: the command, a scheduler at work, and a real Prometheus or metrics.k8s.io."""

import asyncio
import json
import shutil
import socket
from contextlib import asynccontextmanager

import pytest
from aiohttp import ClientError, ClientSession

from berth.sandbox import SandboxOptions
from tests.node_metrics import KIND, POD_KIND, node_usage, pod_usage
from tests.suite import PATIENCE_SECONDS
from tests.unit.descheduling.kit import policy
from tests.unit.descheduling.test_at_work import DEPLOYMENT, descheduled
from tests.unit.scheduler_at_work import eventually, node, scheduling
from tests.unit.simulation.kit import written

BUSY = 'label_replace(vector(0.9), "instance", "n0", "", "")'
IDLE = 'label_replace(vector(0.1), "instance", "n1:9100", "", "")'
PROMETHEUS = shutil.which("prometheus")


def by_prometheus(url):
    bounds = {"thresholds": {"MetricResource": 30}, "targetThresholds": {"MetricResource": 60}}
    metrics = {"source": "Prometheus", "prometheus": {"query": f"{BUSY} or {IDLE}"}}
    provider = {"source": "Prometheus", "prometheus": {"url": url}}
    return policy(
        ("LowNodeUtilization", {**bounds, "metricsUtilization": metrics}), metricsProviders=[provider]
    )


def by_metrics_server():
    source = {"source": "KubernetesMetrics"}
    bounds = {"thresholds": {"cpu": 30}, "targetThresholds": {"cpu": 60}}
    return policy(("LowNodeUtilization", {**bounds, "metricsUtilization": source}), metricsProviders=[source])


@asynccontextmanager
async def prometheus(folder):
    """Debian's program without targets; gives its URL."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    configuration = folder / "prometheus.yml"
    configuration.write_text("global: {}\n")
    process = await asyncio.create_subprocess_exec(
        PROMETHEUS,
        *(f"--config.file={configuration}", f"--storage.tsdb.path={folder}/data"),
        *(f"--web.listen-address=127.0.0.1:{port}", "--log.level=error"),
    )
    url = f"http://127.0.0.1:{port}"
    try:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not await _ready(url):
                assert process.returncode is None
                await asyncio.sleep(0.05)
        yield url
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def _ready(url):
    try:
        async with ClientSession() as session, session.get(f"{url}/-/ready") as answer:
            return 200 == answer.status
    except ClientError:
        return False


@asynccontextmanager
async def three_on_one(tmp_path, *documents):
    """A sandbox whose only node has three pods when another node joins; its kubeconfig and pods."""
    kubeconfig = tmp_path / "kubeconfig"
    options = SandboxOptions(controllers=True, pod_grace_seconds=0.01)
    async with scheduling(kubeconfig, node("n0"), DEPLOYMENT, *documents, options=options) as (sandbox, _):

        def pods():
            kind = sandbox.api.catalogue.get("", "v1", "pods")
            return [entry.decode() for entry in sandbox.api.rest.collection(kind).entries("default/")]

        def on_nodes():
            staying = [each for each in pods() if not each["metadata"].get("deletionTimestamp")]
            return sorted(each["spec"].get("nodeName", "") for each in staying)

        await eventually(lambda: on_nodes() == ["n0"] * 3)
        sandbox.load([node("n1")])
        yield sandbox, kubeconfig, pods, on_nodes


@pytest.mark.skipif(PROMETHEUS is None, reason="prometheus is not installed (Debian: package prometheus)")
async def test_prometheus_relieves_one_pod_at_a_time(tmp_path):
    """The query's own numbers count; once Prometheus is gone nothing is evicted, and the plan says so."""
    async with three_on_one(tmp_path) as (_, kubeconfig, _, on_nodes):
        async with prometheus(tmp_path) as url:
            file = written(tmp_path / "policy.json", by_prometheus(url))
            (plan, done), code = await descheduled(kubeconfig, file)
        await eventually(lambda: on_nodes() == ["n0", "n0", "n1"])
        (failed, nothing), failed_code = await descheduled(kubeconfig, file)

    assert (0, 3) == (code, failed_code)
    assert ["n0 has MetricResource 90.0 %, n1 MetricResource 10.0 %"] == [m["gain"] for m in plan["moves"]]
    assert ["Evicted"] == [each["result"] for each in done["evictions"]]
    assert ([], []) == (failed["moves"], nothing["evictions"])
    assert failed["failures"][0].startswith(f"LowNodeUtilization: Prometheus {url}: ")
    assert failed["failures"][0].endswith("reached from here; no pod is evicted for it")


async def test_metrics_server_relieves_down_to_the_target(tmp_path):
    """Pods leave by what each uses; what their requests say counts for nothing."""
    async with three_on_one(tmp_path, KIND, POD_KIND) as (sandbox, kubeconfig, pods, on_nodes):
        used = [pod_usage(each["metadata"]["name"], 1) for each in pods()]
        sandbox.load([node_usage("n0", 3), node_usage("n1", 0.1), *used])
        file = written(tmp_path / "policy.json", by_metrics_server())

        (plan, _), code = await descheduled(kubeconfig, file)
        await eventually(lambda: on_nodes() == ["n0", "n0", "n1"])

    assert 0 == code
    assert ["n0 from cpu 75.0 % to cpu 50.0 %"] == [move["gain"] for move in plan["moves"]]
    assert json.dumps(plan["failures"]) == "[]"
