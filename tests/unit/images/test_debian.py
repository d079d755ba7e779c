"""Debian packages: what is read of them, and that only the locked file is."""

import pytest

from berth_images import debian
from berth_images.bases import bases, lock
from berth_images.debian import address, fetched, unpacked
from berth_images.errors import ImageError
from berth_images.platforms import PLATFORMS
from berth_images.tree import File, Symlink
from tests.unit.images.packages import deb, file, link, locked


def test_files_and_links_are_read():
    """A package's files have their content, its links their target, and its control file is given."""
    tree, control = unpacked(deb("x", [file("./usr/bin/x", b"program", 0o755), link("./usr/bin/y", "x")]), ())

    assert (File(b"program", 0o755), Symlink("x")) == (tree["usr/bin/x"], tree["usr/bin/y"])
    assert "Package: x\nVersion: 1\n" == control


def test_a_file_has_no_owner_rights():
    """No program of an image runs with the rights of its owner."""
    tree, _ = unpacked(deb("x", [file("./usr/bin/su", mode=0o4755)]), ())

    assert 0o755 == tree["usr/bin/su"].mode


def test_folders_that_were_merged_into_usr_stay_links():
    """A file below /lib goes to /usr/lib: /lib is a link."""
    tree, _ = unpacked(deb("x", [link("./lib", "usr/lib"), file("./lib/x.so")]), ())

    assert {"lib", "usr", "usr/lib", "usr/lib/x.so"} == set(tree)


def test_patterns_leave_files_out():
    """A name that matches a pattern is not read."""
    tree, _ = unpacked(deb("x", [file("./usr/share/man/x.1"), file("./usr/x")]), ("usr/share/man*",))

    assert {"usr", "usr/x"} == set(tree)


@pytest.mark.parametrize("content", [b"", b"no archive at all", b"!<arch>\n", b"!<arch>\n" + b"x" * 60])
def test_what_is_no_package(content):
    """Other files are refused."""
    with pytest.raises(ImageError):
        unpacked(content, ())


@pytest.fixture
def mirror(tmp_path, monkeypatch):
    """What the mirror has, by address; the cache is empty."""
    files = {}
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(debian, "download", lambda where, most: files.pop(where)[:most])
    return files


def test_a_package_is_fetched_once(mirror):
    """The second time it comes from the cache."""
    content = deb("x", [file("./x")])
    package = locked("x", content)
    mirror[address(package)] = content

    assert [content, content] == [fetched(package), fetched(package)]


def test_another_file_than_the_locked_one_is_refused(mirror):
    """The error names the address and the digest that was expected."""
    package = locked("x", b"locked")
    mirror[address(package)] = b"otherx"

    with pytest.raises(
        ImageError, match=f"{package.path}: not the locked file, whose SHA-256 is {package.sha256}"
    ):
        fetched(package)


def test_a_mirror_is_a_setting(mirror, monkeypatch):
    """The variable names where each of Debian's archives is."""
    monkeypatch.setenv(debian.MIRROR_VARIABLE, "http://mirror.example.com/{archive}/snapshot/")
    content = deb("x", [file("./x")])
    mirror["http://mirror.example.com/debian/snapshot/pool/x%2B1.deb"] = content

    assert content == fetched(locked("x", content, "pool/x+1.deb"))


@pytest.mark.parametrize("where", ["file:///etc/passwd", "/pool"])
def test_only_http_is_fetched(where):
    """An address of another kind is refused with the name of the setting."""
    with pytest.raises(ImageError, match=debian.MIRROR_VARIABLE):
        debian.download(where, 1)


@pytest.mark.parametrize("platform", PLATFORMS, ids=lambda platform: platform.name)
def test_the_lock_has_every_package_of_the_bases(platform):
    """bases.toml and debian.lock.json agree: `berth-images lock` was run after the last change."""
    named = [name for layer in bases().layers for name in layer.packages]

    assert named == [package.name for package in lock().packages[platform.debian]]
