"""What `berth-images lock` takes from an archive's index."""

import pytest

from berth_images import locking
from berth_images.bases import Bases, LayerPackages, LeftOut
from berth_images.errors import ImageError
from berth_images.locking import _chosen, _fields, locked

INDEX = """\
Package: pkg
Source: source-of-pkg (2)
Version: 1
Depends: one (>= 2) | two, libc6 [amd64]
Description: more than
 one line
Filename: pool/pkg.deb
Size: 3
SHA256: abc
"""


def chosen(packages, without=()):
    """The lock's entries for one layer of packages."""
    bases = Bases("suite", "3.13", [LayerPackages("c", packages)], dict.fromkeys(without, "why"), LeftOut([]))
    return _chosen(bases, {"pkg": [("debian", _fields(INDEX))]})


def test_a_package_is_locked_with_its_source():
    """Path, size, digest and source are those of the index."""
    (found,) = chosen(["pkg"], ["two", "libc6"])

    assert ("pkg", "1", "source-of-pkg", "debian", "pool/pkg.deb", 3, "abc") == (
        found.name,
        found.version,
        found.source,
        found.archive,
        found.path,
        found.size,
        found.sha256,
    )


@pytest.mark.parametrize(("without", "named"), [(["libc6"], "one or two"), (["one"], "libc6")])
def test_a_dependency_that_is_nowhere_is_named(without, named):
    """A package that others need is in a layer, or left out with a reason."""
    with pytest.raises(ImageError, match=f"bases.toml: pkg depends on {named}: add it"):
        chosen(["pkg"], without)


def test_a_program_that_is_not_here_is_named(monkeypatch, tmp_path):
    """The error names what a lock needs, before anything is fetched."""
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(locking, "KEYRING", tmp_path / "keyring.gpg")

    with pytest.raises(ImageError, match=f"a lock needs gpgv, dpkg, {tmp_path}/keyring.gpg: install gpgv"):
        locked(Bases("suite", "3.13", [], {}, LeftOut([])))


def test_a_package_that_the_suite_lacks_is_named():
    """The error names the suite and the package."""
    with pytest.raises(ImageError, match=r"bases\.toml: suite has no package w"):
        chosen(["w"])
