"""An anonymized cluster decides like the one that it was made of, and says nothing of it."""

import json

import msgspec
import pytest

from berth.config.loading import load
from berth.objects.node import Node
from berth.objects.pods.pod import Pod
from berth.simulation.reading.anonymize import Anonymizer
from berth.simulation.reading.inputs import read_cluster
from berth.simulation.reading.kinds import document_of
from berth.simulation.running.engine import simulate
from berth.simulation.running.options import SimulationOptions
from tests.chance.cluster import draw
from tests.unit.simulation.kit import node, pod, written


def anonymized(tmp_path, found, key=b"key"):
    anonymizer = Anonymizer(key)
    documents = [
        anonymizer.document(msgspec.json.decode(document_of(obj, kind))) for kind, obj in found.all()
    ]
    return documents, read_cluster([written(tmp_path / "anonymous.json", *documents)])


@pytest.mark.parametrize("subject", ["placing", "volumes", "preemption"])
@pytest.mark.parametrize("seed", [1, 2])
def test_decisions_stay_the_same(tmp_path, subject, seed):
    """Pods of a cluster by chance go to the same nodes: references and shapes are whole."""
    drawn = draw(subject, seed, nodes_count=8, pods_count=25)
    options = SimulationOptions(load(json.dumps(drawn.configuration)), seed=seed)
    found = read_cluster([written(tmp_path / "c.json", *drawn.objects, *drawn.pods)])
    hidden = Anonymizer(b"key").hash

    _, anonymous = anonymized(tmp_path, found)
    plain, blind = simulate(found, options), simulate(anonymous, options)

    expected = {
        f"{hidden(key.split('/')[0])}/{hidden(key.split('/')[1])}": hidden(node)
        for key, node in plain.placed_on.items()
    }
    assert expected
    assert expected == blind.placed_on


def test_nothing_that_identifies_is_left(tmp_path):
    """Names, labels' values and keys, images, and texts in annotations are gone."""
    secret = pod(
        "acme-pod",
        labels={"acme.com/team": "acme-red"},
        annotations={"note": "acme"},
        nodeSelector={"acme": "acme-1"},
    )
    secret["spec"]["containers"][0]["image"] = "registry.acme.com/acme:1"
    machine = node("acme-node", labels={"topology.kubernetes.io/zone": "acme-zone", "acme": "acme-1"})
    found = read_cluster([written(tmp_path / "c.json", machine, secret)])

    documents, _ = anonymized(tmp_path, found)

    assert "acme" not in json.dumps(documents)


def test_shapes_stay(tmp_path):
    """Amounts, well-known keys and numbers are what they were."""
    found = read_cluster(
        [written(tmp_path / "c.json", node("n0", labels={"cores": "16"}), pod("p0", cpu="250m"))]
    )

    _, anonymous = anonymized(tmp_path, found)
    (machine,), (task,) = anonymous.of(Node).values(), anonymous.of(Pod).values()

    assert machine.name == machine.labels["kubernetes.io/hostname"] != "n0"
    assert "16" in machine.labels.values()
    assert {"cpu": "250m"} == task.spec.containers[0].resources.requests


def test_keys_make_the_difference():
    """The same name has another hash under another key."""
    assert Anonymizer(b"a").hash("node") != Anonymizer(b"b").hash("node")
