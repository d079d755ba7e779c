"""The files of a release, each kind built by its language's own tool into one folder.

FOLDER/*.whl, berth_scheduler-VERSION.tar.gz     for pip and uv: `--find-links FOLDER`
FOLDER/constraints.txt                           for pip and uv: `--constraint`, versions that were tried
FOLDER/berth-plugin-sdk-VERSION.tgz              for npm
FOLDER/go/                                       for go: `GOPROXY=file://FOLDER/go`
FOLDER/berth-plugin-sdk-VERSION.crate            for cargo
FOLDER/maven/                                    for Maven: a repository
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tests import java_toolchain, node_toolchain, rust_toolchain
from tests.go_toolchain import GO_SDK, ROOT
from tests.release import chart
from tests.release.manifests import packed, write_installations, write_kubectl_plugin
from tests.release.version import version

BUILT = ROOT / "build/dist"
"""Where tests find what they use, built once for each state of its sources."""
UV = Path(sys.executable).parent / "uv"
GO_MODULE = "berth.dev/plugin-sdk/go"
EPOCH = "1767225600"
"""The time that archives give their files, 2026-01-01: what is built twice is the same."""
_MOMENT = (2026, 1, 1, 0, 0, 0)


class ToolMissingError(RuntimeError):
    """The machine has not what an artefact is built with."""


def wheels(folder: Path, *chosen: str) -> None:
    """Build a wheel of each distribution, or of those that uv's words choose."""
    run([UV, "build", "--quiet", "--wheel", *(chosen or ["--all-packages"]), "--out-dir", folder])
    (folder / ".gitignore").unlink(missing_ok=True)


def constraints(folder: Path) -> None:
    """Write the versions that the wheels were tried with, of what others make, as pip's constraints."""
    words = ("--frozen", "--all-packages", "--no-dev", "--no-emit-workspace", "--no-hashes", "--no-annotate")
    text = run([UV, "export", "--quiet", *words, "--no-header", "--format", "requirements-txt"])
    (folder / "constraints.txt").write_text(text, encoding="utf-8")


def source_archive(folder: Path) -> None:
    """Pack the tree that the distributions of `berth` are built of."""
    run([UV, "build", "--quiet", "--sdist", "--out-dir", folder])
    (folder / ".gitignore").unlink(missing_ok=True)


def npm_package(folder: Path) -> None:
    """Compile the TypeScript SDK and pack it."""
    sdk, environment = node_toolchain.NODE_SDK, node_toolchain.environment()
    run([node_toolchain.tool("tsc"), "-p", "tsconfig.build.json"], at=sdk, environment=environment)
    npm = [node_toolchain.NODE, node_toolchain.NPM, "pack", "--silent", "--ignore-scripts"]
    run([*npm, "--pack-destination", folder], at=sdk, environment=environment)


def go_module(folder: Path) -> None:
    """Lay out the Go SDK as a module proxy serves it.

    Source: golang.org/ref/mod#module-proxy and #zip-files.
    """
    place, number = folder / "go" / GO_MODULE / "@v", f"v{version()}"
    place.mkdir(parents=True, exist_ok=True)
    (place / "list").write_text(f"{number}\n", encoding="utf-8")
    (place / f"{number}.info").write_text(f'{{"Version":"{number}","Time":"2026-01-01T00:00:00Z"}}', "utf-8")
    shutil.copyfile(GO_SDK / "go.mod", place / f"{number}.mod")
    nested = {each.parent for each in GO_SDK.rglob("go.mod") if each.parent != GO_SDK}
    with zipfile.ZipFile(place / f"{number}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(GO_SDK.rglob("*")):
            if path.is_file() and nested.isdisjoint(path.parents):
                entry = zipfile.ZipInfo(f"{GO_MODULE}@{number}/{path.relative_to(GO_SDK)}", _MOMENT)
                entry.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(entry, path.read_bytes())


def crate(folder: Path) -> None:
    """Package the Rust SDK; it is compiled where it is used."""
    if rust_toolchain.CARGO is None:
        raise ToolMissingError("cargo is not on this machine")
    command = [rust_toolchain.CARGO, "package", "--quiet", "--no-verify", "--allow-dirty", "--locked"]
    target = {**os.environ, **rust_toolchain.ENVIRONMENT}
    run(command, at=rust_toolchain.RUST_SDK, environment=target)
    name = f"berth-plugin-sdk-{version()}.crate"
    shutil.copyfile(rust_toolchain.BUILDS / "package" / name, folder / name)


def maven_artefact(folder: Path) -> None:
    """Lay out the Java SDK as a Maven repository has it: jar, pom, jars of its sources and its javadoc."""
    if reason := java_toolchain.missing() or (
        "" if shutil.which("javadoc") else "no javadoc on this machine"
    ):
        raise ToolMissingError(reason)
    java_toolchain.install()
    place = Path("dev/berth/berth-plugin-sdk") / version()
    target = folder / "maven" / place
    target.mkdir(parents=True, exist_ok=True)
    for suffix in ("jar", "pom"):
        name = f"berth-plugin-sdk-{version()}.{suffix}"
        shutil.copyfile(java_toolchain.BUILD / "repository" / place / name, target / name)
    stem = target / f"berth-plugin-sdk-{version()}"
    _jar(Path(f"{stem}-sources.jar"), java_toolchain.JAVA_SDK / "src/main/java")
    with TemporaryDirectory() as pages:
        java_toolchain.javadoc(Path(pages))
        _jar(Path(f"{stem}-javadoc.jar"), Path(pages))


def _jar(archive: Path, folder: Path) -> None:
    """Pack a folder's files, whose bytes alone decide the archive's."""
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as jar:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                entry = zipfile.ZipInfo(str(path.relative_to(folder)), _MOMENT)
                entry.compress_type = zipfile.ZIP_DEFLATED
                jar.writestr(entry, path.read_bytes())


def cluster_files(folder: Path) -> None:
    """Write what is applied to clusters: installations, the Helm chart, kubectl's plugin."""
    number = version()
    write_installations(folder, number)
    with TemporaryDirectory() as place:
        files = {
            str(path.relative_to(place)): path.read_bytes()
            for path in chart.write(Path(place), number).rglob("*")
            if path.is_file()
        }
    (folder / f"berth-{number}.tgz").write_bytes(packed(files))
    if not (folder / f"berth_scheduler-{number}-py3-none-any.whl").is_file():
        wheels(folder)
    write_kubectl_plugin(folder, number)


KINDS: dict[str, tuple[Callable[[Path], None], tuple[str, ...]]] = {
    "wheels": (
        wheels,
        (
            "pyproject.toml",
            "core",
            "proto/python",
            "plugin-sdk/python",
            "out-of-tree-plugins/*/pyproject.toml",
            "out-of-tree-plugins/*/src",
        ),
    ),
    "constraints": (constraints, ("pyproject.toml", "uv.lock", "tests/release/dist.py")),
    "sources": (source_archive, ("pyproject.toml", "core")),
    "npm": (npm_package, ("package-lock.json", "plugin-sdk/typescript/src", "plugin-sdk/typescript/*.json")),
    "go": (go_module, ("plugin-sdk/go",)),
    "crate": (crate, ("plugin-sdk/rust/Cargo.*", "plugin-sdk/rust/src")),
    "cluster": (
        cluster_files,
        ("pyproject.toml", "core", "proto/python", "kustomize", "tests/release"),
    ),
    "maven": (maven_artefact, ("plugin-sdk/java/pom.xml", "plugin-sdk/java/src", "proto/berth")),
}
"""How each kind is built, and of which sources."""


def dist(folder: Path) -> list[str]:
    """Build everything that this machine has the tools for; gives what it has not, a sentence each."""
    folder.mkdir(parents=True, exist_ok=True)
    lacking = []
    for kind, (build, _) in KINDS.items():
        try:
            build(folder)
        except ToolMissingError as error:
            lacking.append(f"{kind}: not built, {error}")
    return lacking


def built(*kinds: str) -> Path:
    """The folder that has these kinds, as their sources are now; tests of several processes share it.

    Raises: ToolMissingError where the machine lacks a tool.
    """
    for kind in kinds:
        kept(kind, *KINDS[kind])
    return BUILT


def kept(kind: str, build: Callable[[Path], object], sources: tuple[str, ...]) -> None:
    """Build a kind into that folder, unless it was built of its sources as they are now."""
    BUILT.mkdir(parents=True, exist_ok=True)
    stamp, state = BUILT / f".{kind}", _state(sources)
    with _alone():
        if not stamp.is_file() or stamp.read_text() != state:
            build(BUILT)
            stamp.write_text(state)


def checksums(folder: Path) -> str:
    """A line for each file, as sha256sum writes it."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != "SHA256SUMS")
    lines = (f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(folder)}" for path in files)
    return "".join(f"{line}\n" for line in lines)


def _state(sources: tuple[str, ...]) -> str:
    found = hashlib.sha256(version().encode())
    for path in sorted(path for pattern in sources for top in ROOT.glob(pattern) for path in _within(top)):
        found.update(str(path.relative_to(ROOT)).encode() + path.read_bytes())
    return found.hexdigest()


def _within(top: Path) -> Iterator[Path]:
    left_out = {"__pycache__", "node_modules", "target", "dist"}
    candidates = top.rglob("*") if top.is_dir() else (top,)
    return (path for path in candidates if path.is_file() and left_out.isdisjoint(path.parts))


def run(command: list[object], at: Path = ROOT, environment: dict[str, str] | None = None) -> str:
    """What a tool prints.

    Raises: RuntimeError with what the tool said.
    """
    done = subprocess.run(
        [str(word) for word in command],
        cwd=at,
        env={**(environment or os.environ), "SOURCE_DATE_EPOCH": EPOCH},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"{command[0]} {command[1]}: {done.stdout}{done.stderr}")
    return done.stdout


@contextmanager
def _alone() -> Iterator[None]:
    with (BUILT / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
