"""Write the lock: the newest packages of the suite, as the archive's signed indexes name them.

Needs gpgv, dpkg and Debian's keyring. Building images needs none of them.

Source: wiki.debian.org/DebianRepository/Format.
"""

import hashlib
import lzma
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from berth_images.bases import Bases
from berth_images.debian import MIRROR, MIRROR_VARIABLE, Lock, Package, archive_at, download
from berth_images.errors import ImageError
from berth_images.platforms import PLATFORMS

KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
_MAX_BYTES = 64 << 20
_ALTERNATIVE = re.compile(r"\s*([a-z0-9][a-z0-9+.-]+)")

Paragraph = dict[str, str]


def locked(bases: Bases) -> Lock:
    """Return the newest packages that the suite and its security updates have.

    Raises: ImageError where a signature or digest is wrong, or a package or one that it needs is absent.
    """
    _check_programs()
    mirror = os.environ.get(MIRROR_VARIABLE, MIRROR)
    archives = (("debian", bases.suite), ("debian-security", f"{bases.suite}-security"))
    releases = {archive: _release(mirror, archive, suite) for archive, suite in archives}
    packages = {}
    for platform in PLATFORMS:
        available: dict[str, list[tuple[str, Paragraph]]] = {}
        for archive, suite in archives:
            for paragraph in _index(mirror, archive, suite, releases[archive], platform.debian):
                available.setdefault(paragraph["Package"], []).append((archive, paragraph))
        packages[platform.debian] = _chosen(bases, available)
    fields = _fields(releases["debian"].split("\nMD5Sum:")[0])
    return Lock(bases.suite, fields["Version"], fields["Date"], packages)


def _check_programs() -> None:
    absent = [each for each in ("gpgv", "dpkg") if shutil.which(each) is None]
    absent += [] if KEYRING.is_file() else [str(KEYRING)]
    if absent:
        raise ImageError(f"a lock needs {', '.join(absent)}: install gpgv, dpkg and debian-archive-keyring")


def _chosen(bases: Bases, available: dict[str, list[tuple[str, Paragraph]]]) -> list[Package]:
    names = [name for layer in bases.layers for name in layer.packages]
    found = []
    for name in names:
        if name not in available:
            raise ImageError(f"bases.toml: {bases.suite} has no package {name}")
        archive, paragraph = _newest(available[name])
        _complete(paragraph, {*names, *bases.without})
        source = paragraph.get("Source", name)
        found.append(
            Package(
                name=name,
                version=paragraph["Version"],
                source=source.split()[0],
                archive=archive,
                path=paragraph["Filename"],
                size=int(paragraph["Size"]),
                sha256=paragraph["SHA256"],
            )
        )
    return found


def _newest(found: list[tuple[str, Paragraph]]) -> tuple[str, Paragraph]:
    newest = found[0]
    for each in found[1:]:
        if _is_lower(newest[1]["Version"], each[1]["Version"]):
            newest = each
    return newest


def _complete(paragraph: Paragraph, known: set[str]) -> None:
    for field in ("Pre-Depends", "Depends"):
        for group in filter(None, paragraph.get(field, "").split(",")):
            names = {match[1] for each in group.split("|") if (match := _ALTERNATIVE.match(each))}
            if not names & known:
                raise ImageError(
                    f"bases.toml: {paragraph['Package']} depends on {' or '.join(sorted(names))}: "
                    "add it to the packages of a layer, or to [without] with the reason"
                )


def _is_lower(one: str, other: str) -> bool:
    command = ["dpkg", "--compare-versions", one, "lt", other]
    return subprocess.run(command, check=False).returncode == 0  # noqa: S603 (versions of signed indexes)


def _release(mirror: str, archive: str, suite: str) -> str:
    where = f"{archive_at(mirror, archive)}/dists/{suite}/InRelease"
    with TemporaryDirectory() as folder:
        signed, plain = Path(folder) / "InRelease", Path(folder) / "Release"
        signed.write_bytes(download(where, _MAX_BYTES))
        command = ["gpgv", "--quiet", "--keyring", str(KEYRING), "--output", str(plain), str(signed)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 (a fixed command)
        if done.returncode:
            raise ImageError(f"{where}: gpgv does not accept the signature: {done.stderr.strip()}")
        return plain.read_text(encoding="utf-8")


def _index(mirror: str, archive: str, suite: str, release: str, architecture: str) -> Iterator[Paragraph]:
    name = f"main/binary-{architecture}/Packages.xz"
    expected = re.search(rf"^ ([0-9a-f]{{64}}) +(\d+) {re.escape(name)}$", release, re.MULTILINE)
    where = f"{archive_at(mirror, archive)}/dists/{suite}/{name}"
    if expected is None:
        raise ImageError(f"{where}: InRelease has no SHA-256 of it")
    content = download(where, int(expected[2]))
    if hashlib.sha256(content).hexdigest() != expected[1]:
        raise ImageError(
            f"{where}: not the file that InRelease names; the mirror is being updated, try again"
        )
    return (_fields(each) for each in lzma.decompress(content).decode().split("\n\n") if each.strip())


def _fields(paragraph: str) -> Paragraph:
    return dict(re.findall(r"^([A-Za-z0-9-]+): *(.*)$", paragraph, re.MULTILINE))
