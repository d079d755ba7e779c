"""One trace for a pod that sidecars in four languages had a say in, as a collector gets it over OTLP."""

import asyncio
import json
import tempfile
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import product
from pathlib import Path

import pytest

from berth.client.resources import PODS
from berth.demo.processes import Child, program
from tests.e2e.collector import collecting
from tests.e2e.default_cluster import CONFIGURATION, default_cluster
from tests.go_toolchain import GO_SDK, ROOT, build
from tests.node_toolchain import FROM_SOURCE, NODE, NODE_SDK, install
from tests.rust_toolchain import build as build_rust
from tests.rust_toolchain import needs_cargo
from tests.suite import PATIENCE_SECONDS
from tests.unit.scheduler_at_work import node

pytestmark = [pytest.mark.e2e, needs_cargo]

NUMA_AWARE = ROOT / "out-of-tree-plugins/numa-aware"
PODS_BOUND = 3
ANSWERED = {
    "hello": "FilterScore",
    "every-tenth": "FilterScore",
    "numa-aware": "FilterScore",
    "queues": "Reserve",
}
"""A call that each sidecar answers for every pod: in Go, in TypeScript, in Rust, in Python."""
PROFILES = """
profiles:
- plugins:
    multiPoint:
      enabled:
      - name: hello
      - name: every-tenth
      - name: numa-aware
      - name: queues
"""


def commands(folder):
    """How each sidecar is started, but for its address."""
    install()
    return {
        "hello": (str(build(".", folder / "hello", folder=GO_SDK / "template")), "-address"),
        "every-tenth": (str(NODE), FROM_SOURCE, str(NODE_SDK / "test/benchplugin.ts"), "every-tenth"),
        "numa-aware": (str(build_rust("numa-aware", folder / "numa-aware", folder=NUMA_AWARE)), "--address"),
        "queues": (program("berth-queues"), "--address"),
    }


@asynccontextmanager
async def sidecars(folder):
    """All of them at work; gives the file that lists them."""
    listed = folder / "plugins.yaml"
    async with AsyncExitStack() as stack:
        sockets = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="berth-")))
        entries = []
        for name, command in (await asyncio.to_thread(commands, folder)).items():
            socket = sockets / f"{name}.sock"
            child = await Child.start(name, (*command, f"unix:{socket}"), folder / f"{name}.log")
            stack.push_async_callback(child.stop)
            await child.wait_for(socket, PATIENCE_SECONDS)
            entries.append({"name": name, "address": f"unix:{socket}"})
        document = {"apiVersion": "berth.dev/v1alpha1", "kind": "PluginList", "plugins": entries}
        listed.write_text(json.dumps(document))
        yield listed


def pod(name):
    """A pod that asks for next to nothing, of a kind of its own."""
    container = {"name": "main", "image": "app:1", "resources": {"requests": {"cpu": "1m"}}}
    metadata = {"name": name, "namespace": "default", "labels": {"app": name}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}


@pytest.fixture
async def spans(tmp_path, monkeypatch):
    """What a collector has got of a run with three pods, once all processes have ended."""
    bound = set()

    def look(_, document):
        if document["spec"].get("nodeName"):
            bound.add(document["metadata"]["name"])

    with collecting() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.endpoint)
        async with sidecars(tmp_path) as listed:
            nodes, flags = [node(f"n{number}") for number in range(12)], [f"--plugins={listed}"]
            cluster = default_cluster(tmp_path, nodes, CONFIGURATION + PROFILES, flags)
            async with cluster as running, running.watching(look):
                # One after the other: about kinds that wait, a plugin is asked before their pods' attempts.
                for number in range(1, PODS_BOUND + 1):
                    await running.create(PODS, [pod(f"p{number}")])
                    await running.reach(lambda number=number: len(bound) == number)
        yield collector.spans


async def test_one_trace_over_four_languages(spans):
    """Each sidecar's spans hang below the scheduler's call of it, all of them below the pod's one root."""
    ours = {each.span: each for each in spans if each.service == "berth-scheduler"}
    attempts = {each.trace for each in ours.values() if each.name == "binding cycle"}

    assert len(attempts) == PODS_BOUND
    for trace, (service, method) in product(attempts, ANSWERED.items()):
        (answer,) = (
            each for each in spans if each[:2] == (service, trace) and each.name == f"{service}/{method}"
        )
        above = list(ancestors(ours, answer))
        systems = [each.attributes["rpc.system.name"] for each in (answer, above[0])]
        assert ["ttrpc", "ttrpc"] == systems, service
        assert f"{service} {method}" == above[0].name
        assert ("schedule pod", "") == (above[-1].name, above[-1].parent)
        assert {trace} == {each.trace for each in above}


def ancestors(spans, span):
    """The spans around this one, the innermost first."""
    while span.parent:
        span = spans[span.parent]
        yield span
