"""What nodes say in the same words is held once; what is decoded stays the same."""

import msgspec
import pytest

from berth.objects import node_decoding
from berth.objects.decode import decoder
from berth.objects.node import Node
from berth.objects.node_decoding import decode_node, shared_images
from berth.objects.shared_texts import SharedTexts
from tests.hostile.work import kept_bytes

READY = {"type": "Ready", "status": "True", "reason": "KubeletReady"}


def written(name="n1", images=20, conditions=(READY,), repository="registry.example.com/team/app"):
    """A node's JSON."""
    labels = {"kubernetes.io/hostname": name, "failure-domain.beta.kubernetes.io/region": "eu-west-1"}
    tags = [f"{repository}-{i}" for i in range(images)]
    found = [{"names": [f"{tag}@sha256:{'0' * 64}", f"{tag}:v1"], "sizeBytes": 1 << 20} for tag in tags]
    status = {"allocatable": {"cpu": "4"}, "images": found, "conditions": conditions}
    return msgspec.json.encode({"metadata": {"name": name, "labels": labels}, "status": status})


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"{}", id="nothing"),
        pytest.param(b'{"metadata": {"name": "n", "labels": null}, "status": {"images": null}}', id="nulls"),
        pytest.param(b'{"status": {"images": [{"names": null, "sizeBytes": 7}]}}', id="image without names"),
        pytest.param(written(), id="a node"),
    ],
)
def test_the_node_is_what_is_written(data):
    assert decoder(Node)(data) == decode_node(data)


def test_nodes_share_what_they_have_in_common():
    """Images, labels and conditions, each in full."""
    one, other = decode_node(written("n1")), decode_node(written("n2"))
    shared = zip(one.status.images, other.status.images, strict=True)

    assert all(mine is yours for mine, yours in shared)
    assert one.status.conditions is other.status.conditions
    assert (
        one.labels["failure-domain.beta.kubernetes.io/region"]
        is (other.labels["failure-domain.beta.kubernetes.io/region"])
    )


def test_a_node_that_is_not_well_says_so():
    """The conditions of the node before it are not its own."""
    one, other = decode_node(written()), decode_node(written(conditions=[{**READY, "status": "False"}]))

    assert ("True", "False") == (one.status.conditions[0].status, other.status.conditions[0].status)


def test_an_image_goes_with_the_last_node_that_has_it():
    before = shared_images()
    nodes = [decode_node(written(name, 3, repository="registry.example.com/gone")) for name in ("n1", "n2")]
    there = shared_images()
    nodes.pop()
    still_there = shared_images()
    nodes.pop()

    assert (3, 3, 0) == (there - before, still_there - before, shared_images() - before)


def test_what_nodes_make_up_is_not_kept(monkeypatch):
    """However many names of images and values of labels a kubelet invents."""
    monkeypatch.setattr(node_decoding, "_text", SharedTexts(8))

    def come_and_go():
        for i in range(64):
            assert decode_node(written(f"made-up-{i}-" + "n" * 1000, repository=f"{i}-" + "r" * 1000))

    come_and_go()
    assert kept_bytes(come_and_go) < 20_000


def test_another_node_with_known_images_costs_little():
    """Under 3,000 bytes; fifty images of its own take 15,000."""
    first, nodes = decode_node(written("first", images=50)), []

    assert kept_bytes(lambda: nodes.extend(decode_node(written(f"n{i}", 50)) for i in range(20))) / 20 < 3_000
    assert first.status.images == nodes[-1].status.images
