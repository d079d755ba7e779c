"""The commands of docs/simulate.md and docs/deschedule.md run as they stand there, on a small cluster."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from berth.cli.main import main
from berth.demo.processes import program
from tests.e2e.page import Page
from tests.go_toolchain import ROOT
from tests.suite import BUILD_SECONDS

pytestmark = pytest.mark.e2e

NODES = """
apiVersion: v1
kind: Node
metadata: {name: n0, labels: {topology.kubernetes.io/zone: a}}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}
---
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {topology.kubernetes.io/zone: b}}
status: {allocatable: {cpu: "4", memory: 8Gi, pods: "10"}}
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {name: p}
spec: {containers: [{name: c, image: "app:1", resources: {requests: {cpu: "1"}}}]}
"""
CONFIGURATION = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{schedulerName: default-scheduler}]
"""
PLUGINS = """
apiVersion: berth.dev/v1alpha1
kind: PluginList
plugins: [{name: gpu-share, command: [berth-gpu-share, --policy, fgd], profiles: [default-scheduler]}]
"""
SCHEDULER = """
apiVersion: berth.dev/v1alpha1
kind: Scheduler
metadata: {name: main, namespace: berth-system}
spec: {profiles: [{schedulerName: default-scheduler}], plugins: [{name: gpu-share}]}
---
apiVersion: berth.dev/v1alpha1
kind: SchedulerPlugin
metadata: {name: gpu-share, namespace: berth-system}
spec: {image: "berth/gpu-share:0.1.0", profiles: [default-scheduler]}
"""
POLICY = """
apiVersion: descheduler/v1alpha2
kind: DeschedulerPolicy
profiles:
- name: default
  plugins: {deschedule: {enabled: [RemovePodsViolatingNodeTaints]}, balance: {enabled: [Consolidation]}}
"""
QUEUES = CONFIGURATION.replace(
    "default-scheduler}", "default-scheduler, plugins: {multiPoint: {enabled: [{name: queues}]}}}"
)
QUEUES += """---
apiVersion: berth.dev/v1alpha1
kind: PluginList
plugins: [{name: queues, command: [berth-queues, --kinds, Queue], extensionPoints: [filter, reserve]}]
"""
TREE = """
apiVersion: queues.berth.dev/v1alpha1
kind: Queue
metadata: {name: all}
spec: {capacity: Nodes}
---
apiVersion: queues.berth.dev/v1alpha1
kind: Queue
metadata: {name: a}
spec: {parent: all, quota: {cpu: "1"}, namespaces: [default]}
"""
MIXTURE = POD.replace("{name: p}", '{name: small, annotations: {simulation.berth.dev/weight: "1"}}')
FILES = {
    "nodes.yaml": NODES,
    "pods.yaml": POD,
    "pod.yaml": POD,
    "mixture.yaml": MIXTURE,
    "scheduler.yaml": CONFIGURATION,
    "packing.yaml": CONFIGURATION,
    "plugins.yaml": PLUGINS,
    "plugins-v1.yaml": PLUGINS,
    "plugins-v2.yaml": PLUGINS,
    "main.yaml": SCHEDULER,
    "changes.txt": "add-node n0 x2  # a comment\n",
    "policy.yaml": POLICY,
    "queues.yaml": QUEUES,
    "day.yaml": NODES + "---" + POD,
    "today.yaml": TREE,
    "proposed.yaml": TREE,
}
"""The readers' own files, which the pages name."""


@pytest.fixture
def cluster(tmp_path):
    """A folder with those files, and the environment of a kubeconfig whose cluster has them."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    own = {"PATH": path, "HOME": str(tmp_path), "KUBECONFIG": str(tmp_path / "kubeconfig")}
    environment = {**os.environ, **own}
    kinds = [ROOT / "kustomize/crds" / f"{kind}.yaml" for kind in ("schedulers", "schedulerplugins")]
    loads = [f"--load={file}" for file in (*kinds, "nodes.yaml", "main.yaml", "pods.yaml")]
    command = [program("berth"), "sandbox", "up", "--kubeconfig=kubeconfig", *loads]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True
    ) as sandbox:
        assert "sandbox ready" in sandbox.stdout.readline()
        yield tmp_path, environment
        sandbox.terminate()


def run_here(line):
    """Run a line that is one command `berth` in this process, whose start it does not pay again."""
    outcome = CliRunner().invoke(main, shlex.split(line, comments=True)[1:], prog_name="berth")
    assert 0 == outcome.exit_code, f"{line}: {outcome.output}{outcome.exception}"


@pytest.mark.parametrize("page", ["docs/simulate.md", "docs/deschedule.md"])
def test_page(page, cluster, monkeypatch):
    """Every command that the page has to be run succeeds, in its order; what needs a shell has one."""
    folder, environment = cluster
    monkeypatch.chdir(folder)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    text = (ROOT / page).read_text(encoding="utf-8")
    first = ["berth snapshot nodes.yaml pods.yaml -o cluster.json.zst\n"] if "snapshot -o" not in text else []
    blocks = first + Page(text).commands
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines() if line]

    for line in lines:
        if re.match(r"berth [^|>&;]*$", line):
            run_here(line)
        else:
            subprocess.run(line, shell=True, timeout=BUILD_SECONDS, check=True)
    assert len(lines) >= len(blocks) > 1
