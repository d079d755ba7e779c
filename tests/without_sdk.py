"""The plugins without an SDK: what each is built with, and how.

What is made is kept in `build/without-sdk`, so that a build that was done before is quick.
"""

import fcntl
import hashlib
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc_tools

from tests import java_toolchain, rust_toolchain
from tests.go_toolchain import GO_SDK, ROOT, build, run_go
from tests.node_toolchain import NODE, install

WITHOUT_SDK = ROOT / "out-of-tree-plugins/without-sdk"
PROTO = ROOT / "proto"
BUILD = ROOT / "build/without-sdk"
MADE_IN_PLACE = {"__pycache__", "build", "pluginv1", "target"}
JAR, MAIN = "same-label-0.1.0.jar", "berth.samelabel.Main"
RUST_PROGRAM = "debug/same-label"


class NotHereError(Exception):
    """This machine lacks something that a plugin is built with."""


@dataclass(frozen=True)
class Program:
    """How a plugin is built into a folder and run from there; `tools` are looked for on the PATH."""

    command: Callable[[Path], tuple[str, ...]]
    build: Callable[[Path], None]
    tools: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    environment: Callable[[Path], dict[str, str]] = lambda _: {}


def built(folder: Path) -> tuple[tuple[str, ...], dict[str, str]]:
    """Build the plugin in that folder, unless it was built of the same sources before; how it is started.

    Raises: NotHereError: a tool is missing; RuntimeError: what the build said.
    """
    program, made = PROGRAMS[folder], BUILD / folder.name
    for missing in (*_missing(program.tools), *_missing_libraries(program.libraries)):
        raise NotHereError(f"no {missing}")
    made.mkdir(parents=True, exist_ok=True)
    stamp, sources = made / "built-of", digest(folder)
    with _alone(made):
        if not stamp.is_file() or stamp.read_text() != sources:
            program.build(made)
            stamp.write_text(sources)
    return program.command(made), program.environment(made)


def digest(folder: Path) -> str:
    """One short text for all that the plugin is built of."""
    found = hashlib.sha256()
    for path in sorted(path for top in (folder, PROTO) for path in top.rglob("*") if path.is_file()):
        if MADE_IN_PLACE.isdisjoint(path.relative_to(ROOT).parts):
            found.update(path.name.encode() + path.read_bytes())
    return found.hexdigest()


def _missing(tools: Iterable[str]) -> list[str]:
    return [name for name in tools if shutil.which(name) is None]


def _missing_libraries(libraries: Iterable[str]) -> list[str]:
    asked = {name: subprocess.run(["pkg-config", "--exists", name], check=False) for name in libraries}
    return [f"headers of {name}" for name, done in asked.items() if done.returncode]


def _rust(made: Path) -> None:
    (made / "debug").mkdir(exist_ok=True)
    rust_toolchain.build("same-label", made / RUST_PROGRAM, folder=WITHOUT_SDK / "rust")


def _java(made: Path) -> None:
    command = ("mvn", "--batch-mode", "--quiet", f"-Dbuild.folder={made}", "package")
    _run(*command, folder=WITHOUT_SDK / "java", **java_toolchain.environment())


def _cpp(made: Path) -> None:
    _run("cmake", "-S", ".", "-B", str(made), folder=WITHOUT_SDK / "cpp")
    _run("cmake", "--build", str(made), "--parallel", "2", folder=WITHOUT_SDK / "cpp")


def _node(_made: Path) -> None:
    install()


def _go(made: Path) -> None:
    tools = made / "bin"
    tools.mkdir(exist_ok=True)
    if run_go("install", "tool", folder=GO_SDK / "tools", GOBIN=str(tools)).returncode:
        raise RuntimeError("the Go generators can't be built")
    _write_protoc(tools / "protoc")
    path = os.pathsep.join((str(tools), os.environ["PATH"]))
    for command in ("generate", "vet"):
        done = run_go(command, ".", folder=WITHOUT_SDK / "go", capture=True, PATH=path)
        if done.returncode:
            raise RuntimeError(f"go {command}: {done.stdout}")
    build(".", made / "same-label", folder=WITHOUT_SDK / "go")


def _python(made: Path) -> None:
    _write_protoc(made / "protoc")
    files = [f"berth/plugin/v1/{name}.proto" for name in ("common", "identity", "scheduling", "state")]
    outputs = (f"--python_out={made}", f"--grpc_python_out={made}")
    _run(str(made / "protoc"), "-I.", *outputs, *files, folder=PROTO)
    # In this environment the scheduler's own package has the name that the stubs' folder has.
    (made / "berth/__init__.py").touch()


PROGRAMS = {
    WITHOUT_SDK / "cpp": Program(
        lambda made: (str(made / "same-label"),),
        _cpp,
        tools=("cmake", "c++", "protoc", "grpc_cpp_plugin", "pkg-config"),
        libraries=("grpc++",),
    ),
    WITHOUT_SDK / "go": Program(lambda made: (str(made / "same-label"),), _go),
    WITHOUT_SDK / "java": Program(
        lambda made: (
            str(shutil.which("java")),
            *java_toolchain.JVM,
            "-cp",
            f"{made / JAR}:{made / 'lib'}/*",
            MAIN,
        ),
        _java,
        tools=("mvn", "javac", "java"),
    ),
    WITHOUT_SDK / "node": Program(lambda _: (str(NODE), str(WITHOUT_SDK / "node/main.js")), _node),
    WITHOUT_SDK / "python": Program(
        lambda _: (sys.executable, str(WITHOUT_SDK / "python/main.py")),
        _python,
        environment=lambda made: {"PYTHONPATH": str(made)},
    ),
    WITHOUT_SDK / "rust": Program(lambda made: (str(made / RUST_PROGRAM),), _rust, tools=("cargo",)),
}


def _write_protoc(path: Path) -> None:
    """Write a `protoc` that is grpcio-tools' own, with the types that come with every protoc."""
    well_known = Path(grpc_tools.__file__).parent / "_proto"
    command = shlex.join((sys.executable, "-m", "grpc_tools.protoc", f"-I{well_known}"))
    path.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
    path.chmod(0o700)


def _run(*command: str, folder: Path, **environment: str) -> None:
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **environment},
        check=False,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    if done.returncode:
        raise RuntimeError(f"{shlex.join(command)}: {done.stdout}")


@contextmanager
def _alone(made: Path) -> Iterator[None]:
    """Keep other test processes from building the same plugin at the same time."""
    with made.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
