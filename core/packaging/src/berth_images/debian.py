"""Debian packages: locked by their SHA-256, fetched from a mirror, and read without dpkg.

Source: deb(5), deb-control(5).
"""

import hashlib
import io
import lzma
import os
import tarfile
import urllib.request
from collections.abc import Iterator
from fnmatch import fnmatchcase
from http.client import HTTPException
from pathlib import Path, PurePosixPath
from tempfile import NamedTemporaryFile
from urllib.parse import quote

import msgspec

from berth_images.errors import ImageError
from berth_images.tree import File, Folder, Symlink, Tree

MIRROR = "https://deb.debian.org/{archive}"
MIRROR_VARIABLE = "BERTH_DEBIAN_MIRROR"
_ATTEMPTS = 3
_TIMEOUT_SECONDS = 60
_AR_HEADER_BYTES = 60
_MERGED = ("bin", "sbin", "lib", "lib64")
"""Folders of the root that are links into /usr."""


class Package(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One locked package; `path` is where each mirror of the archive has it."""

    name: str
    version: str
    source: str
    archive: str
    path: str
    size: int
    sha256: str


class Lock(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The packages of a suite that images are built of, for each of Debian's architectures."""

    suite: str
    release: str
    date: str
    packages: dict[str, list[Package]]


def address(package: Package, mirror: str = MIRROR) -> str:
    """Return where a mirror has the package."""
    return f"{archive_at(mirror, package.archive)}/{quote(package.path)}"


def archive_at(mirror: str, archive: str) -> str:
    """Return where a mirror has one of Debian's archives."""
    return mirror.replace("{archive}", archive).rstrip("/")


def fetched(package: Package) -> bytes:
    """Return the package's file, from this user's cache where it has been fetched before.

    Raises: ImageError when no file with the locked digest can be had.
    """
    place = cache() / "debian" / package.sha256
    if place.is_file():
        content = place.read_bytes()
        if hashlib.sha256(content).hexdigest() == package.sha256:
            return content
    where = address(package, os.environ.get(MIRROR_VARIABLE, MIRROR))
    content = download(where, package.size)
    if hashlib.sha256(content).hexdigest() != package.sha256:
        raise ImageError(f"{where}: not the locked file, whose SHA-256 is {package.sha256}")
    place.parent.mkdir(parents=True, exist_ok=True)
    with NamedTemporaryFile(dir=place.parent, delete=False) as file:
        file.write(content)
    Path(file.name).rename(place)
    return content


def cache() -> Path:
    """Return the folder of what this user has fetched."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "berth-images"


def download(where: str, max_bytes: int) -> bytes:
    """Return what is at an address.

    Raises: ImageError after three attempts, or where there are more bytes than expected.
    """
    if not where.startswith(("http://", "https://")):
        raise ImageError(f"{MIRROR_VARIABLE}: {where}: use an http or https address")
    problem: OSError | HTTPException | None = None
    for _ in range(_ATTEMPTS):
        try:
            with urllib.request.urlopen(where, timeout=_TIMEOUT_SECONDS) as response:  # noqa: S310 (checked above)
                content: bytes = response.read(max_bytes + 1)
        except (OSError, HTTPException) as error:
            problem = error
        else:
            if len(content) <= max_bytes:
                return content
            raise ImageError(f"{where}: more than the {max_bytes} bytes that were expected")
    raise ImageError(
        f"{where}: {problem}. Set {MIRROR_VARIABLE} to a mirror that has it, such as snapshot.debian.org's"
    )


def unpacked(content: bytes, left_out: tuple[str, ...]) -> tuple[Tree, str]:
    """Return a package's files, without those that match a pattern, and its control file.

    Raises: ImageError where the content is not a Debian package.
    """
    members = dict(_members(content))
    tree, control = Tree(), ""
    for name, member in members.items():
        if name.startswith("control.tar"):
            control = _control(member)
        if name.startswith("data.tar"):
            with _archive(member) as archive:
                _add_all(archive, tree, left_out)
    if not control:
        raise ImageError("a Debian package without control.tar")
    return tree, control


def _members(content: bytes) -> Iterator[tuple[str, bytes]]:
    if not content.startswith(b"!<arch>\n"):
        raise ImageError("not a Debian package: no ar archive")
    position = 8
    while position + _AR_HEADER_BYTES <= len(content):
        header = content[position : position + _AR_HEADER_BYTES]
        if not header[48:58].strip().isdigit():
            raise ImageError("not a Debian package: a member of its ar archive has no size")
        size = int(header[48:58])
        position += _AR_HEADER_BYTES
        yield header[:16].decode().rstrip(" /"), content[position : position + size]
        position += size + size % 2


def _archive(member: bytes) -> tarfile.TarFile:
    try:
        return tarfile.open(fileobj=io.BytesIO(member), mode="r:*")
    except (tarfile.TarError, lzma.LZMAError) as error:
        raise ImageError(f"a Debian package that Python's tarfile does not read: {error}") from None


def _control(member: bytes) -> str:
    with _archive(member) as archive:
        for name in ("./control", "control"):
            if name in archive.getnames() and (file := archive.extractfile(name)):
                return file.read().decode()
    raise ImageError("a Debian package without a control file")


def _add_all(archive: tarfile.TarFile, tree: Tree, left_out: tuple[str, ...]) -> None:
    for member in archive:
        name = merged(member.name.removeprefix("./").strip("/"))
        if name in ("", ".") or any(fnmatchcase(name, pattern) for pattern in left_out):
            continue
        if member.isdir():
            tree.add(name, Folder(member.mode & 0o1777))
        elif member.issym():
            tree.add(name, Symlink(member.linkname))
        elif file := archive.extractfile(member):
            # A second name of a file becomes a second file. Nothing in an image runs with its owner's rights.
            tree.add(name, File(file.read(), member.mode & 0o777))


def merged(name: str) -> str:
    """Return a name below the root as one below usr where the root's folder is a link."""
    parts = PurePosixPath(name).parts
    return f"usr/{name}" if len(parts) > 1 and parts[0] in _MERGED else name
