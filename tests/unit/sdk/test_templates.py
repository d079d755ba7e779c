"""A template that was copied out of this repository works as its page says."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.e2e.page import Page
from tests.go_toolchain import ENVIRONMENT, GO_ROOT, ROOT
from tests.node_toolchain import MODULES, NODE, NODE_SDK, NPM, install
from tests.rust_toolchain import ENVIRONMENT as RUST_ENVIRONMENT
from tests.rust_toolchain import named_apart, needs_cargo

SECONDS = 240


@pytest.mark.parametrize("language", ["python", "go", pytest.param("rust", marks=needs_cargo), "typescript"])
def test_copy(language, tmp_path):
    """In a copy elsewhere the commands of the template's page succeed, its tests among them."""
    copy, programs = tmp_path / "copy", tmp_path / "programs"
    shutil.copytree(ROOT / "plugin-sdk" / language / "template", copy)
    programs.mkdir()
    if language == "typescript":
        install()
        npm_that_keeps_to_the_lock(programs)
    if language == "rust":
        named_apart(copy, "copy-of-hello")
    page = Page((copy / "README.md").read_text(encoding="utf-8"))
    path = (programs, NODE.parent, GO_ROOT / "bin", Path(sys.executable).parent, os.environ["PATH"])
    environment = {**os.environ, **ENVIRONMENT, **RUST_ENVIRONMENT, "BERTH": str(ROOT)}
    environment["PATH"] = os.pathsep.join(map(str, path))

    printed = page.run(copy, environment, SECONDS)

    passed = {"python": "3 passed", "go": "ok ", "rust": "3 passed", "typescript": "pass 3"}
    assert passed[language] in printed[-1]


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
