"""Kueue's objects as Queues: what is carried over, and what is said of the rest."""

import msgspec
import pytest
import yaml

from berth_queues.importing import main
from berth_queues.queue_objects import read
from berth_queues.tree import Tree

KUEUE = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: research}
spec:
  cohortName: company
  namespaceSelector: {}
  queueingStrategy: StrictFIFO
  fairSharing: {weight: "2"}
  resourceGroups:
  - coveredResources: [cpu, nvidia.com/gpu]
    flavors:
    - name: spot
      resources:
      - {name: cpu, nominalQuota: 500m}
      - {name: nvidia.com/gpu, nominalQuota: 4, lendingLimit: 1}
    - name: reserved
      resources:
      - {name: cpu, nominalQuota: "2", borrowingLimit: "8"}
      - {name: nvidia.com/gpu, nominalQuota: 4}
---
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: company}
spec: {cohort: company}
---
apiVersion: v1
kind: List
items:
- apiVersion: kueue.x-k8s.io/v1beta2
  kind: LocalQueue
  metadata: {name: main, namespace: vision}
  spec: {clusterQueue: research}
- {apiVersion: kueue.x-k8s.io/v1beta2, kind: ResourceFlavor, metadata: {name: spot}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: other}}
"""


@pytest.fixture
def printed(tmp_path, capsys):
    """The Queues by name, and the lines about what has no counterpart."""
    path = tmp_path / "kueue.yaml"
    path.write_text(KUEUE)
    assert 0 == main([str(path)])
    out, error = capsys.readouterr()
    return {each["metadata"]["name"]: each for each in yaml.safe_load_all(out)}, error.splitlines()


def test_queues(printed):
    """Flavors are added up, a cohort is the queue above, and one of a ClusterQueue's name has another."""
    queues, _ = printed

    assert {
        "quota": {"cpu": "2500m", "nvidia.com/gpu": "8"},
        "lendingLimit": {"nvidia.com/gpu": 1},
        "borrowingLimit": {"cpu": "8"},
        "parent": "company-cohort",
        "weight": "2",
        "namespaceSelector": {
            "matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "Exists"}]
        },
        "namespaces": ["vision"],
    } == queues["research"]["spec"]
    assert {"research", "company", "company-cohort"} == queues.keys()


def test_the_plugin_reads_them(printed):
    """What is printed makes a tree without errors."""
    queues, _ = printed
    specs = [read(name, msgspec.json.encode(each)).spec for name, each in queues.items()]
    tree = Tree({spec.name: spec for spec in specs})

    assert ({}, 3) == (tree.errors, len(tree.queues))
    assert 2500 == tree.queues["Queue company-cohort"].subtree["cpu"]


def test_what_is_not_carried_over(printed):
    """Each field and kind without a counterpart has a line with what to do."""
    _, lines = printed

    assert [
        "ResourceFlavor spot",
        "ClusterQueue research: spec.resourceGroups",
        "ClusterQueue research: spec.queueingStrategy",
        "LocalQueue vision/main",
    ] == [
        ": ".join(line.removeprefix("not carried over: ").split(": ")[: 1 + ("spec" in line)])
        for line in lines
    ]


@pytest.mark.parametrize("text", ["{", "- 5", "{apiVersion: kueue.x-k8s.io/v1, kind: ClusterQueue}"])
def test_what_is_no_file_of_kueue(text, tmp_path, capsys):
    """It is refused with the file's name."""
    path = tmp_path / "kueue.yaml"
    path.write_text(text)

    assert 2 == main([str(path)])
    assert str(path) in capsys.readouterr().err
