"""OCI layouts: digests, names, and what is read back."""

import json

import pytest

from berth_images.errors import ImageError
from berth_images.layout import ImageLayout, pack, qualified, unpack
from berth_images.platforms import PLATFORMS
from berth_images.tree import File, Tree

AMD64, ARM64 = PLATFORMS
CONFIG = {"User": "65532:65532", "Labels": {"org.opencontainers.image.version": "1"}}


def written(folder, content=b"content"):
    """A layout of one file, for amd64."""
    layout = ImageLayout(folder)
    tree = Tree()
    tree.add("etc/file", File(content))
    image = layout.add_image(AMD64, CONFIG, [layout.add_layer(pack(tree, "a layer"))])
    return layout.finish([image], "berth/x", "1", {})["digest"]


def blobs(folder):
    return {path.name: path.read_bytes() for path in (folder / "blobs/sha256").iterdir()}


def test_equal_contents_have_equal_digests(tmp_path):
    """Two layouts of the same contents are the same, byte for byte."""
    assert written(tmp_path / "a") == written(tmp_path / "b")
    assert blobs(tmp_path / "a") == blobs(tmp_path / "b")


def test_other_contents_have_another_digest(tmp_path):
    """The digest stands for the contents."""
    assert written(tmp_path / "a") != written(tmp_path / "b", b"other")


def test_an_image_is_unpacked(tmp_path):
    """What was packed is read back, with the configuration."""
    written(tmp_path / "a")
    (tmp_path / "root").mkdir()

    configuration = unpack(tmp_path / "a", AMD64, tmp_path / "root")

    assert b"content" == (tmp_path / "root/etc/file").read_bytes()
    assert ("amd64", CONFIG) == (configuration["architecture"], configuration["config"])


def test_index_json_has_one_entry_with_the_names_that_tools_look_for(tmp_path):
    """skopeo selects by the tag, containerd imports by the qualified name."""
    digest = written(tmp_path / "a")

    (entry,) = json.loads((tmp_path / "a/index.json").read_bytes())["manifests"]

    assert (digest, "1", "docker.io/berth/x:1") == (
        entry["digest"],
        entry["annotations"]["org.opencontainers.image.ref.name"],
        entry["annotations"]["io.containerd.image.name"],
    )


def test_a_damaged_blob_is_named(tmp_path):
    """A blob whose content has another digest is not unpacked."""
    written(tmp_path / "a")
    for path in (tmp_path / "a/blobs/sha256").iterdir():
        path.write_bytes(b"{}")

    with pytest.raises(ImageError, match=r"blobs/sha256/[0-9a-f]{64}: the content has another digest"):
        unpack(tmp_path / "a", AMD64, tmp_path)


@pytest.mark.parametrize("name", ["../outside", "/../outside"])
def test_a_layer_that_leads_out_of_the_folder_is_refused(tmp_path, name):
    """No file is written beside the folder that an image is unpacked to."""
    tree = Tree()
    tree._entries[name] = File(b"")
    layout = ImageLayout(tmp_path / "a")
    image = layout.add_image(AMD64, CONFIG, [layout.add_layer(pack(tree, "a layer"))])
    layout.finish([image], "berth/x", "1", {})

    with pytest.raises(ImageError, match="a layer that is not unpacked"):
        unpack(tmp_path / "a", AMD64, tmp_path / "root")
    assert not (tmp_path / "outside").exists()


def test_a_layout_of_several_images_is_refused(tmp_path):
    """The error counts them."""
    written(tmp_path / "a")
    path = tmp_path / "a/index.json"
    index = json.loads(path.read_bytes())
    path.write_text(json.dumps({**index, "manifests": index["manifests"] * 2}))

    with pytest.raises(ImageError, match="has 2 images"):
        unpack(tmp_path / "a", AMD64, tmp_path)


def test_a_platform_that_is_absent_is_named(tmp_path):
    """The error says which platform the layout lacks."""
    written(tmp_path / "a")

    with pytest.raises(ImageError, match="no image for linux/arm64"):
        unpack(tmp_path / "a", ARM64, tmp_path)


def test_a_folder_that_is_no_layout_is_named(tmp_path):
    """The error names the folder."""
    with pytest.raises(ImageError, match="no OCI image layout"):
        unpack(tmp_path, AMD64, tmp_path)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("hello", "docker.io/library/hello"),
        ("berth/hello", "docker.io/berth/hello"),
        ("registry.example.com/hello", "registry.example.com/hello"),
        ("localhost/hello", "localhost/hello"),
        ("mirror:5000/berth/hello", "mirror:5000/berth/hello"),
    ],
)
def test_a_name_is_completed_as_engines_do(name, expected):
    """A name without a registry is one of Docker Hub's."""
    assert expected == qualified(name)
