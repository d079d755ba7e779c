"""docs/explain-access.md's cluster of one machine works as it stands there."""

import os
import sys
import tempfile
from pathlib import Path

import pytest

from berth.demo.surface import Surface
from tests.e2e.page import Page, kept
from tests.go_toolchain import ROOT
from tests.suite import BUILD_SECONDS

pytestmark = pytest.mark.e2e

PAGE = ROOT / "docs/explain-access.md"
PORT = "10259"
"""The page's; a test takes one that is free."""


def test_in_the_sandbox():
    """Every command of the section succeeds, and a user of one namespace gets what the page says."""
    section = PAGE.read_text(encoding="utf-8").partition("\n## In the sandbox\n")[2]
    page = Page(section.replace(PORT, str(Surface.free().port)))
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    environment = {**os.environ, "BERTH": str(ROOT), "PATH": path}

    with tempfile.TemporaryDirectory(prefix="berth-") as folder:
        printed = page.run(Path(folder), environment, BUILD_SECONDS)

    assert len(page.commands) == len(printed) == 2
    assert [] == [pair for pair in zip(page.promised, printed, strict=True) if not kept(*pair)]
