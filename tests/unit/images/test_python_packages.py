"""Which wheels of a pylock.toml an image gets."""

import pytest

from berth_images.errors import ImageError
from berth_images.platforms import PLATFORMS
from berth_images.python_packages import _chosen

AMD64, ARM64 = PLATFORMS
INDEX = "https://files.example.com"


def lock(folder, *wheels):
    """A pylock.toml of one package, `x`, with wheels of these tags."""
    entries = ", ".join(
        f'{{ url = "{INDEX}/x-1-{tags}.whl", hashes = {{ sha256 = "{number:064}" }} }}'
        for number, tags in enumerate(wheels)
    )
    path = folder / "pylock.toml"
    path.write_text(f'lock-version = "1.0"\n[[packages]]\nname = "X"\nversion = "1"\nwheels = [{entries}]\n')
    return path


@pytest.mark.parametrize(
    ("platform", "tags"),
    [
        (AMD64, "cp313-cp313-manylinux2014_x86_64.manylinux_2_17_x86_64"),
        (ARM64, "cp313-cp313-manylinux_2_28_aarch64"),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_the_wheel_of_the_platform_is_taken(tmp_path, platform, tags):
    """Not one of another Python, another libc or another processor."""
    path = lock(
        tmp_path,
        "cp312-cp312-manylinux_2_17_x86_64",
        "cp313-cp313-musllinux_1_2_x86_64",
        "cp313-cp313-macosx_11_0_arm64",
        "cp313-cp313-manylinux2014_x86_64.manylinux_2_17_x86_64",
        "cp313-cp313-manylinux_2_28_aarch64",
        "py3-none-any",
    )

    (wheel,) = _chosen(path, platform)

    assert ("x", f"x-1-{tags}.whl") == (wheel.name, wheel.file)


@pytest.mark.parametrize("tags", ["cp39-abi3-manylinux_2_28_x86_64", "py3-none-any", "py2.py3-none-any"])
def test_wheels_of_many_pythons_are_taken(tmp_path, tags):
    """The stable ABI and pure Python fit, too."""
    assert [f"x-1-{tags}.whl"] == [wheel.file for wheel in _chosen(lock(tmp_path, tags), AMD64)]


def test_a_wheel_for_a_newer_libc_is_not_taken(tmp_path):
    """What the base's libc cannot run is not in an image."""
    assert [] == list(_chosen(lock(tmp_path, "cp313-cp313-manylinux_2_99_x86_64"), AMD64))


def test_a_wheel_without_a_digest_is_named(tmp_path):
    """Nothing gets into an image that is not locked by its content."""
    path = lock(tmp_path, "py3-none-any")
    path.write_text(path.read_text().replace("sha256", "md5"))

    with pytest.raises(ImageError, match=r"pylock.toml: x-1-py3-none-any.whl has no hash sha256"):
        list(_chosen(path, AMD64))


@pytest.mark.parametrize(
    ("text", "complaint"),
    [(None, r"pylock.toml: No such file or directory: `uv pip compile"), ("=", r"pylock.toml: Invalid")],
)
def test_a_lock_that_cannot_be_read_is_named(tmp_path, text, complaint):
    """The error names the file and the command that writes it."""
    path = tmp_path / "pylock.toml"
    if text is not None:
        path.write_text(text)

    with pytest.raises(ImageError, match=complaint):
        list(_chosen(path, AMD64))
