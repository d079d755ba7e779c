"""The built wheels alone: each module is in one of them, and together they schedule a pod."""

import json
import os
import subprocess
import sys
import tarfile
import time
import zipfile
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests import sources
from tests.reaper import marks
from tests.release.dist import UV, built, wheels
from tests.release.installed import anew, environment
from tests.release.version import version
from tests.suite import PATIENCE_SECONDS

pytestmark = pytest.mark.e2e

SHARING = ("berth-scheduler", "berth-operator", "berth-sandbox", "berth-simulation", "berth-conformance")
"""The distributions of the one package `berth`."""
CONFIGURATION = """\
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection: {kubeconfig: kubeconfig}
"""
OBJECTS = """\
apiVersion: v1
kind: Node
metadata: {name: node}
status:
  allocatable: {cpu: "4", memory: 8Gi, pods: "110"}
  capacity: {cpu: "4", memory: 8Gi, pods: "110"}
---
apiVersion: v1
kind: Pod
metadata: {name: pod, namespace: default}
spec:
  containers: [{name: main, image: none, resources: {requests: {cpu: "1"}}}]
"""


def wheel(distribution):
    """The file of a distribution's wheel."""
    return built("wheels") / f"{distribution.replace('-', '_')}-{version()}-py3-none-any.whl"


TEMPLATES = "berth/conformance/templates/"
"""Files of `berth plugin init`, which are no modules of ours."""


def modules(distribution):
    """The modules of the package `berth` that a wheel carries."""
    return {
        name
        for name in zipfile.ZipFile(wheel(distribution)).namelist()
        if name.startswith("berth/") and name.endswith(".py") and not name.startswith(TEMPLATES)
    }


def test_each_module_is_in_one_wheel():
    """The wheels that share the package `berth` have each of its modules, and none has another's."""
    carried = [name for each in SHARING for name in modules(each)]

    assert sorted(f"berth/{name}" for name in sources.modules()) == sorted(carried)


def test_what_is_built_twice_is_the_same(tmp_path):
    """A second build of the same sources gives the same wheel, byte for byte."""
    wheels(tmp_path, "--package", "berth-operator")

    assert wheel("berth-operator").read_bytes() == (tmp_path / wheel("berth-operator").name).read_bytes()


@pytest.mark.parametrize("distribution", [*SHARING, "berth-images", "berth-plugin-sdk", "berth-plugin-proto"])
def test_the_licence_comes_along(distribution):
    """A wheel carries the text of the licence."""
    assert any(name.endswith("/LICENSE") for name in zipfile.ZipFile(wheel(distribution)).namelist())


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """The folder of the programs that the wheels of the sandbox and the scheduler install."""
    return environment(tmp_path_factory.mktemp("installed") / "environment", "berth-sandbox")


@pytest.fixture
def started(tmp_path):
    """A function that starts a program in an empty folder, to be ended with the test."""
    with ExitStack() as ends:

        def start(*command):
            log = ends.enter_context((tmp_path / f"{Path(command[0]).name}-{command[1]}.log").open("w"))
            process = subprocess.Popen(
                command, cwd=tmp_path, env=bare(), stdout=log, stderr=subprocess.STDOUT
            )
            ends.callback(process.wait, PATIENCE_SECONDS)
            ends.callback(process.terminate)
            return process

        yield start


def bare():
    """An environment in which nothing points to this checkout."""
    return {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "PYTHONSAFEPATH": "1", **marks()}


def kubectl(folder, *words):
    """What kubectl prints, asked of the sandbox."""
    command = [str(Path(sys.executable).parent / "kubectl"), "--kubeconfig", folder / "kubeconfig", *words]
    done = subprocess.run(command, cwd=folder, env=bare(), capture_output=True, text=True, check=False)
    assert 0 == done.returncode, done.stderr
    return done.stdout


def until(condition):
    """What the condition gives once it gives something."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not (found := condition()):
        assert time.monotonic() < end, "the condition did not come true"
        time.sleep(0.05)
    return found


def test_a_pod_is_scheduled(tmp_path, programs, started):
    """In an empty folder, with nothing but the installed wheels, a sandbox and a scheduler place a pod."""
    started(programs / "berth", "sandbox", "up", "--kubeconfig", "kubeconfig")
    until((tmp_path / "kubeconfig").exists)
    (tmp_path / "scheduler.yaml").write_text(CONFIGURATION)
    (tmp_path / "objects.yaml").write_text(OBJECTS)
    kubectl(tmp_path, "apply", "--validate=false", "-f", "objects.yaml")

    started(programs / "berth", "scheduler", "--config=scheduler.yaml", "--secure-port=0")

    assert "node" == until(
        lambda: json.loads(kubectl(tmp_path, "get", "pod", "pod", "-o", "json"))["spec"].get("nodeName")
    )


def tools(folder, **variables):
    """An environment in which uv keeps the tools that it runs in a folder of this test."""
    return {**os.environ, "UV_TOOL_DIR": str(folder / "tools"), "UV_PYTHON": sys.executable, **variables}


@pytest.mark.parametrize("command", ["berth", "kubectl-berth"])
def test_a_tool_runner_runs_the_command_from_the_wheel(tmp_path, command):
    """`uvx` runs both commands of the scheduler's wheel without anything having been installed."""
    folder = built("wheels")
    words = (
        "tool",
        "run",
        "--quiet",
        *anew(folder),
        "--find-links",
        folder,
        "--from",
        wheel("berth-scheduler"),
    )
    done = subprocess.run(
        [UV, *words, command, "--version"],
        cwd=tmp_path,
        env=tools(tmp_path),
        capture_output=True,
        text=True,
        check=False,
    )

    assert (0, f"berth, version {version()}\n") == (done.returncode, done.stdout), done.stderr


def test_kubectls_plugin_runs_from_its_archive(tmp_path):
    """The archive that krew installs has all that `kubectl berth` needs beside uv."""
    archive = built("cluster") / f"kubectl-berth-{version()}.tar.gz"
    with tarfile.open(archive) as files:
        files.extractall(tmp_path, filter="data")

    done = subprocess.run(
        [tmp_path / "kubectl-berth", "--version"],
        cwd=tmp_path,
        env=tools(tmp_path, PATH=f"{UV.parent}:{os.environ['PATH']}"),
        capture_output=True,
        text=True,
        check=False,
    )

    assert (0, f"berth, version {version()}\n") == (done.returncode, done.stdout), done.stderr
