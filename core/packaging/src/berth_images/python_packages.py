"""Python packages in an image: what a pylock.toml locks, installed for the image's platform by uv.

Nothing is built and nothing is run: a package without a wheel for the platform stops the build.

Source: PEP 751 (pylock.toml), PEP 376 (RECORD), PEP 425 (tags).
"""

import csv
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import PathDistribution
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import msgspec
from packaging.tags import Tag, compatible_tags, cpython_tags
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from uv import find_uv_bin

from berth_images.bases import bases
from berth_images.errors import ImageError
from berth_images.platforms import Platform
from berth_images.tree import File, Tree

_LIBC = 40
"""Wheels may ask for glibc 2.40, which the base's suite exceeds."""
_LEGACY = {"manylinux2014": 17, "manylinux2010": 12, "manylinux1": 5}
_OF_THIS_MACHINE = ("direct_url.json", "REQUESTED", "uv_cache.json", "uv_build.json")
"""Files of a .dist-info that say how and where from it was installed here."""


class Wheel(msgspec.Struct, frozen=True):
    """A locked wheel; `local` where it is a file of this machine and no index has it."""

    name: str
    version: str
    file: str
    address: str
    sha256: str
    local: bool


class Installed(msgspec.Struct, frozen=True):
    """A wheel in an image, and its licence as an SPDX expression where its metadata has one."""

    wheel: Wheel
    licence: str
    tree: Tree


def site() -> str:
    """Return the folder of packages that are not Debian's."""
    return f"usr/local/lib/python{bases().python}/dist-packages"


def installed(lock: Path, programs: list[str], platform: Platform, folder: Path) -> list[Installed]:
    """Return each locked package with the files that an image has of it; the files stay in `folder`.

    Raises: ImageError.
    """
    wheels = {each.name: each for each in _chosen(lock, platform)}
    _install(lock, platform, folder)
    found = []
    for metadata in sorted(folder.glob("*.dist-info")):
        distribution = PathDistribution(metadata)
        name = canonicalize_name(distribution.metadata["Name"])
        tree = _files(distribution, metadata, folder)
        if name in {canonicalize_name(each) for each in programs}:
            _add_programs(tree, distribution)
        licence = str(distribution.metadata.json.get("license_expression", ""))
        found.append(Installed(wheels[name], licence, tree))
    absent = {canonicalize_name(each) for each in programs} - {each.wheel.name for each in found}
    if absent:
        raise ImageError(
            f"{lock}: `programs` of the recipe names {', '.join(sorted(absent))}, which is not locked"
        )
    return found


def _install(lock: Path, platform: Platform, folder: Path) -> None:
    command = [
        *(find_uv_bin(), "pip", "install", "--quiet", "--no-build"),
        *("--python", sys.executable, "--python-version", bases().python),
        *("--python-platform", f"{platform.machine}-manylinux_2_{_LIBC}"),
        *("--target", str(folder), "--requirement", str(lock.absolute())),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 (arguments are ours)
    if done.returncode:
        raise ImageError(f"{lock}: uv does not install it for {platform.name}: {done.stderr.strip()}")


def _files(distribution: PathDistribution, metadata: Path, folder: Path) -> Tree:
    """Return what RECORD names, without scripts of this machine's interpreter."""
    tree = Tree()
    kept = []
    for line in (distribution.read_text("RECORD") or "").splitlines():
        name = next(csv.reader([line]))[0]
        path = folder / name
        if name.startswith(("bin/", "../")) or path.name in _OF_THIS_MACHINE:
            continue
        kept.append(line)
        mode = 0o755 if path.stat().st_mode & 0o100 else 0o644
        tree.add(f"{site()}/{name}", File(path, mode))
    record = "".join(f"{line}\n" for line in sorted(kept))
    tree.add(f"{site()}/{metadata.name}/RECORD", File(record.encode()))
    return tree


def _add_programs(tree: Tree, distribution: PathDistribution) -> None:
    for entry in distribution.entry_points.select(group="console_scripts"):
        module, _, attribute = entry.value.partition(":")
        text = (
            f"#!/usr/bin/python{bases().python}\n"
            f"import sys\nfrom {module} import {attribute.split('.')[0]}\nsys.exit({attribute}())\n"
        )
        tree.add(f"usr/local/bin/{entry.name}", File(text.encode(), 0o755))


def _chosen(lock: Path, platform: Platform) -> Iterator[Wheel]:
    """Find the wheel that fits best, of each package, as installers do."""
    ranks = {tag: rank for rank, tag in enumerate(_tags(platform))}
    for package in _packages(lock):
        best: tuple[int, dict[str, Any]] | None = None
        for wheel in package.get("wheels", ()):
            rank = min((ranks[tag] for tag in _tags_of(wheel) if tag in ranks), default=None)
            if rank is not None and (best is None or rank < best[0]):
                best = (rank, wheel)
        if best is not None:
            yield _wheel(lock, package, best[1])


def _packages(lock: Path) -> list[dict[str, Any]]:
    try:
        found = tomllib.loads(lock.read_text(encoding="utf-8"))
    except OSError as error:
        raise ImageError(
            f"{lock}: {error.strerror}: `uv pip compile --format pylock.toml` writes it"
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise ImageError(f"{lock}: {error}") from None
    packages: list[dict[str, Any]] = found.get("packages", [])
    return packages


def _wheel(lock: Path, package: dict[str, Any], wheel: dict[str, Any]) -> Wheel:
    digest = wheel.get("hashes", {}).get("sha256")
    if not digest:
        raise ImageError(f"{lock}: {_file(wheel)} has no hash sha256")
    name = canonicalize_name(package["name"])
    local = "path" in wheel or str(wheel.get("url", "")).startswith("file:")
    address = "" if local else wheel["url"]
    return Wheel(name, package["version"], _file(wheel), address, digest, local)


def _file(wheel: dict[str, Any]) -> str:
    where = str(wheel.get("name") or wheel.get("path") or wheel.get("url"))
    return unquote(where.rpartition("/")[2])


def _tags_of(wheel: dict[str, Any]) -> frozenset[Tag]:
    try:
        return parse_wheel_filename(_file(wheel))[3]
    except InvalidWheelFilename:
        return frozenset()


def _tags(platform: Platform) -> Iterator[Tag]:
    version = tuple(map(int, bases().python.split(".")))
    abi = f"cp{''.join(re.findall(r'[0-9]+', bases().python))}"
    platforms = list(_platform_tags(platform))
    yield from cpython_tags(version, abis=[abi], platforms=platforms)
    yield from compatible_tags(version, abi, platforms)


def _platform_tags(platform: Platform) -> Iterator[str]:
    legacy = {minor: name for name, minor in _LEGACY.items()}
    for minor in range(_LIBC, 4, -1):
        yield f"manylinux_2_{minor}_{platform.machine}"
        if minor in legacy:
            yield f"{legacy[minor]}_{platform.machine}"
    yield f"linux_{platform.machine}"
