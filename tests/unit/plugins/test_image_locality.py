import pytest

from berth.objects.pods.pod_spec import Container
from berth.plugins.image_locality import ImageLocality
from berth.testing.builders import make_node, make_pod
from berth.testing.handles import make_plugin
from berth.testing.verdicts import scores

MIB = 2**20


def on(holders, total, sizes):
    """`total` nodes; the i-th image is on the first `holders[i]` of them."""
    return [
        make_node(
            f"n{row}",
            images={f"image{i}:1": size * MIB for i, size in enumerate(sizes) if row < holders[i]},
        )
        for row in range(total)
    ]


def using(count, images):
    names = [f"image{i}:1" if i < images else "other:1" for i in range(count)]
    return make_pod(containers=[Container(f"c{i}", name) for i, name in enumerate(names)])


@pytest.mark.parametrize(
    ("sizes", "holders", "total", "containers", "expected"),
    [
        ((250,), (1,), 2, 2, 5),
        ((40, 300), (1, 1), 2, 2, 7),
        ((4000,), (1,), 3, 2, 66),
        ((600, 900), (2, 2), 3, 3, 32),
        ((300, 600, 900), (1, 2, 2), 3, 3, 36),
        ((300,), (1,), 2, 1, 12),
        ((), (), 2, 1, 0),
    ],
)
def test_score(sizes, holders, total, containers, expected):
    """A node scores by the size of the images it has, each weighed by how many nodes have it."""
    found = scores(make_plugin(ImageLocality), using(containers, len(sizes)), on(holders, total, sizes))

    assert expected == found["n0"]


def test_names():
    """A name without a tag means `latest`; a registry's port is no tag; a digest is one."""
    images = {"app:latest": 900 * MIB, "host:5000/db:latest": 900 * MIB, "x@sha256:1": 900 * MIB}
    pods = [make_pod(containers=[Container("c", name)]) for name in ("app", "host:5000/db", "x@sha256:1")]
    nodes = [make_node("n0", images=images)]

    assert [89, 89, 89] == [scores(make_plugin(ImageLocality), pod, nodes)["n0"] for pod in pods]


def test_volumes_and_repeats_count():
    """An image counts as often as it is used, and image volumes raise the sum but not the threshold."""
    nodes = [make_node("n0", images={"a:1": 300 * MIB})]
    once = make_pod(containers=[Container("c", "a:1")])
    volume = make_pod(
        containers=[Container("c", "a:1")], volumes=({"name": "v", "image": {"reference": "a:1"}},)
    )

    assert [28, 59] == [scores(make_plugin(ImageLocality), pod, nodes)["n0"] for pod in (once, volume)]
