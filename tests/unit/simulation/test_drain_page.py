"""The page shows of a drain what the commands print."""

import re
import shlex

from click.testing import CliRunner

from berth.cli.main import main
from tests.go_toolchain import ROOT
from tests.unit.simulation.kit import node, pod, written

OWNED = [{"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "w", "controller": True}]


def owned(name, cpu, on=None):
    document = pod(name, cpu=cpu, **({"nodeName": on} if on else {}))
    document["metadata"]["ownerReferences"] = OWNED
    return document


def test_a_drain(tmp_path, monkeypatch):
    """Both commands, word by word, as far as the page has their output."""
    monkeypatch.chdir(tmp_path)
    placed = [("a0", "1", "a"), ("a1", "1", "a"), ("a2", "2", "a"), ("b0", "2", "b"), ("c0", "3", "c")]
    pods = [owned(name, cpu, f"node-{at}") for name, cpu, at in placed]
    written(tmp_path / "cluster.yaml", *(node(f"node-{at}") for at in "abc"), *pods)
    written(tmp_path / "pod.yaml", owned("copy", "500m"))
    page = (ROOT / "docs/simulate.md").read_text(encoding="utf-8")
    block = re.search(r"```\n(\$ berth simulate cluster.yaml.*?)```", page, re.DOTALL)[1]

    for shown in block.split("$ berth ")[1:]:
        command, _, promised = shown.strip().partition("\n")
        printed = CliRunner().invoke(main, shlex.split(command)).stdout.splitlines()
        lines = [line.rstrip() for line in printed]
        assert promised.splitlines() == lines[: len(promised.splitlines())]
