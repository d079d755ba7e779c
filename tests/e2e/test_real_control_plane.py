"""`berth sandbox up --real`: with stand-ins for the two programs, and with these where they are at hand."""

import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest

from berth.demo.processes import program
from tests.e2e.api_servers import api_server_called
from tests.e2e.conftest import Cluster, node, pod
from tests.e2e.stand_in import JOURNAL, install
from tests.suite import PATIENCE_SECONDS

pytestmark = pytest.mark.e2e


def command(assets, kubeconfig, *more):
    """The command line."""
    program = [sys.executable, "-m", "berth.cli", "sandbox", "up", "--real"]
    return [*program, "--assets", str(assets), "--kubeconfig", str(kubeconfig), *more]


def running(assets, kubeconfig, *more):
    """A control plane of stand-ins that is up."""
    return started(command(assets, kubeconfig, *more), kubeconfig)


@contextmanager
def started(up, kubeconfig):
    """A control plane that is up."""
    pipes = dict.fromkeys(("stdout", "stderr"), subprocess.PIPE)
    process = subprocess.Popen(up, text=True, **pipes)
    try:
        ready = process.stdout.readline()
        assert ready.startswith("sandbox ready at https://127.0.0.1:"), process.communicate()[1]
        yield process, Cluster(ready.split()[3], kubeconfig)
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE_SECONDS)


@pytest.fixture
def assets(tmp_path):
    """A folder with both stand-ins."""
    return install(tmp_path / "bin", "etcd", "kube-apiserver")


def test_up(assets, tmp_path):
    """Files are loaded through the API, bound pods run, deleted ones go, and both servers end in order."""
    objects = tmp_path / "objects.json"
    bound = pod("bound")
    bound["spec"]["nodeName"] = "n1"
    objects.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": [node("n1"), bound]}))
    with running(assets, tmp_path / "kubeconfig", "--load", str(objects)) as (process, cluster):
        cluster.kubectl("wait", "--for=condition=Ready", "pod/bound", "--timeout=40s")
        assert "8" == cluster.json("get", "node", "n1")["status"]["capacity"]["cpu"]
        quick = pod("quick", annotations={"sandbox.berth.dev/run-seconds": "0"})
        cluster.kubectl("create", "-f", "-", stdin=quick)
        cluster.bind("quick", "n1")
        cluster.kubectl("wait", "--for=jsonpath={.status.phase}=Succeeded", "pod/quick", "--timeout=40s")
        cluster.kubectl("delete", "pod", "bound", "--timeout=40s")
        process.send_signal(signal.SIGINT)
        assert 0 == process.wait(PATIENCE_SECONDS)
    assert ["kube-apiserver", "etcd"] == (assets / JOURNAL).read_text().split()


def test_server_ends(assets, tmp_path):
    """When a server ends by itself the other is ended, and the last line says which it was."""
    with running(assets, tmp_path / "kubeconfig") as (process, _):
        os.kill(int((assets / "kube-apiserver.pid").read_text()), signal.SIGKILL)
        _, said = process.communicate(timeout=PATIENCE_SECONDS)
    assert 2 == process.returncode
    assert "Error: kube-apiserver ended with exit code -9: serving" == said.splitlines()[-1]
    assert ["etcd"] == (assets / JOURNAL).read_text().split()


@pytest.mark.parametrize(("dies", "lives"), [("etcd", "kube-apiserver"), ("kube-apiserver", "etcd")])
def test_dies_at_start(dies, lives, tmp_path):
    """A server that dies at its start ends the command with its last words and exit code 2."""
    assets = install(install(tmp_path / "bin", lives), dies, last_words="no such luck")
    done = subprocess.run(
        command(assets, tmp_path / "kubeconfig"),
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
    )
    expected = f"Error: {dies} ended with exit code 3: starting | no such luck\n"
    assert (2, expected) == (done.returncode, done.stderr)


def test_missing(tmp_path):
    """Without the programs one line names what is missing, the variable and the remedy."""
    install(tmp_path / "bin", "etcd")
    done = subprocess.run(
        [*command(tmp_path / "bin", tmp_path / "kubeconfig")],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
    )
    (line,) = done.stderr.splitlines()
    assert 2 == done.returncode
    assert line.startswith(
        f"Error: --real: no kube-apiserver in {tmp_path / 'bin'}: set KUBEBUILDER_ASSETS, or"
    )


@pytest.mark.parametrize("mode", ["AlwaysAllow", "RBAC"])
def test_up_real(mode, tmp_path):
    """With the programs themselves pods run, pod groups are served if they can be, access is as chosen."""
    server = api_server_called("real")
    objects = tmp_path / "objects.json"
    bound = pod("bound")
    bound["spec"]["nodeName"] = "n1"
    objects.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": [node("n1"), bound]}))
    kubeconfig = tmp_path / "kubeconfig"
    groups = server.has_pod_groups
    up = server.command(kubeconfig, f"--authorization-mode={mode}", f"--load={objects}", pod_groups=groups)
    with started(up, kubeconfig) as (process, cluster):
        cluster.kubectl("wait", "--for=condition=Ready", "pod/bound", "--timeout=40s")
        assert groups == ("podgroups" in cluster.kubectl("api-resources", "--api-group=scheduling.k8s.io"))
        cluster.kubectl("create", "serviceaccount", "guest")
        asked = ("auth", "can-i", "create", "pods", "--as=system:serviceaccount:default:guest")
        assert ("no\n" if mode == "RBAC" else "yes\n") == cluster.answer(*asked)
        cluster.kubectl("delete", "pod", "bound", "--timeout=40s")
        process.send_signal(signal.SIGINT)
        assert 0 == process.wait(PATIENCE_SECONDS)


def test_main_job_real(tmp_path):
    """The main job runs on the programs themselves."""
    api_server_called("real")
    done = subprocess.run(
        [program("berth"), "demo", "--real", "--pods=20", "--folder", str(tmp_path / "run")],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_SECONDS,
    )
    assert "20 of them bound, each once: every placement is allowed" in done.stdout, done
    assert 0 == done.returncode
