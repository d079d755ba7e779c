"""A template that was copied out of this repository works as its page says."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from tests import java_toolchain
from tests.e2e.page import Page
from tests.go_toolchain import ENVIRONMENT, GO_ROOT, ROOT
from tests.node_toolchain import MODULES, NODE, NODE_SDK, NPM, install
from tests.rust_toolchain import ENVIRONMENT as RUST_ENVIRONMENT
from tests.rust_toolchain import named_apart, needs_cargo

SECONDS = 240
NEEDS_JAVA = pytest.mark.skipif(bool(java_toolchain.missing()), reason=java_toolchain.missing())
PASSED = {
    "python": "3 passed",
    "go": "ok ",
    "typescript": "pass 3",
    "rust": "3 passed",
    "java": "Tests run: 3, Failures: 0, Errors: 0",
}


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
def test_copy(language, tmp_path):
    """In a copy elsewhere the commands of the template's page succeed, its tests among them."""
    copy, programs = tmp_path / "copy", tmp_path / "programs"
    made = shutil.ignore_patterns("target")
    shutil.copytree(ROOT / "plugin-sdk" / language / "template", copy, ignore=made)
    programs.mkdir()
    if language == "typescript":
        install()
        npm_that_keeps_to_the_lock(programs)
    if language == "rust":
        named_apart(copy, "copy-of-hello")
    page = Page((copy / "README.md").read_text(encoding="utf-8"))
    tools = java_toolchain.environment() if language == "java" else dict(os.environ)
    path = (programs, NODE.parent, GO_ROOT / "bin", Path(sys.executable).parent, tools["PATH"])
    environment = {**tools, **ENVIRONMENT, **RUST_ENVIRONMENT, "BERTH": str(ROOT)}
    environment["PATH"] = os.pathsep.join(map(str, path))

    with java_toolchain.alone():  # the page installs the SDK, which others may be building
        printed = page.run(copy, environment, SECONDS)

    assert PASSED[language] in printed[-1]


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
