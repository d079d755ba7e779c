"""The version stands in many files and is one."""

import shutil

import pytest

from tests.go_toolchain import ROOT
from tests.release.version import PLACES, places, set_version, unlike, version


@pytest.fixture
def copy(tmp_path):
    """A copy of all files that have the version."""
    for pattern, _ in PLACES:
        for file in ROOT.glob(pattern):
            target = tmp_path / file.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)
    return tmp_path


def test_every_place_has_the_same_version():
    """All that a release has is of one version."""
    assert [] == unlike()


@pytest.mark.parametrize(("pattern", "expression"), PLACES)
def test_no_place_is_gone(pattern, expression):
    """Each pattern of files finds the version somewhere."""
    found = {file for file, _, _ in places()}

    assert any(str(path.relative_to(ROOT)) in found for path in ROOT.glob(pattern)), expression


def test_one_command_sets_it(copy):
    """After the version was set no place has the old one, and nothing else has changed."""
    before = places(copy)

    set_version("7.8.9-rc.1", copy)

    assert [(file, line, "7.8.9-rc.1") for file, line, _ in before] == places(copy)
    set_version(version(), copy)
    assert all(
        (copy / file).read_text() == (ROOT / file).read_text() for file in {file for file, _, _ in before}
    )


def test_a_place_that_was_left_is_named(copy):
    """A place with another version is named by file and line."""
    file = copy / "kustomize/images/kustomization.yaml"
    file.write_text(file.read_text().replace(version(), "7.8.9", 1))

    (sentence,) = unlike(copy)

    assert sentence.startswith("kustomize/images/kustomization.yaml:8: 7.8.9 is not the version")


@pytest.mark.parametrize("number", ["1.2", "v1.2.3", "1.2.3.4", ""])
def test_what_is_no_version(copy, number):
    """A text that is not a version is refused."""
    with pytest.raises(ValueError, match="is not a version"):
        set_version(number, copy)
