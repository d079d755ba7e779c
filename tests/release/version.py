"""The version: one for all that a release has, taken from pyproject.toml and written to all other places."""

import re
import tomllib
from pathlib import Path

from tests.go_toolchain import ROOT

NUMBER = r"\d+\.\d+\.\d+(?:-[a-z]+\.\d+)?"
_PROJECT = rf'^(?:version = "|    "berth-[a-z-]+==)({NUMBER})"'
_LOCKED = rf'^name = "(?:berth-[a-z-]+|numa-aware)"\nversion = "({NUMBER})"'
_SDK_IN_POM = rf"<artifactId>berth-plugin-sdk</artifactId>\s+<version>({NUMBER})<"
_TAG = rf"--tag berth/[a-z-]+:({NUMBER})\b"
PLACES = (
    ("pyproject.toml", _PROJECT),
    ("core/*/pyproject.toml", _PROJECT),
    ("proto/python/pyproject.toml", _PROJECT),
    ("plugin-sdk/python/pyproject.toml", _PROJECT),
    ("out-of-tree-plugins/*/pyproject.toml", _PROJECT),
    ("out-of-tree-plugins/*/src/*/plugin.py", rf'^    version = "({NUMBER})"'),
    ("uv.lock", _LOCKED),
    ("plugin-sdk/typescript/package.json", rf'^  "version": "({NUMBER})"'),
    ("plugin-sdk/typescript/template/package.json", rf'"@berth/plugin-sdk": "\^({NUMBER})"'),
    (
        "out-of-tree-plugins/load-aware/package.json",
        rf'^(?:  "version": "|  .*"@berth/plugin-sdk": "\^)({NUMBER})"',
    ),
    ("out-of-tree-plugins/load-aware/src/plugin.ts", rf'version: "({NUMBER})"'),
    ("package-lock.json", rf'"name": "@berth/(?:plugin-sdk|load-aware)",\s+"version": "({NUMBER})"'),
    ("package-lock.json", rf'"@berth/plugin-sdk": "\^({NUMBER})"'),
    ("package-lock.json", rf'"out-of-tree-plugins/load-aware": \{{\s+"version": "({NUMBER})"'),
    ("plugin-sdk/rust/Cargo.toml", rf'^version = "({NUMBER})"'),
    ("plugin-sdk/rust/Cargo.lock", _LOCKED),
    ("plugin-sdk/rust/template/Cargo.lock", _LOCKED),
    ("out-of-tree-plugins/numa-aware/Cargo.toml", rf'^version = "({NUMBER})"'),
    ("out-of-tree-plugins/numa-aware/Cargo.lock", _LOCKED),
    ("plugin-sdk/java/pom.xml", _SDK_IN_POM),
    ("plugin-sdk/java/template/pom.xml", _SDK_IN_POM),
    ("out-of-tree-plugins/data-locality/pom.xml", _SDK_IN_POM),
    ("out-of-tree-plugins/data-locality/src/main/**/DataLocality.java", rf'\.version\("({NUMBER})"\)'),
    ("plugin-sdk/go/template/go.mod", rf"^\tberth\.dev/plugin-sdk/go v({NUMBER})$"),
    ("out-of-tree-plugins/coscheduling/go.mod", rf"^\tberth\.dev/plugin-sdk/go v({NUMBER})$"),
    ("out-of-tree-plugins/coscheduling/coscheduling.go", rf'Version: +"({NUMBER})"'),
    ("out-of-tree-plugins/rack-aware/go.mod", rf"^\tberth\.dev/plugin-sdk/go v({NUMBER})$"),
    ("out-of-tree-plugins/rack-aware/rackaware.go", rf'Version: +"({NUMBER})"'),
    ("plugin-sdk/*/template/README.md", rf"(?:berth-plugin-sdk[-/]|plugin-sdk/go@v)({NUMBER})\b"),
    ("core/images/*.Dockerfile", _TAG),
    ("out-of-tree-plugins/*/Dockerfile", _TAG),
    ("out-of-tree-plugins/*/README.md", _TAG),
    ("plugin-sdk/*/template/Dockerfile", _TAG),
    ("kustomize/images/kustomization.yaml", rf"^  newTag: ({NUMBER})$"),
)
"""Files, as patterns of paths, and where the version stands in them; a template has a version of its own."""


def version(root: Path = ROOT) -> str:
    """The version that pyproject.toml has."""
    return str(tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"])


def places(root: Path = ROOT) -> list[tuple[str, int, str]]:
    """Every place that has the version: its file, line and what stands there."""
    found = []
    for path, pattern in _files(root):
        text = path.read_text(encoding="utf-8")
        file = str(path.relative_to(root))
        found += [(file, text.count("\n", 0, each.start(1)) + 1, each[1]) for each in pattern.finditer(text)]
    return found


def unlike(root: Path = ROOT) -> list[str]:
    """A sentence for each place that has another version than pyproject.toml."""
    number = version(root)
    return [
        f"{file}:{line}: {stands} is not the version of pyproject.toml, {number}: "
        f"python -m tests.release version {number}"
        for file, line, stands in places(root)
        if stands != number
    ]


def set_version(number: str, root: Path = ROOT) -> list[Path]:
    """Write the version to all its places; gives the files that changed.

    Raises: ValueError where the number is not a version.
    """
    if not re.fullmatch(NUMBER, number):
        raise ValueError(f"{number!r} is not a version such as 0.2.0 or 0.2.0-rc.1")
    changed = []
    for path, pattern in _files(root):
        text = path.read_text(encoding="utf-8")
        new = pattern.sub(lambda each: _with(each, number), text)
        if new != text:
            path.write_text(new, encoding="utf-8")
            changed.append(path)
    return changed


def _with(found: re.Match[str], number: str) -> str:
    before, after = found.start(1) - found.start(), found.end(1) - found.start()
    return found[0][:before] + number + found[0][after:]


def _files(root: Path) -> list[tuple[Path, re.Pattern[str]]]:
    return [
        (path, re.compile(pattern, re.MULTILINE))
        for place, pattern in PLACES
        for path in sorted(root.glob(place))
        if "node_modules" not in path.parts
    ]
