"""The plugin load-aware as a process, servers of metrics over real HTTP, and a whole scheduler."""

import asyncio
import json
import os
import re
import tempfile
import time
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path

import pytest
import yaml
from aiohttp import ClientSession, web

from berth_sdk.testing import make_node, make_pod
from berth_sdk.testing.host import Host
from tests.node_metrics import CORES, KIND, MEMORY, node_metrics
from tests.node_toolchain import FROM_SOURCE, NODE, ROOT, install
from tests.sockets import served
from tests.suite import PATIENCE_SECONDS
from tests.unit.client.conftest import web_server
from tests.unit.operator.rights import guarded
from tests.unit.scheduler_at_work import eventually, node, scheduling

PROGRAM = ROOT / "out-of-tree-plugins/load-aware/src/main.ts"
RIGHTS = ROOT / "kustomize/components/plugins/load-aware/rights.yaml"
NAME = "load-aware"
BY_RISK = {
    "strategy": "LoadVariationRiskBalancing",
    "fetchIntervalSeconds": 1,
    "maxAgeSeconds": 2 * PATIENCE_SECONDS,
}
"""No metrics become stale because the machine is busy."""


class Metrics:
    """A server of metrics: the share of each node that is in use, as either provider shows it."""

    def __init__(self, **shares):
        self.shares, self.down, self.asked, self.age = shares, False, 0, 0

    async def handle(self, request):
        query = request.query.get("query", "")
        # Of the queries of one fetch from Prometheus one counts.
        self.asked += not query or (query.startswith("avg") and "node_cpu" in query)
        if self.down:
            return web.Response(status=503, text="down")
        if request.path == "/apis/metrics.k8s.io/v1beta1/nodes":
            items = [node_metrics(*each, age=self.age) for each in self.shares.items()]
            return web.json_response({"items": items})
        assert "/api/v1/query" == request.path
        return web.json_response(self._vector(query))

    def _vector(self, query):
        scale = 0 if query.startswith("stddev") else CORES if "node_cpu" in query else MEMORY
        result = [
            {"metric": {"instance": name}, "value": [time.time() - self.age, str(share * scale)]}
            for name, share in self.shares.items()
        ]
        return {"status": "success", "data": {"resultType": "vector", "result": result}}

    async def fetched(self):
        """Wait until a fetch that begins from now on has been taken over: then another one begins."""
        before = self.asked
        await eventually(lambda: self.asked >= before + 2)


class Plugin:
    """The plugin at work: its address, and what it says of itself."""

    def __init__(self, folder):
        self.address = f"unix:{folder}/p.sock"
        self._log = Path(folder, "log")

    @property
    def log(self):
        return self._log.read_text(encoding="utf-8")

    async def state(self):
        """The plugin's own page about the only profile."""
        port = re.search(r"serving metrics port=(\d+)", self.log)[1]
        async with ClientSession() as session, session.get(f"http://127.0.0.1:{port}/state") as answer:
            return json.loads(await answer.text())["profiles"]["default-scheduler"]

    async def becomes(self, stage):
        """Wait until the plugin takes its metrics for that."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while (await self.state())["metrics"] != stage:  # noqa: ASYNC110 - another process's state
                await asyncio.sleep(0.05)


@asynccontextmanager
async def serving():
    """The plugin as a process of its own."""
    await asyncio.to_thread(install)
    with tempfile.TemporaryDirectory(prefix="berth-") as folder:
        plugin = Plugin(folder)
        flags = ("--address", plugin.address, "--metrics-address", "127.0.0.1:0")
        log = os.open(Path(folder, "log"), os.O_WRONLY | os.O_CREAT)
        process = await asyncio.create_subprocess_exec(NODE, FROM_SOURCE, PROGRAM, *flags, stderr=log)
        os.close(log)
        try:
            await served(Path(folder, "p.sock"), process)
            yield plugin
        finally:
            process.terminate()
            await process.wait()


def pod(name):
    """A pod that asks for next to nothing."""
    container = {"name": "main", "image": "image", "resources": {"requests": {"cpu": "10m"}}}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}


def place_of(sandbox, name):
    """The node that a pod was bound to."""
    pods = (entry.decode() for entry in sandbox.store.collection("pods").entries())
    return next(each["spec"].get("nodeName") for each in pods if each["metadata"]["name"] == name)


@pytest.mark.parametrize(
    "provider", ["KubernetesMetricsServer", "Prometheus"], ids=["metrics-server", "prometheus"]
)
async def test_pods_go_where_load_is_low(tmp_path, provider):
    """Equal pods follow the load as it moves, and are bound as well when there are no metrics any more."""
    metrics, numbers = Metrics(n0=0.8, n1=0.2, n2=0.7), count()

    async def three():
        """Where three more pods go."""
        names = [f"p{next(numbers)}" for _ in range(3)]
        sandbox.load(map(pod, names))
        await eventually(lambda: all(place_of(sandbox, name) for name in names))
        return {place_of(sandbox, name) for name in names}

    async with web_server(metrics.handle) as url, serving() as plugin:
        given = {**BY_RISK, "metricProvider": {"type": provider, "address": url}}
        nodes = [node(name) for name in metrics.shares]
        at_work = scheduling(
            tmp_path / "kubeconfig", *nodes, sidecars={NAME: plugin.address}, arguments=given
        )
        async with at_work as (sandbox, _):
            await plugin.becomes("FRESH")
            assert {"n1"} == await three()

            metrics.shares = {"n0": 0.1, "n1": 0.9, "n2": 0.7}
            await metrics.fetched()
            assert {"n0"} == await three()

            metrics.age = 2 * BY_RISK["maxAgeSeconds"]
            await plugin.becomes("STALE")
            metrics.down = True
            await metrics.fetched()
            assert await three() <= {"n0", "n1", "n2"}
        state, log = await plugin.state(), plugin.log

    assert ("neutral", {"fresh": 0, "stale": 3, "absent": 0}) == (state["scores"], state["nodes"])
    assert "answered 503: down" in state["fetches"]["error"]
    assert "warn metrics are stale, all nodes score the same" in log


async def test_a_server_that_never_answers():
    """No call waits for metrics: scores are neutral while a fetch is under way."""
    asked = asyncio.Event()

    async def silent(_):
        asked.set()
        await asyncio.Event().wait()

    async with web_server(silent) as url, serving() as plugin:
        host = Host(plugin.address)
        host.cluster.put_node(make_node("n0"))
        await host.connect({"metricProvider": {"address": url}})
        async with asyncio.timeout(PATIENCE_SECONDS):
            await asked.wait()
        scores = await host.score(make_pod("p"))
        state = await plugin.state()
        await host.close()

    assert ({"n0": 50}, "WAITING") == (scores, state["metrics"])


def bound_to(role, account):
    """The binding that the operator makes for a scheduler that runs the plugin."""
    name, group = role["metadata"]["name"], "rbac.authorization.k8s.io"
    return {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": "berth-system"}],
    }


async def test_rights(tmp_path):
    """The component's role is enough to read NodeMetrics of an API server with RBAC over TLS, and no more."""
    role = next(yaml.safe_load_all(RIGHTS.read_text(encoding="utf-8")))
    async with guarded(tmp_path, "berth-system", "berth-main") as (sandbox, ledger, kubeconfig):
        sandbox.load([KIND, role, bound_to(role, "berth-main")])
        sandbox.load([node_metrics("n0", 0.4), node_metrics("n1", 0.9)])
        user = yaml.safe_load(kubeconfig.read_text())["users"][0]["user"]
        (tmp_path / "token").write_text(user["token"])
        (tmp_path / "ca.crt").write_bytes(sandbox._authority)
        provider = {
            "address": sandbox.url,
            "tokenFile": str(tmp_path / "token"),
            "caFile": str(tmp_path / "ca.crt"),
        }
        async with serving() as plugin:
            host = Host(plugin.address)
            for name in ("n0", "n1"):
                host.cluster.put_node(make_node(name, allocatable={"cpu": "4", "memory": "64Gi"}))
            await host.connect({"metricProvider": provider, "fetchIntervalSeconds": 1})
            await plugin.becomes("FRESH")
            scores = await host.score(make_pod("p", requests={"cpu": "0"}))
            await host.close()

    assert {"n0": 100, "n1": 7} == scores
    assert [] == ledger.denied
    assert set() == ledger.spare([role])
