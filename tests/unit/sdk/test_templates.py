"""A template that was copied out of this repository works as its page says, with what a release has."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests import java_toolchain
from tests.e2e.page import Page
from tests.go_toolchain import ENVIRONMENT, GO_ROOT, ROOT
from tests.node_toolchain import MODULES, NODE, NODE_SDK, NPM, install
from tests.release.dist import built
from tests.release.installed import environment
from tests.rust_toolchain import BUILDS, named_apart, needs_cargo
from tests.rust_toolchain import ENVIRONMENT as RUST_ENVIRONMENT

SECONDS = 240
NEEDS_JAVA = pytest.mark.skipif(bool(java_toolchain.missing()), reason=java_toolchain.missing())
ARTEFACT = {"python": "wheels", "go": "go", "typescript": "npm", "rust": "crate", "java": "maven"}
PASSED = {
    "python": "3 passed",
    "go": "ok ",
    "typescript": "pass 3",
    "rust": "3 passed",
    "java": "Tests run: 3, Failures: 0, Errors: 0",
}
PROGRAM = {
    "python": (".venv/bin/python", "hello.py", "--address"),
    "go": ("./plugin", "-address"),
    "typescript": (str(NODE), "hello.ts", "--address"),
    "rust": (str(BUILDS / "debug/copy-of-hello"), "--address"),
    "java": ("java", *java_toolchain.JVM, "-jar", "target/plugin.jar", "--address"),
}
"""How the program that the page's commands have built is started."""


@pytest.fixture(scope="session")
def kit(tmp_path_factory):
    """The programs of an environment that has the conformance kit's wheel and what it requires."""
    return environment(tmp_path_factory.mktemp("kit") / "environment", "berth-conformance")


@pytest.mark.parametrize(
    "language",
    [
        "python",
        "go",
        pytest.param("rust", marks=needs_cargo),
        "typescript",
        pytest.param("java", marks=NEEDS_JAVA),
    ],
)
def test_copy(language, kit, tmp_path):
    """In a copy the commands of the template's page succeed, and the kit's wheel verifies the plugin.

    Neither the page nor the plugin nor the kit sees this repository: only the files that a release has.
    """
    copy, programs = tmp_path / "copy", tmp_path / "programs"
    made = shutil.ignore_patterns("target")
    shutil.copytree(ROOT / "plugin-sdk" / language / "template", copy, ignore=made)
    programs.mkdir()
    (programs / "uv").symlink_to(Path(sys.executable).parent / "uv")
    if language == "typescript":
        install()
        npm_that_keeps_to_the_lock(programs)
    if language == "rust":
        named_apart(copy, "copy-of-hello")
    page = Page((copy / "README.md").read_text(encoding="utf-8"))
    tools = java_toolchain.environment() if language == "java" else dict(os.environ)
    path = (programs, NODE.parent, GO_ROOT / "bin", Path(sys.base_prefix, "bin"), tools["PATH"])
    dist = built(ARTEFACT[language])
    variables = {**tools, **ENVIRONMENT, **RUST_ENVIRONMENT, "DIST": str(dist)}
    variables.pop("VIRTUAL_ENV", None)
    variables["PATH"] = os.pathsep.join(map(str, path))

    with java_toolchain.alone():  # the page installs the SDK, which others may be building
        printed = page.run(copy, variables, SECONDS)
        code, checks = verified(copy, variables, PROGRAM[language], kit / "berth")

    assert PASSED[language] in "".join(printed)
    assert 0 == code, checks
    assert " passed" in checks


def verified(folder, variables, program, berth):
    """Start the program in its folder and verify it; the exit code and what was said."""
    socket = folder / "sockets/plugin.sock"
    log = folder / "plugin.log"
    with log.open("w") as output:
        plugin = subprocess.Popen(
            [*program, f"unix:{socket}"], cwd=folder, env=variables, stdout=output, stderr=output
        )
    try:
        command = [berth, "plugin", "verify", f"unix:{socket}", "--timeout=60", "--only=handshake/*"]
        done = subprocess.run(command, cwd="/", capture_output=True, text=True, timeout=SECONDS, check=False)
    finally:
        plugin.send_signal(signal.SIGTERM)
        plugin.wait(SECONDS)
    return done.returncode, f"{done.stdout}{done.stderr}{log.read_text()}"


def npm_that_keeps_to_the_lock(folder):
    """A `npm` that installs the given package beside the versions of this repository, not the newest ones.

    Everything but `npm install` is the real one.
    """
    modules = "node_modules/@berth/plugin-sdk"
    lines = (
        "#!/bin/sh -e",
        f'test "$1" = install || exec "{NODE}" "{NPM}" "$@"',
        "mkdir -p node_modules",
        f'for each in "{MODULES}"/*; do test "${{each##*/}}" = @berth || ln -s "$each" node_modules; done',
        f"mkdir -p {modules}",
        f'tar -xzf "$2" -C {modules} --strip-components=1',
        # What the SDK has in a version of its own, beside the other packages of this repository.
        f'ln -s "{NODE_SDK}/node_modules" {modules}',
    )
    (folder / "npm").write_text("\n".join((*lines, "")))
    (folder / "npm").chmod(0o700)
