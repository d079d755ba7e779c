"""Go from the wheel in this environment: the same toolchain for tests, lint, generators and benchmarks."""

import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import go

ROOT = Path(__file__).resolve().parent.parent
GO_ROOT = Path(go.__file__).parent
GO_SDK = ROOT / "plugin-sdk/go"
CLIENT_GO = ROOT / "tests/e2e/client_go"
TTRPC_PEER = ROOT / "tests/unit/sdk/ttrpc_peer"
AUTOSCALER = ROOT / "tests/unit/simulation_service/autoscaler"
WITHOUT_SDK = ROOT / "out-of-tree-plugins/without-sdk/go"
MODULES = (
    GO_SDK,
    GO_SDK / "template",
    ROOT / "out-of-tree-plugins/coscheduling",
    ROOT / "out-of-tree-plugins/rack-aware",
)
"""The modules with tests of their own; each is built against the SDK of this checkout."""
CLIENT_GO_FLAGS = ("-gcflags=k8s.io/...=-N -l -dwarf=false",)
"""How programs over client-go and k8s.io/api are built: a compiler that does not optimise is done sooner."""
ENVIRONMENT = {
    "CGO_ENABLED": "0",  # no C compiler is asked for
    # As the image files build, so that no package is built twice.
    "GOFLAGS": "-mod=readonly -buildvcs=false -trimpath",
    "GOROOT": str(GO_ROOT),
    "GOTOOLCHAIN": "local",
    "GOWORK": "off",
}


def run_go(
    *arguments: str, folder: Path, capture: bool = False, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run `go` in a folder; with `capture` its output comes back as one text."""
    with alone():
        return subprocess.run(
            [str(GO_ROOT / "bin/go"), *arguments],
            cwd=folder,
            env={**os.environ, **ENVIRONMENT, **environment},
            check=False,
            text=True,
            stdout=subprocess.PIPE if capture else None,
            stderr=subprocess.STDOUT if capture else None,
        )


def ask_go(*arguments: str, folder: Path) -> str | None:
    """What `go` answers, None where it fails; its other output is shown."""
    with alone():
        done = subprocess.run(
            [str(GO_ROOT / "bin/go"), *arguments],
            cwd=folder,
            env={**os.environ, **ENVIRONMENT},
            check=False,
            text=True,
            stdout=subprocess.PIPE,
        )
    return None if done.returncode else done.stdout


@contextmanager
def alone() -> Iterator[None]:
    """Keep other test processes from compiling the same packages at the same time."""
    with (GO_ROOT / "VERSION").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def build(package: str, output: Path, *flags: str, folder: Path) -> Path:
    """Build a program; the path of it.

    Raises: RuntimeError with what the compiler said.
    """
    done = run_go("build", *flags, "-o", str(output), package, folder=folder, capture=True)
    if done.returncode:
        raise RuntimeError(f"go build {package}: {done.stdout}")
    return output


def unformatted() -> str:
    """What gofmt would change, as a diff; empty where there is nothing."""
    done = subprocess.run(
        [GO_ROOT / "bin/gofmt", "-d", *(str(source) for source in sources())],
        check=False,
        capture_output=True,
        text=True,
    )
    return done.stdout + done.stderr


def sources() -> list[Path]:
    """The Go files of this repository that people write."""
    found = [
        path
        for module in (*MODULES, AUTOSCALER, CLIENT_GO, TTRPC_PEER, WITHOUT_SDK)
        for path in module.rglob("*.go")
    ]
    return sorted({path for path in found if "pluginv1" not in path.parts})


def vet_program(folder: Path, *flags: str) -> bool:
    """Put every check of go vet to the one package in a folder, and to none that it imports.

    `go vet` studies all that a package imports, too, to know which functions format text as Printf does or
    never return. For a program over client-go those are hundreds of packages: most of what a bare machine
    would do for `make lint`. What is compiled here, with these flags, the tests build with.
    """
    fields = "-json=ImportPath,Dir,GoFiles,Export,ImportMap,DepOnly"
    listed = ask_go("list", *flags, "-deps", "-export", fields, ".", folder=folder)
    tool = ask_go("tool", "-n", "vet", folder=folder)
    if listed is None or tool is None:
        return False
    packages = list(_documents(listed))
    (program,) = (package for package in packages if not package.get("DepOnly"))
    exports = {each["ImportPath"]: each["Export"] for each in packages if each.get("Export")}
    with TemporaryDirectory() as scratch:
        settings = {
            "ID": program["ImportPath"],
            "Compiler": "gc",
            "Dir": program["Dir"],
            "ImportPath": program["ImportPath"],
            "GoFiles": [str(Path(program["Dir"], name)) for name in program["GoFiles"]],
            "ImportMap": {path: path for path in exports} | program.get("ImportMap", {}),
            "PackageFile": exports,
            "VetxOutput": f"{scratch}/facts",
        }
        config = Path(scratch, "vet.cfg")
        config.write_text(json.dumps(settings), encoding="utf-8")
        return subprocess.run([tool.strip(), str(config)], check=False).returncode == 0


def _documents(text: str) -> Iterator[dict[str, Any]]:
    """The JSON documents of a text, one after the other."""
    decoder, at = json.JSONDecoder(), 0
    while at < len(text.rstrip()):
        document, at = decoder.raw_decode(text, at)
        yield document
        at += len(text[at:]) - len(text[at:].lstrip())


def main() -> int:
    """Hold the Go modules to gofmt and go vet."""
    problems = 0
    if diff := unformatted():
        sys.stderr.write(f"{diff}\ngofmt: run it on the files above\n")
        problems += 1
    for module in (*MODULES, TTRPC_PEER):
        problems += run_go("vet", "./...", folder=module).returncode != 0
    problems += sum(not vet_program(program, *CLIENT_GO_FLAGS) for program in (CLIENT_GO, AUTOSCALER))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
