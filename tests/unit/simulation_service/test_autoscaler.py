"""The expander, asked by a Go program as the cluster-autoscaler asks: over TLS, in k8s.io/api's protobuf."""

import asyncio
import json
import subprocess

import pytest

from berth.config.loading import load
from berth.demo.surface import Surface
from berth.framework.clock import SYSTEM_CLOCK
from berth.simulation.running.options import SimulationOptions
from berth.simulation_service.expander import Expander
from berth.simulation_service.forks import Forks
from berth.simulation_service.limits import ServiceLimits
from berth.simulation_service.queries import Queries
from berth.simulation_service.server import Tls, serve
from berth.simulation_service.service import SimulationService
from tests.go_toolchain import AUTOSCALER, CLIENT_GO_FLAGS, build
from tests.unit.extender.test_tls import self_signed
from tests.unit.simulation.kit import node, pod
from tests.unit.simulation_service.kit import cluster_of

ZONE = "topology.kubernetes.io/zone"
APP = {"app": "a"}
TERM = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": APP}}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
RULES = {
    "nodeSelector": {"disk": "ssd"},
    "affinity": {
        "podAntiAffinity": {REQUIRED: [TERM]},
        "nodeAffinity": {
            REQUIRED: {
                "nodeSelectorTerms": [
                    {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["a", "b"]}]}
                ]
            }
        },
    },
    "tolerations": [{"key": "dedicated", "operator": "Equal", "value": "x", "effect": "NoSchedule"}],
    "topologySpreadConstraints": [
        {
            "maxSkew": 1,
            "topologyKey": ZONE,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": APP},
        }
    ],
    "volumes": [{"name": "v", "emptyDir": {}}],
    "priority": 5,
}
DEDICATED = [{"key": "dedicated", "value": "x", "effect": "NoSchedule"}]


@pytest.fixture(scope="module")
def autoscaler(tmp_path_factory):
    """The Go program; skipped where it can't be built."""
    try:
        program = tmp_path_factory.mktemp("go") / "autoscaler"
        return build(".", program, *CLIENT_GO_FLAGS, folder=AUTOSCALER)
    except RuntimeError as error:
        pytest.skip(f"the program over k8s.io/api can't be built here: {error}")


async def asked(autoscaler, folder, there, **request):
    """The groups that the Go program is left with."""
    certificate, key = self_signed("localhost")
    (folder / "s.crt").write_bytes(certificate)
    (folder / "s.key").write_bytes(key)
    limits, options = ServiceLimits(), SimulationOptions(load(None))
    queries = Queries(limits, SYSTEM_CLOCK)
    cluster = cluster_of(*there)
    server, address = await serve(
        f"localhost:{Surface.free().port}",
        Tls(str(folder / "s.crt"), str(folder / "s.key")),
        SimulationService(options, lambda: cluster, Forks(limits, SYSTEM_CLOCK), queries, limits),
        Expander(options, lambda: cluster, queries, limits),
        limits,
    )
    try:
        process = await asyncio.create_subprocess_exec(
            autoscaler, address, folder / "s.crt", stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        said, _ = await process.communicate(json.dumps(request).encode())
        assert 0 == process.returncode
        return said.decode().split()
    finally:
        queries.close()
        await server.stop(None)


@pytest.mark.parametrize("newer", [False, True], ids=["nodeMap", "nodeBytesMap"])
async def test_every_rule_is_read(autoscaler, tmp_path, newer):
    """What keeps pods off nodes is read of what Go writes: selectors, affinity, taints, spreading, cpu."""
    labels = {"disk": "ssd", ZONE: "b"}
    nodes = {
        "good": node("good", cpu="2", labels=labels, taints=DEDICATED),
        "cpu": node("cpu", cpu="900m", labels=labels),
        "disk": node("disk", labels={ZONE: "b"}),
        "zone": node("zone", labels=labels | {ZONE: "c"}),
        "skewed": node("skewed", labels=labels | {ZONE: "a"}),
        "taint": node("taint", labels=labels, taints=[DEDICATED[0] | {"value": "y"}]),
        "large": node("large", cpu="64", labels=labels),
        "cordoned": node("cordoned", labels=labels, unschedulable=True),
    }
    there = [
        node("n0", cpu="1", labels={"disk": "ssd", ZONE: "a"}),
        node("n1", cpu="100m", labels={"disk": "ssd", ZONE: "b"}),
        pod("q", labels=APP, nodeName="n0"),
    ]
    options = [{"group": group, "count": 1, "pods": [pod("p", labels=APP, **RULES)]} for group in nodes]

    assert ["good"] == await asked(autoscaler, tmp_path, there, options=options, nodes=nodes, bytes=newer)


async def test_none_is_left(autoscaler, tmp_path):
    """Where no group helps the answer is empty."""
    options = [{"group": "a", "count": 1, "pods": [pod("p", cpu="8")]}]

    assert [] == await asked(autoscaler, tmp_path, [], options=options, nodes={"a": node("x")}, bytes=True)
