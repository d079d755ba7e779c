"""docs/plugin-without-an-sdk.md works as it stands there, and shows what the plugin's sources say."""

import os
import re
import sys
import tempfile
from pathlib import Path

import pytest

from berth.demo.surface import Surface
from tests import rust_toolchain
from tests.e2e.page import Page, kept
from tests.go_toolchain import ROOT
from tests.suite import BUILD_SECONDS
from tests.without_sdk import WITHOUT_SDK, NotHereError, built

PAGE = ROOT / "docs/plugin-without-an-sdk.md"
RUST = WITHOUT_SDK / "rust"
PORT = "10259"
"""The page's; a test takes one that is free."""


@pytest.mark.e2e
def test_page():
    """Every command of the page succeeds, and prints what the page says."""
    try:
        built(RUST)
    except NotHereError as missing:
        pytest.skip(f"{missing} on this machine")
    page = Page(PAGE.read_text(encoding="utf-8").replace(PORT, str(Surface.free().port)))
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
    environment = {**os.environ, "BERTH": str(ROOT), **rust_toolchain.ENVIRONMENT, "PATH": path}

    # The path of a socket is short.
    with tempfile.TemporaryDirectory(prefix="berth-") as folder:
        printed = page.run(Path(folder), environment, BUILD_SECONDS)

    broken = [pair for pair in zip(page.promised, printed, strict=True) if not kept(*pair)]
    assert [] == broken


def test_excerpts():
    """Every excerpt on the page stands in the plugin's sources."""
    sources = "".join(
        path.read_text(encoding="utf-8") for path in [RUST / "build.rs", *RUST.glob("src/*.rs")]
    )
    excerpts = re.findall(r"^```rust\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)

    assert excerpts
    assert [] == [excerpt for excerpt in excerpts if excerpt not in sources]
