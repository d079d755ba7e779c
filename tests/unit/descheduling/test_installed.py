"""The component that makes plans on a cluster, and its rights: those that it needs and no others."""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import kubernetes_validate
import yaml

from berth.client import Api, load_endpoint
from berth.config.descheduling.policy_file import read_policy
from berth.config.loading import load
from berth.descheduling.cluster import read_live
from berth.descheduling.eviction import Evicting, MoveResult
from berth.descheduling.planner import plan
from berth.simulation.running.options import SimulationOptions
from tests.node_metrics import KIND, POD_KIND
from tests.release.version import version
from tests.unit.client.conftest import transport_to
from tests.unit.descheduling.kit import NOW, policy
from tests.unit.operator.rights import documents, granted, guarded
from tests.unit.scheduler_at_work import node

KUSTOMIZE = Path(__file__).parents[3] / "kustomize"
KUBECTL = Path(sys.executable).with_name("kubectl")
CPU = {"thresholds": {"cpu": 20}, "targetThresholds": {"cpu": 50}}
POLICY = policy(
    "RemovePodsViolatingNodeTaints",
    ("LowNodeUtilization", {**CPU, "metricsUtilization": {"source": "KubernetesMetrics"}}),
    metricsProviders=[{"source": "KubernetesMetrics"}],
)
OLD = [{"key": "old", "value": "x", "effect": "NoSchedule"}]


def pod():
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "rs"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a", "namespace": "default", "ownerReferences": [owner]},
        "spec": {"nodeName": "n0", "containers": [{"name": "c", "image": "pause"}]},
        "status": {"phase": "Running", "startTime": "2026-11-01T00:00:00Z"},
    }


async def test_rights(tmp_path):
    """A plan is made and carried out under the component's role, and every right of it is used.

    But for one: a real API server answers that a kind which it does not serve is forbidden, not that it is
    unknown.
    """
    account = documents("../components/descheduler/cron_job.yaml")
    rights = [*documents("descheduler_rights.yaml"), *account]
    (role,) = [one for one in rights if one["kind"] == "ClusterRole"]
    chosen = read_policy(json.dumps(POLICY).encode(), "policy.yaml")
    old = node("n0")
    old["spec"] = {"taints": OLD}
    async with guarded(tmp_path, "berth-system", "berth-descheduler") as (sandbox, ledger, kubeconfig):
        sandbox.load([*rights, KIND, POD_KIND, old, node("n1"), pod()])
        async with transport_to(load_endpoint(kubeconfig=str(kubeconfig), environ={})) as transport:
            cluster = await read_live(transport, chosen, NOW)
            found = await planned(cluster, chosen)
            evicting = Evicting(Api(transport), max_per_minute=6000, sleep=no_sleep)
            done = await evicting.carry_out(found)

    assert [MoveResult.EVICTED] == [each.result for each in done]
    assert [] == ledger.denied
    assert {("list", "scheduling.k8s.io", "compositepodgroups", "")} == ledger.spare([role])
    assert granted([role])


async def planned(cluster, chosen):
    """The plan, made on a loop of its own."""
    return await asyncio.to_thread(plan, cluster, chosen, SimulationOptions(load(None)), NOW)


async def no_sleep(seconds):
    """Return at once."""
    del seconds


def test_the_component(tmp_path):
    """It is valid by Kubernetes' schemas; the job finds its files, and evicts nothing by itself."""
    here = os.path.relpath(KUSTOMIZE, tmp_path.resolve())
    kustomization = {
        "resources": [f"{here}/overlays/secondary"],
        "components": [f"{here}/components/descheduler", f"{here}/images"],
        "configMapGenerator": [
            {
                "name": "berth-descheduler",
                "namespace": "berth-system",
                "files": ["policy.yaml", "scheduler.yaml"],
            }
        ],
    }
    for name in ("policy.yaml", "scheduler.yaml"):
        (tmp_path / name).write_text("{}")
    (tmp_path / "kustomization.yaml").write_text(json.dumps(kustomization))
    done = subprocess.run([KUBECTL, "kustomize", tmp_path], capture_output=True, text=True, check=False)
    assert 0 == done.returncode, done.stderr
    objects = {
        one["kind"]: one
        for one in yaml.safe_load_all(done.stdout)
        if one["metadata"]["name"].startswith("berth-descheduler")
    }
    template = objects["CronJob"]["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    (container,) = template["containers"]
    (volume,) = [each for each in template["volumes"] if each["name"] == "configuration"]

    for one in objects.values():
        kubernetes_validate.validate(one, "1.36", strict=True)
    assert objects["ConfigMap"]["metadata"]["name"] == volume["configMap"]["name"]
    files = {f"/etc/berth/{name}" for name in objects["ConfigMap"]["data"]}
    named = {each.partition("=")[2] for each in container["args"] if "=" in each}
    assert files == named
    assert "--dry-run" in container["args"]
    assert f"berth/descheduler:{version()}" == container["image"]
    assert objects["ServiceAccount"]["metadata"]["name"] == template["serviceAccountName"]
