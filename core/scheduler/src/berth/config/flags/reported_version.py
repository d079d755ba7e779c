"""The version that --version prints: the kube-scheduler whose behaviour this is, with Berth's own behind it.

Berth's version is semver's build metadata, as in the versions of Kubernetes distributions: what reads
kube-scheduler's answer reads this one.

Source: staging/src/k8s.io/component-base/version/verflag/verflag.go (Kubernetes v1.36).
"""

import platform
import re
import sys

from berth.config.go_text import BOOLEANS, quote
from berth.version import version

BASE = "v1.36.0"
ASKED, RAW = "true", "raw"
_NUMBERS = re.compile(r"v[0-9]+\.[0-9]+\.[0-9]+(?![0-9.])")
_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}


def parse_version(text: str) -> str:
    """The flag's value: empty, true, raw, or a version to report in place of the default.

    Raises:
        ValueError: it is none of these.
    """
    if text == RAW:
        return RAW
    if text.startswith("v"):
        numbers = _NUMBERS.match(text)
        if numbers is None or numbers[0] != BASE:
            default = quote(BASE)
            raise ValueError(
                f"version {quote(text)} must match major/minor/patch of default version {default}"
            )
        return text
    if text not in BOOLEANS:
        raise ValueError(f"strconv.ParseBool: parsing {quote(text)}: invalid syntax")
    return ASKED if BOOLEANS[text] else ""


def version_text(value: str) -> str:
    """What to print for the flag's value before exiting, empty for nothing."""
    if value not in (ASKED, RAW):
        return ""
    shown = f"{BASE}+berth.{version()}"
    return _raw(shown) if value == RAW else f"Kubernetes {shown}"


def _raw(version: str) -> str:
    """As Go prints a version.Info; a Python program has no commit, no build and no Go."""
    major, minor, _ = BASE[1:].split(".")
    machine = platform.machine()
    fields = {
        "Major": major,
        "Minor": minor,
        "EmulationMajor": "",
        "EmulationMinor": "",
        "MinCompatibilityMajor": "",
        "MinCompatibilityMinor": "",
        "GitVersion": version,
        "GitCommit": "",
        "GitTreeState": "",
        "BuildDate": "",
        "GoVersion": "",
        "Compiler": f"python{platform.python_version()}",
        "Platform": f"{sys.platform}/{_MACHINES.get(machine, machine)}",
    }
    return f"version.Info{{{', '.join(f'{name}:{quote(text)}' for name, text in fields.items())}}}"
