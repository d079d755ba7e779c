"""Which distribution has the packages that a scheduler does without, named where a command lacks one.

No package index has them yet, so what is to be installed comes from where berth-scheduler came from, as pip
wrote it down (PEP 610):

    a checkout     ──► the distribution's folder in it
    a wheel's file ──► the folder of that file, which a release's wheels share
    a name         ──► DIST, the folder that pip was given with --find-links
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import unquote, urlsplit

from berth.cli.failing import fail
from berth.version import version

DISTRIBUTIONS = {
    "berth.conformance": "berth-conformance",
    "berth.demo": "berth-sandbox",
    "berth.descheduling": "berth-simulation",
    "berth.observer": "berth-simulation",
    "berth.operator": "berth-operator",
    "berth.replay": "berth-conformance",
    "berth.sandbox": "berth-sandbox",
    "berth.simulation": "berth-simulation",
    "berth.simulation_service": "berth-simulation",
    "berth.testing": "berth-conformance",
}
"""Packages outside of berth-scheduler, by the distribution to install; its folder is named like it."""


@contextmanager
def named_where_absent() -> Iterator[None]:
    """End the program with the distribution to install where a package of another distribution is absent."""
    try:
        yield
    except ModuleNotFoundError as error:
        package = ".".join((error.name or "").split(".")[:2])
        if package not in DISTRIBUTIONS:
            raise
        fail_absent(package)


def fail_absent(package: str) -> NoReturn:
    """End the program with the distribution to install for a package."""
    name = DISTRIBUTIONS[package]
    fail(f"{package} is not installed; it is in {name}: {_how_to_install(name)}")


def _how_to_install(name: str) -> str:
    origin = _origin()
    address = urlsplit(origin.get("url", ""))
    folder = Path(unquote(address.path)) if address.scheme == "file" else None
    if folder is not None and "dir_info" in origin:
        return f"pip install {folder / 'core' / name.removeprefix('berth-')}"
    if "vcs_info" in origin:
        return f"clone {origin['url']}, and pip install core/{name.removeprefix('berth-')} of that"
    if folder is not None:
        return f"pip install --find-links {folder.parent} {name}=={version()}"
    return (
        f"pip install --find-links DIST {name}=={version()}, where DIST is the folder that "
        "berth-scheduler was installed from (docs/install.md)"
    )


def _origin() -> dict[str, Any]:
    """Where the installed berth-scheduler came from; empty where it was asked for by name."""
    from importlib.metadata import distribution  # noqa: PLC0415 (quick start)

    found: dict[str, Any] = json.loads(distribution("berth-scheduler").read_text("direct_url.json") or "{}")
    return found
