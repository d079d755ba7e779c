"""Cargo, where the machine has it: the same commands for tests, lint and generators, one folder of builds."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
CARGO = shutil.which("cargo")
RUST_SDK = ROOT / "plugin-sdk/rust"
TEMPLATE = RUST_SDK / "template"
PACKAGES = (RUST_SDK, TEMPLATE, ROOT / "out-of-tree-plugins/numa-aware")
"""The packages with tests of their own; each is built against the SDK of this checkout."""
STUBS = RUST_SDK / "tools"
BUILDS = ROOT / "build/rust"
"""What is built stays here, so that packages share their dependencies and a second run has little to do."""
ENVIRONMENT = {
    "CARGO_INCREMENTAL": "0",  # nothing is built twice that differs a little
    "CARGO_PROFILE_DEV_DEBUG": "none",  # a panic names its line without it
    "CARGO_TARGET_DIR": str(BUILDS),
    "CARGO_TERM_COLOR": "never",
}

needs_cargo = pytest.mark.skipif(CARGO is None, reason="cargo is not on this machine")


def run_cargo(*arguments: str, folder: Path, capture: bool = False) -> subprocess.CompletedProcess[str]:
    """Run `cargo` in a folder; with `capture` its output comes back as one text."""
    return subprocess.run(
        [CARGO or "cargo", *arguments],
        cwd=folder,
        env={**os.environ, **ENVIRONMENT},
        check=False,
        text=True,
        stdout=subprocess.PIPE if capture else None,
        stderr=subprocess.STDOUT if capture else None,
    )


def build(name: str, output: Path, *, folder: Path) -> Path:
    """Build a program; the path of it, where no later build replaces it.

    Raises: RuntimeError with what the compiler said.
    """
    done = run_cargo("build", "--locked", folder=folder, capture=True)
    if done.returncode:
        raise RuntimeError(f"cargo build {folder}: {done.stdout}")
    shutil.copy(BUILDS / "debug" / name, output)
    return output


def run_in(package: Path, command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `cargo` for one of PACKAGES; the output comes back as one text.

    For the SDK it runs where the template is, which depends on it: in the SDK's own folder the same crate has
    another identity, and would be compiled once more.
    """
    if package == RUST_SDK:
        package, arguments = TEMPLATE, ("--package", "berth-plugin-sdk", *arguments)
    return run_cargo(command, "--locked", *arguments, folder=package, capture=True)


def build_example(name: str, output: Path, *, release: bool = True) -> Path:
    """Build one of the SDK's examples, as it would be deployed or as its tests are; the path of it.

    Raises: RuntimeError with what the compiler said.
    """
    profile, folder = ("release", "release") if release else ("dev", "debug")
    done = run_in(RUST_SDK, "build", "--profile", profile, "--example", name)
    if done.returncode:
        raise RuntimeError(f"cargo build --example {name}: {done.stdout}")
    shutil.copy(BUILDS / folder / "examples" / name, output)
    return output


def named_apart(copy: Path, name: str) -> None:
    """Give a copy of the template a name of its own: cargo takes packages of one name for one package."""
    manifest = copy / "Cargo.toml"
    manifest.write_text(manifest.read_text().replace('name = "hello"', f'name = "{name}"'))


def unformatted() -> str:
    """What rustfmt would change; empty where there is nothing."""
    done = [run_cargo("fmt", "--check", folder=folder, capture=True) for folder in (*PACKAGES, STUBS)]
    return "".join(each.stdout for each in done if each.returncode)


def generate(folder: Path, compile_with: Callable[..., None]) -> Path:
    """Write Rust stubs of what a plugin needs; `compile_with` runs protoc on every .proto file.

    Raises: RuntimeError with what the compiler said.
    """
    folder.mkdir()
    descriptors = folder.parent / "descriptors.binpb"
    compile_with("--include_imports", "--include_source_info", f"--descriptor_set_out={descriptors}")
    program = build("berth-stubs", folder.parent / "berth-stubs", folder=STUBS)
    subprocess.run([program, descriptors, folder], check=True)
    return folder


def main() -> int:
    """Hold the Rust packages to rustfmt and clippy, where there is cargo."""
    if CARGO is None:
        sys.stderr.write("rust_toolchain: cargo is not on this machine; the Rust packages are not checked\n")
        return 0
    problems = 0
    if diff := unformatted():
        sys.stderr.write(f"{diff}\nrustfmt: run cargo fmt where the files above are\n")
        problems += 1
    strict = ("--locked", "--quiet", "--all-targets", "--", "--deny=warnings")
    for package in (*PACKAGES, STUBS):
        problems += run_cargo("clippy", *strict, folder=package).returncode != 0
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
