"""The overlay of all plugins: each as the sidecar that the operator makes of it, with the rights it gets."""

import re
import socket

import pytest

from tests.e2e.installation import BIN, KUSTOMIZE, SYSTEM, Installation
from tests.go_toolchain import ROOT, build
from tests.java_toolchain import install as install_java
from tests.java_toolchain import missing
from tests.java_toolchain import program as java_program
from tests.node_metrics import KIND, node_metrics
from tests.node_toolchain import FROM_SOURCE, NODE, install
from tests.rust_toolchain import build as build_rust
from tests.rust_toolchain import needs_cargo
from tests.unit.operator.at_work import MONITOR, RULES

pytestmark = [
    pytest.mark.e2e,
    needs_cargo,
    pytest.mark.skipif(bool(missing()), reason=missing()),
]
PLUGINS = ROOT / "out-of-tree-plugins"


def free_port():
    """A port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture
def cluster(tmp_path):
    install()
    install_java()
    program = build(".", tmp_path / "coscheduling", folder=PLUGINS / "coscheduling")
    rack_aware = build(".", tmp_path / "rack-aware", folder=PLUGINS / "rack-aware")
    numa_aware = build_rust("numa-aware", tmp_path / "numa-aware", folder=PLUGINS / "numa-aware")
    found = Installation(
        tmp_path,
        [
            f"berth/queues:*={BIN}/berth-queues",
            f"berth/coscheduling:*={program}",
            f"berth/rack-aware:*={rack_aware}",
            f"berth/data-locality:*={' '.join(java_program(PLUGINS / 'data-locality'))}",
            f"berth/numa-aware:*={numa_aware}",
            f"berth/load-aware:*={NODE} {FROM_SOURCE} {PLUGINS / 'load-aware/src/main.ts'}",
        ],
    )
    try:
        found.start()
        yield found
    finally:
        found.stop()


GROUP = {
    "apiVersion": "scheduling.x-k8s.io/v1alpha1",
    "kind": "PodGroup",
    "metadata": {"name": "pair"},
    "spec": {"minMember": 2},
}


def places(cluster):
    """Give the pods that are on nodes, with those."""
    pods = cluster.get("pods", namespace="default")["items"]
    return {one["metadata"]["name"]: one["spec"]["nodeName"] for one in pods if one["spec"].get("nodeName")}


def test_every_plugin_at_work(cluster):
    """All plugins of this repository become ready in one scheduler, and each does its work there."""
    metrics = (node_metrics("n1", 0.9, cores=8), node_metrics("n2", 0.35, cores=8))
    for document in (MONITOR, RULES, KIND, *metrics):
        cluster.kubectl("create", "-f", "-", stdin=document)
    for kinds in ("crds", "third-party-crds"):
        cluster.kubectl("apply", "-k", str(KUSTOMIZE / kinds))
    manifests = cluster.folder / "all-plugins.yaml"
    # Containers of the sandbox share one network: ports have to be any that are free.
    text = cluster.kubectl("kustomize", str(KUSTOMIZE / "overlays/all-plugins"))
    manifests.write_text(re.sub(r"metricsPort: \d+", lambda _: f"metricsPort: {free_port()}", text))
    cluster.kubectl("apply", "-f", str(manifests))
    cluster.until(lambda: cluster.condition("PluginsReady")[1] == "AllReady", "the plugins are ready")
    logs = ("logs", "-n", SYSTEM, "deploy/berth-main", "-c", "plugin-load-aware")
    cluster.until(lambda: "metrics are fresh" in cluster.kubectl(*logs), "load-aware has metrics")

    cluster.kubectl("create", "-f", "-", stdin=GROUP)
    label = {"scheduling.x-k8s.io/pod-group": "pair"}
    cluster.submit("one", "berth", labels=label)
    for profile in ("berth", "gpu-share", "load-aware"):
        cluster.submit(f"by-{profile}", profile)
    alone = {"by-berth", "by-gpu-share", "by-load-aware"}
    cluster.until(lambda: alone <= set(places(cluster)), "all profiles bind")
    before = places(cluster)
    cluster.submit("other", "berth", labels=label)
    cluster.until(lambda: {"one", "other"} <= set(places(cluster)), "the group binds")

    assert "n2" == before["by-load-aware"]
    assert "one" not in before
