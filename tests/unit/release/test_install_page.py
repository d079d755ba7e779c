"""What docs/install.md says to do to manifests does what it says."""

import re
import subprocess

import pytest
import yaml

from berth.config.command_line import parse_flags
from tests.go_toolchain import ROOT

PAGE = (ROOT / "docs/install.md").read_text(encoding="utf-8")
STATIC_POD = """\
apiVersion: v1
kind: Pod
metadata:
  labels:
    component: kube-scheduler
    tier: control-plane
  name: kube-scheduler
  namespace: kube-system
spec:
  containers:
  - command:
    - kube-scheduler
    - --authentication-kubeconfig=/etc/kubernetes/scheduler.conf
    - --authorization-kubeconfig=/etc/kubernetes/scheduler.conf
    - --bind-address=127.0.0.1
    - --kubeconfig=/etc/kubernetes/scheduler.conf
    - --leader-elect=true
    image: registry.example.com/kube-scheduler:v1.36.0
    imagePullPolicy: IfNotPresent
    name: kube-scheduler
    volumeMounts:
    - mountPath: /etc/kubernetes/scheduler.conf
      name: kubeconfig
      readOnly: true
  hostNetwork: true
  priorityClassName: system-node-critical
  securityContext:
    seccompProfile:
      type: RuntimeDefault
  volumes:
  - hostPath:
      path: /etc/kubernetes/scheduler.conf
      type: FileOrCreate
    name: kubeconfig
"""
"""A manifest with the fields and flags that kubeadm gives to kube-scheduler."""


@pytest.fixture
def changed(tmp_path):
    """The static pod after the page's command."""
    (command,) = re.findall(r"^sed (?:.*\\\n)+.*$", PAGE, re.MULTILINE)
    folder = str(tmp_path)
    manifests = tmp_path / "manifests"
    manifests.mkdir()
    (tmp_path / "kube-scheduler.before-berth.yaml").write_text(STATIC_POD)
    subprocess.run(["sh", "-euc", command.replace("/etc/kubernetes", folder)], check=True)
    return yaml.safe_load((manifests / "kube-scheduler.yaml").read_text())


def test_the_static_pod_runs_berth_with_the_same_flags(changed):
    """The command is Berth's, and takes every flag that kubeadm gives."""
    (container,) = changed["spec"]["containers"]
    program, verb, *flags = container["command"]

    assert ("berth", "scheduler") == (program, verb)
    assert yaml.safe_load(STATIC_POD)["spec"]["containers"][0]["command"][1:] == flags
    assert "127.0.0.1" == parse_flags(flags).bind_address


def test_nothing_else_of_the_static_pod_changes(changed):
    """Beside command, image and user the manifest is kubeadm's."""
    wanted = yaml.safe_load(STATIC_POD)
    wanted["spec"]["securityContext"]["runAsUser"] = 0
    for field in ("command", "image"):
        del wanted["spec"]["containers"][0][field], changed["spec"]["containers"][0][field]

    assert wanted == changed
