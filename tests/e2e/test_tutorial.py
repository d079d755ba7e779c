"""The tutorial works as it stands on its page, in each language, with real processes and kubectl."""

import os
import sys
import tempfile
from pathlib import Path

import pytest

from berth.demo.surface import Surface
from tests.e2e.page import Page, chosen, kept
from tests.go_toolchain import ENVIRONMENT, GO_ROOT, ROOT
from tests.node_toolchain import NODE, install
from tests.suite import BUILD_SECONDS

pytestmark = pytest.mark.e2e

PAGE = ROOT / "docs/tutorial/README.md"
PORT = "10259"
"""The page's; a test takes one that is free."""


@pytest.fixture
def folder():
    """An empty folder whose path is short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="berth-") as name:
        yield Path(name)


def environment(folder):
    """What the page begins with: this repository, and the tools on the path."""
    programs = (Path(sys.executable).parent, GO_ROOT / "bin", NODE.parent)
    path = os.pathsep.join((*map(str, programs), os.environ["PATH"]))
    return {
        **os.environ,
        **ENVIRONMENT,
        "PATH": path,
        "HOME": os.environ.get("HOME", str(folder)),
        "BERTH": str(ROOT),
    }


@pytest.mark.parametrize("language", ["Python", "Go", "TypeScript"])
def test_tutorial(language, folder):
    """Every command of the page succeeds, and prints what the page says."""
    if language == "TypeScript":
        install()
    text = PAGE.read_text(encoding="utf-8").replace(PORT, str(Surface.free().port))
    page = Page(chosen(text, f"In {language}"))

    printed = page.run(folder, environment(folder), BUILD_SECONDS)

    assert len(page.commands) == len(printed)
    broken = [
        (promise, said)
        for promise, said in zip(page.promised, printed, strict=True)
        if not kept(promise, said)
    ]
    assert [] == broken


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        pytest.param("NAME   NODE\nfirst   blue\n", True, id="as it stands there"),
        pytest.param("more\nNAME NODE\nbetween\nfirst blue\n", True, id="more than is shown"),
        pytest.param("first blue\nNAME NODE\n", False, id="another order"),
        pytest.param("NAME NODE\nfirst red\n", False, id="another node"),
        pytest.param("", False, id="nothing"),
    ],
)
def test_promises(printed, expected):
    """A promise is kept by its lines, in their order, and by nothing else."""
    assert expected is kept("NAME NODE\nfirst ...lue\n", printed)
