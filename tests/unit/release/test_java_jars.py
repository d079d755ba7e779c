"""The Java SDK in a release: what an editor shows of it comes along."""

import shutil
import zipfile

import pytest

from tests import java_toolchain
from tests.release.dist import built
from tests.release.version import version

REASON = java_toolchain.missing() or ("" if shutil.which("javadoc") else "no javadoc on this machine")


@pytest.mark.skipif(bool(REASON), reason=REASON)
def test_sources_and_javadoc():
    """Beside the jar are its sources and its javadoc, each with the class that authors implement."""
    place = built("maven") / "maven/dev/berth/berth-plugin-sdk" / version()
    stem = f"berth-plugin-sdk-{version()}"
    assert "dev/berth/plugin/Plugin.java" in zipfile.ZipFile(place / f"{stem}-sources.jar").namelist()
    assert "dev/berth/plugin/Plugin.html" in zipfile.ZipFile(place / f"{stem}-javadoc.jar").namelist()
